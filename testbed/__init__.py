"""Harness: from an experiment to its records."""
