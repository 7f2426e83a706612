"""Look-ups of host names on the link (RFC 1035)."""
