"""Packs for other machines: results, or all that a run takes, in one file that is checked."""
