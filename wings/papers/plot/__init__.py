"""Figures of one visit: its requests, and how its connections began."""
