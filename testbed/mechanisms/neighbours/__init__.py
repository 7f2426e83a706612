"""Neighbours: who else sends on the line while a page loads."""
