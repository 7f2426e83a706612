"""A web font of one glyph, in an exact size: WOFF 1.0, whose private block holds any bytes.

Sources: https://www.w3.org/TR/WOFF/ and the OpenType specification.  A browser tells fonts by
their first bytes, so that it is one under any of their types; if it were none, the browser would
ask for the next one in the list of the style sheet, which was never recorded.
"""

from __future__ import annotations

from struct import pack

_TRUETYPE = 0x00010000
_HEAD_BYTES = 44
_DIRECTORY_BYTES = 20
_EM = 1000


def make_font(size: int, fill: bytes) -> bytes:
    """A font of ``size`` bytes, with what ``fill`` begins with as private data.

    Raises:
        ValueError: it cannot be so small.
    """
    tables = sorted(_tables().items())
    at = _HEAD_BYTES + _DIRECTORY_BYTES * len(tables)
    directory = content = b""
    for name, data in tables:
        whole = _padded(data)
        directory += name + pack(">4I", at, len(data), len(data), _sum(whole))
        content += whole
        at += len(whole)
    private = size - at
    if private < 0:
        raise ValueError(f"a font has at least {at} bytes, not {size}")
    unpacked = 12 + 16 * len(tables) + len(content)
    head = b"wOFF" + pack(">IIHHI", _TRUETYPE, size, len(tables), 0, unpacked)
    head += pack(">HH", 1, 0) + bytes(12) + pack(">II", at if private else 0, private)
    return head + directory + content + fill[:private].ljust(private, b".")


def _tables() -> dict[bytes, bytes]:
    """The tables that every browser asks for; the one glyph is a point, and stands for nothing."""
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


def _sum(data: bytes) -> int:
    words = (int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4))
    return sum(words) & 0xFFFFFFFF
