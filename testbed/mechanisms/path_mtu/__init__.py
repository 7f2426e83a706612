"""Path MTU: a line that takes less than the ends' devices (RFC 1191)."""
