"""Packs of results: one file from which another machine reads, checks and repeats a run."""
