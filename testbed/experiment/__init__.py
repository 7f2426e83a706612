"""From a TOML file to an experiment and its trials."""
