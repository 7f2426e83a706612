"""Experiments: from a TOML file to conditions and trials."""
