"""Notebooks, and what their cells use."""
