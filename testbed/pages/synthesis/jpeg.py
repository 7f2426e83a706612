"""Decodable 1x1 grey baseline JPEG images of an exact size (ITU-T T.81)."""

from __future__ import annotations

_START = b"\xff\xd8"
_REST = (
    b"\xff\xdb\x00\x43\x00" + b"\x01" * 64  # quantisation table
    + b"\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00"  # baseline, 1x1, one component
    + b"\xff\xc4\x00\x14\x00\x01" + bytes(15) + b"\x00"  # DC table: code 0 = no difference
    + b"\xff\xc4\x00\x14\x10\x01" + bytes(15) + b"\x00"  # AC table: code 0 = end of block
    + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"  # scan
    + b"\x3f\xff\xd9"  # two codes, padded with ones; end of image
)  # fmt: skip
MIN_BYTES = len(_START) + len(_REST)
_COMMENT = b"\xff\xfe"
_MAX_SEGMENT = 2 + 65535


def make_jpeg(size: int, filler: bytes) -> bytes:
    """A JPEG of ``size`` bytes; bytes from ``filler`` (at least ``size`` of them) pad it.

    Raises:
        ValueError: no JPEG is that small.
    """
    extra = size - MIN_BYTES
    if extra < 0:
        raise ValueError(f"a JPEG takes at least {MIN_BYTES} bytes, not {size}")
    out = bytearray(_START)
    while extra >= 4:
        segment = min(extra, _MAX_SEGMENT)
        out += _COMMENT + (segment - 2).to_bytes(2, "big") + filler[: segment - 4]
        extra -= segment
    # Less than a segment costs: any number of fill bytes may precede a marker (T.81 B.1.1.2).
    return bytes(out) + b"\xff" * extra + _REST
