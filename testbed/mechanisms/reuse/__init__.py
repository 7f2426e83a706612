"""Reuse of connections, and how many requests each may carry (RFC 9112)."""
