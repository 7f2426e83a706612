"""Reads what other tools recorded; every file is untrusted, and nothing of it is run or obeyed."""
