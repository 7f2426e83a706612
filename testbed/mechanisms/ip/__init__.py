"""IP version of the lab, and the client's choice between two (RFC 8305)."""
