"""Mechanisms under test, each a folder with what proves it, and the list of all checks."""
