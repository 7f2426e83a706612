"""Importers of what other tools recorded: files are untrusted, and nothing in them is run."""
