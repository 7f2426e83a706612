"""Content codings brought to an exact size: compressed, then padded with bytes that say nothing.

Each function yields candidates, the cheapest first; one of the asked size is usually the first.
The caller takes the nearest.  ``effort`` says how many there are: with 0 only the first way to
compress is tried, with 1 those that make a megabyte or more in a second, with 2 all.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import brotli  # type: ignore[import-untyped]
import zstandard

ZSTD_WINDOW_BYTES = 1 << 23
_ZSTD_WINDOW_LOG = 23
# (level, memory level) of zlib, (quality) of brotli, (level) of zstd; stronger is later.
_ZLIB_LEVELS = ((6, 8), (9, 9), (9, 8), (8, 9), (7, 9), (7, 8), (6, 9), (5, 8), (4, 8), (1, 8))
_ZLIB_TRIES = (1, 3, len(_ZLIB_LEVELS))
_BROTLI_QUALITIES = ((), (9, 4, 1), (9, 11, 4, 1))
_BROTLI_FAR_QUALITIES = ((), (9, 4, 1), (11, 9, 4, 1))
_BROTLI_FAR = 0.97
# A stream that was flushed for its padding is so much longer than one that was not, at most.
_BROTLI_FLUSH_BYTES = 16
_ZSTD_LEVELS = ((3,), (3, 9, 6, 1), (3, 12, 19, 9, 6, 1))

_FCOMMENT = 0x10
# Empty blocks of RFC 1951 that begin and end on a byte: a stored one, and the same after one, two
# or three empty blocks of fixed codes, which have 10 bits each.  With 13 every rest by 5 is there.
_EMPTY_BLOCKS = {
    5: bytes.fromhex("000000ffff"),
    6: bytes.fromhex("02000000ffff"),
    7: bytes.fromhex("0208000000ffff"),
    9: bytes.fromhex("020820000000 00ffff"),
    13: bytes.fromhex("02000000ffff 0208000000ffff"),
}
_ZSTD_SKIPPABLE = b"\x50\x2a\x4d\x18"
_ZSTD_SKIPPABLE_BYTES = 8
_ZSTD_EMPTY_BLOCK = bytes(3)


def gzip_candidates(data: bytes, size: int, effort: int = 2) -> Iterator[bytes]:
    """Padded in the comment of the header (RFC 1952 section 2.3), by any number of bytes."""
    check = zlib.crc32(data).to_bytes(4, "little")
    check += (len(data) & 0xFFFFFFFF).to_bytes(4, "little")
    for level, memory in _ZLIB_LEVELS[: _ZLIB_TRIES[effort]]:
        packed = _deflated(data, level, memory, -zlib.MAX_WBITS)
        missing = size - 18 - len(packed)
        comment = b"." * (missing - 1) + b"\0" if missing > 0 else b""
        # No time stamp, unknown operating system.
        head = bytes((0x1F, 0x8B, 8, _FCOMMENT if comment else 0, 0, 0, 0, 0, 0, 255))
        yield head + comment + packed + check


def deflate_candidates(data: bytes, size: int, effort: int = 2) -> Iterator[bytes]:
    """Padded by empty blocks in front, by 5, 6, 7, 9 and any larger number of bytes."""
    for level, memory in _ZLIB_LEVELS[: _ZLIB_TRIES[effort]]:
        packed = _deflated(data, level, memory, zlib.MAX_WBITS)
        yield packed[:2] + _empty_blocks(size - len(packed)) + packed[2:]


def brotli_candidates(data: bytes, size: int, effort: int = 2) -> Iterator[bytes]:
    """Padded by metadata (RFC 7932 section 9.2) before the last block, by any number of bytes."""
    first = brotli.compress(data, quality=5)
    yield first
    if len(first) < size:
        yield _brotli_padded(data, 5, size)
    # 9 gains one or two hundredths over 5, and 11 costs fifty times as much: ask it last, unless
    # no other can have been it.
    far = size < _BROTLI_FAR * len(first)
    for quality in (_BROTLI_FAR_QUALITIES if far else _BROTLI_QUALITIES)[effort]:
        padded = _brotli_padded(data, quality, size)
        yield padded
        if size < len(padded) <= size + _BROTLI_FLUSH_BYTES:
            yield brotli.compress(data, quality=quality)


def _brotli_padded(data: bytes, quality: int, size: int) -> bytes:
    """Compressed, and padded if it is too short."""
    stream = brotli.Compressor(quality=quality)
    body = stream.process(data) + stream.flush()
    end = stream.finish()
    return bytes(body + _metadata(size - len(body) - len(end)) + end)


def zstd_candidates(data: bytes, size: int, effort: int = 2) -> Iterator[bytes]:
    """Padded by empty blocks of 3 bytes or by a skippable frame of 8 and more."""
    for level in _ZSTD_LEVELS[effort]:
        for checksum in (False, True):
            parameters = zstandard.ZstdCompressionParameters.from_level(
                level,
                window_log=min(_ZSTD_WINDOW_LOG, max(10, len(data).bit_length())),
                write_checksum=checksum,
            )
            stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
            body = stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            body += stream.flush()
            missing = size - len(body)
            if missing >= _ZSTD_SKIPPABLE_BYTES:
                length = missing - _ZSTD_SKIPPABLE_BYTES
                yield body + _ZSTD_SKIPPABLE + length.to_bytes(4, "little") + bytes(length)
            else:
                # After a flush the last block is an empty one; others go before it.
                last = len(body) - 3 - (4 if checksum else 0)
                yield body[:last] + _ZSTD_EMPTY_BLOCK * max(missing // 3, 0) + body[last:]


CANDIDATES: dict[str, Callable[[bytes, int, int], Iterator[bytes]]] = {
    "gzip": gzip_candidates,
    "deflate": deflate_candidates,
    "br": brotli_candidates,
    "zstd": zstd_candidates,
}


def _deflated(data: bytes, level: int, memory: int, wbits: int) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, wbits, memory)
    return stream.compress(data) + stream.flush()


def _empty_blocks(missing: int) -> bytes:
    """Empty blocks of ``missing`` bytes, or of the next smaller number that there is."""
    for first in range(missing, 4, -1):
        for left in (0, *_EMPTY_BLOCKS):
            if first >= left and (first - left) % 5 == 0:
                return _EMPTY_BLOCKS[5] * ((first - left) // 5) + _EMPTY_BLOCKS.get(left, b"")
    return b""


def _metadata(missing: int) -> bytes:
    """Meta-blocks of metadata of ``missing`` bytes in all, each beginning and ending on a byte."""
    out = b""
    while missing > 0:
        # The header: not the last, no nibbles, reserved bit, how many bytes the length has; 6 bits.
        width = 0 if missing < 3 else 1 if missing < 3 + 256 else 2 if missing < 4 + 65536 else 3
        length = min(missing - 1 - width, 1 << 8 * width) if width else 0
        # With more bytes than it needs a length is not valid: leave the rest to another block.
        if width > 1 and length <= 1 << 8 * (width - 1):
            width -= 1
            length = 1 << 8 * width
        header = 0b0110 | width << 4
        header |= (length - 1) << 6 if width else 0
        out += header.to_bytes(1 + width, "little") + bytes(length)
        missing -= 1 + width + length
    return out
