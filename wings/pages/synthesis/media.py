"""Images and fonts of an exact size that decode: GIF, PNG, JPEG and WOFF."""

from __future__ import annotations

import zlib
from struct import pack

MIN_GIF_BYTES = 35
_GIF_HEAD = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00"
_GIF_IMAGE = b"\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02"
_GIF_CODES = b"\x44\x01"  # clear, colour 0, end
_GIF_COMMENT = b"\x21\xfe"
_GIF_TRAILER = b"\x3b"
_JPEG_START = b"\xff\xd8"
_JPEG_REST = (
    b"\xff\xdb\x00\x43\x00" + b"\x01" * 64  # quantisation table
    + b"\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00"  # baseline, 1x1, one component
    + b"\xff\xc4\x00\x14\x00\x01" + bytes(15) + b"\x00"  # DC table: code 0 = no difference
    + b"\xff\xc4\x00\x14\x10\x01" + bytes(15) + b"\x00"  # AC table: code 0 = end of block
    + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"  # scan
    + b"\x3f\xff\xd9"  # two codes, padded with ones; end of image
)  # fmt: skip
MIN_JPEG_BYTES = len(_JPEG_START) + len(_JPEG_REST)
_JPEG_COMMENT = b"\xff\xfe"
_MAX_SEGMENT = 2 + 65535
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK_BYTES = 12
MIN_PNG_BYTES = 70
# Ancillary, private, safe to copy: a decoder skips it.
_PADDING = b"ffPd"
_TRUETYPE = 0x00010000
_HEAD_BYTES = 44
_DIRECTORY_BYTES = 20
_EM = 1000


def make_image(mime: str, size: int, filler: bytes) -> bytes:
    """Return an image of ``size`` bytes: PNG, JPEG, or GIF for every other type.

    ``filler`` (at least ``size`` bytes) pads it, and is all of it where no image is that small.
    """
    make = {"image/png": make_png, "image/jpeg": make_jpeg}.get(mime, make_gif)
    try:
        return make(size, filler)
    except ValueError:
        return filler[:size]


def make_gif(size: int, filler: bytes) -> bytes:
    """Return a GIF of ``size`` bytes; bytes from ``filler`` (at least ``size`` of them) pad it.

    Raises:
        ValueError: no GIF is that small.
    """
    extra = size - MIN_GIF_BYTES
    if extra < 0:
        raise ValueError(f"a GIF takes at least {MIN_GIF_BYTES} bytes, not {size}")
    # What no comment can be long (1, 2 and 4 bytes) follows the end code, where LZW stops.
    slack = {1: 1, 2: 2, 4: 1}.get(extra, 0)
    codes = _GIF_CODES + bytes(slack)
    image = _GIF_IMAGE + bytes((len(codes),)) + codes + b"\0"
    return _GIF_HEAD + _gif_comment(extra - slack, filler) + image + _GIF_TRAILER


def _gif_comment(size: int, filler: bytes) -> bytes:
    """Return a comment extension of ``size`` bytes (0, 3, 5 or more), at most 255 a block."""
    if not size:
        return b""
    out = bytearray(_GIF_COMMENT)
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


def make_jpeg(size: int, filler: bytes) -> bytes:
    """Return a JPEG of ``size`` bytes; bytes from ``filler`` (at least ``size`` of them) pad it.

    Raises:
        ValueError: no JPEG is that small.
    """
    extra = size - MIN_JPEG_BYTES
    if extra < 0:
        raise ValueError(f"a JPEG takes at least {MIN_JPEG_BYTES} bytes, not {size}")
    out = bytearray(_JPEG_START)
    while extra >= 4:
        segment = min(extra, _MAX_SEGMENT)
        out += _JPEG_COMMENT + (segment - 2).to_bytes(2, "big") + filler[: segment - 4]
        extra -= segment
    # Less than a segment costs: any number of fill bytes may precede a marker (T.81 B.1.1.2).
    return bytes(out) + b"\xff" * extra + _JPEG_REST


def make_png(size: int, filler: bytes) -> bytes:
    """Return a grey PNG of ``size`` bytes, padded from ``filler`` (at least ``size`` bytes).

    Raises:
        ValueError: no PNG of ours is that small.
    """
    extra = size - MIN_PNG_BYTES
    if extra < 0:
        raise ValueError(f"a PNG takes at least {MIN_PNG_BYTES} bytes, not {size}")
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
    """Return a zlib stream (RFC 1950) of one stored block: the same bytes everywhere."""
    length = len(data).to_bytes(2, "little")
    inverse = (len(data) ^ 0xFFFF).to_bytes(2, "little")
    return b"\x78\x01\x01" + length + inverse + data + zlib.adler32(data).to_bytes(4, "big")


def make_font(size: int, fill: bytes) -> bytes:
    """Return a font of ``size`` bytes, with what ``fill`` begins with as private data.

    Raises:
        ValueError: it cannot be so small.
    """
    tables = sorted(_tables().items())
    at = _HEAD_BYTES + _DIRECTORY_BYTES * len(tables)
    directory = content = b""
    for name, data in tables:
        padded = _padded(data)
        directory += name + pack(">4I", at, len(data), len(data), _checksum(padded))
        content += padded
        at += len(padded)
    private = size - at
    if private < 0:
        raise ValueError(f"a font has at least {at} bytes, not {size}")
    unpacked = 12 + 16 * len(tables) + len(content)
    head = b"wOFF" + pack(">IIHHI", _TRUETYPE, size, len(tables), 0, unpacked)
    head += pack(">HH", 1, 0) + bytes(12) + pack(">II", at if private else 0, private)
    return head + directory + content + fill[:private].ljust(private, b".")


def _tables() -> dict[bytes, bytes]:
    """Return the tables that every browser asks for; the one glyph is a point."""
    box = (0, 0, 0, 0)
    glyph = pack(">h4h", 1, *box) + pack(">HHB", 0, 0, 0x31)
    names = (b"none", 0, 0, 0xFFFF)  # vendor, selection, first and last character
    return {
        b"OS/2": pack(">HhHHH", 4, _EM, 400, 5, 0) + bytes(2 * 11 + 10 + 4 * 4)
        + pack(">4sHHH", *names) + pack(">hhhHH", 800, -200, 0, 800, 200)
        + bytes(18),
        # Format 4 with the last segment only, which there has to be.
        b"cmap": pack(">HH HHI", 0, 1, 3, 1, 12)
        + pack(">7H", 4, 24, 0, 2, 2, 0, 0) + pack(">HHHhH", 0xFFFF, 0, 0xFFFF, 1, 0),
        b"glyf": _padded(glyph),
        b"head": pack(">HHIIIHH", 1, 0, 1 << 16, 0, 0x5F0F3CF5, 3, _EM) + bytes(16)
        + pack(">4hHHhhh", *box, 0, 8, 2, 0, 0),
        b"hhea": pack(">HHhhhH11hH", 1, 0, 800, -200, 0, _EM, *[0] * 11, 1),
        b"hmtx": pack(">Hh", _EM, 0),
        b"loca": pack(">HH", 0, len(_padded(glyph)) // 2),
        b"maxp": pack(">IHHHHHHHHHHHHHH", _TRUETYPE, 1, 1, 1, 0, 0, 2, *[0] * 8),
        b"name": pack(">HHH", 0, 0, 6),
        b"post": pack(">IIhhI4I", 0x00030000, 0, 0, 0, 0, 0, 0, 0, 0),
    }  # fmt: skip


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _checksum(data: bytes) -> int:
    words = (int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4))
    return sum(words) & 0xFFFFFFFF
