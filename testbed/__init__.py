"""The harness: from an experiment to its records."""
