"""Mechanisms: each a folder with what acts and what proves it; lists of both."""
