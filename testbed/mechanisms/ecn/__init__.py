"""Explicit congestion notification (RFC 3168, RFC 9768)."""
