"""Decodable PNG images of an exact size (W3C PNG specification, third edition)."""

from __future__ import annotations

import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK_BYTES = 12
MIN_BYTES = 70
# Ancillary, private, safe to copy: a decoder skips it.
_PADDING = b"ffPd"


def make_png(size: int, filler: bytes) -> bytes:
    """A grey PNG of ``size`` bytes; bytes from ``filler`` (at least ``size`` of them) pad it.

    Raises:
        ValueError: no PNG of ours is that small.
    """
    extra = size - MIN_BYTES
    if extra < 0:
        raise ValueError(f"a PNG takes at least {MIN_BYTES} bytes, not {size}")
    # Less than a chunk costs is taken up by further pixels of one byte each.
    width = 1 + extra if extra < _CHUNK_BYTES else 1
    head = width.to_bytes(4, "big") + b"\0\0\0\x01" + b"\x08\0\0\0\0"
    padding = b"" if extra < _CHUNK_BYTES else _chunk(_PADDING, filler[: extra - _CHUNK_BYTES])
    return (
        _SIGNATURE
        + _chunk(b"IHDR", head)
        + padding
        + _chunk(b"IDAT", _stored(b"\0" + b"\xff" * width))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return len(data).to_bytes(4, "big") + kind + data + check.to_bytes(4, "big")


def _stored(data: bytes) -> bytes:
    """A zlib stream (RFC 1950) of one stored block: no compressor, the same bytes everywhere."""
    length = len(data).to_bytes(2, "little")
    inverse = (len(data) ^ 0xFFFF).to_bytes(2, "little")
    return b"\x78\x01\x01" + length + inverse + data + zlib.adler32(data).to_bytes(4, "big")
