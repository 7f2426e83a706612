"""Chance: what a seed draws of a load beside its link, and what shows it."""
