"""TCP Fast Open: data in the SYN (RFC 7413)."""
