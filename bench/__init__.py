"""Bench: each asked number beside the measured one (docs/accuracy.md)."""
