"""Visits: a page loaded again by the same client."""
