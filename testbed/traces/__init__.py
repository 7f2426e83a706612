"""Traces of links: those of the tree, made by their models, and those of the user, imported."""
