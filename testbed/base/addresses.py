"""Addresses of IPv4 and IPv6: as text, packed, and which family (RFC 791, RFC 4291)."""

from __future__ import annotations

import socket


def family_of(address: str) -> socket.AddressFamily:
    """Return the family of an ``address`` as text."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def pack_address(address: str) -> bytes:
    """Return an ``address`` as headers have it: 4 bytes, or 16.

    Raises:
        OSError: it is none.
    """
    return socket.inet_pton(family_of(address), address)


def format_address(packed: bytes) -> str:
    """Return the inverse of ``pack_address``, as RFC 5952 has it.

    Raises:
        ValueError: it has another length.
    """
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


def with_port(address: str, port: int) -> str:
    """Return ``address`` and ``port`` as in a URL: ``10.0.0.1:80``, ``[2001:db8::1]:80``."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
