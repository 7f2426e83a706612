"""TLS: versions, tickets, early data, key shares (RFC 8446)."""
