"""Scenarios: a promise of the protocol as a file, its script, and the words that scripts have."""
