"""Initial congestion window, of TCP and of QUIC (RFC 6928, RFC 9002)."""
