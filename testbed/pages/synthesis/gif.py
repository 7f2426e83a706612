"""Decodable 1x1 GIF images of an exact size (GIF89a specification, CompuServe 1990)."""

from __future__ import annotations

MIN_BYTES = 35
_HEAD = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00"
_IMAGE = b"\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02"
_CODES = b"\x44\x01"  # clear, colour 0, end
_COMMENT = b"\x21\xfe"
_TRAILER = b"\x3b"


def make_gif(size: int, filler: bytes) -> bytes:
    """A GIF of ``size`` bytes; bytes from ``filler`` (at least ``size`` of them) pad it.

    Raises:
        ValueError: no GIF is that small.
    """
    extra = size - MIN_BYTES
    if extra < 0:
        raise ValueError(f"a GIF takes at least {MIN_BYTES} bytes, not {size}")
    # What no comment can be long (1, 2 and 4 bytes) follows the end code, where LZW stops.
    slack = {1: 1, 2: 2, 4: 1}.get(extra, 0)
    codes = _CODES + bytes(slack)
    image = _IMAGE + bytes((len(codes),)) + codes + b"\0"
    return _HEAD + _comment(extra - slack, filler) + image + _TRAILER


def _comment(size: int, filler: bytes) -> bytes:
    """A comment extension of ``size`` bytes (0, 3, 5 or more) in blocks of at most 255 bytes."""
    if not size:
        return b""
    out = bytearray(_COMMENT)
    left = size - 3
    while left:
        # A block costs its length byte: never leave a single byte that could hold no content.
        block = min(left, 256)
        if left - block == 1:
            block -= 1
        out.append(block - 1)
        out += filler[: block - 1]
        left -= block
    return bytes(out) + b"\0"
