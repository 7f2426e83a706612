"""Content codings of bodies (RFC 9110 section 8.4): undone within bounds, and made in exact sizes.

gzip is RFC 1952, deflate RFC 1950 (and the bare RFC 1951 that some servers send), br RFC 7932,
zstd RFC 8878 in the window that RFC 9659 allows on the web.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator

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

_CHUNK = re.compile(rb"[0-9A-Fa-f]{1,8}")
_FCOMMENT = 0x10
GZIP_FRAME_BYTES = 18
# Empty blocks of RFC 1951 that begin and end on a byte: a stored one, and the same after one, two
# or three empty blocks of fixed codes, which have 10 bits each.  With 13 every rest by 5 is there.
_EMPTY_BLOCKS = {5: bytes.fromhex("000000ffff"), 6: bytes.fromhex("02000000ffff"),
                 7: bytes.fromhex("0208000000ffff"), 9: bytes.fromhex("020820000000 00ffff"),
                 13: bytes.fromhex("02000000ffff 0208000000ffff")}  # fmt: skip
_ZSTD_SKIPPABLE = b"\x50\x2a\x4d\x18"
_ZSTD_SKIPPABLE_BYTES = 8
_ZSTD_EMPTY_BLOCK = bytes(3)
FULL_EFFORT_BYTES = 4 << 20
SOME_EFFORT_BYTES = 32 << 20
_PIECE_BYTES = 1 << 16
# A block of zstd that repeats one byte has 4 bytes and makes 128 KiB: small steps bound the memory.
_ZSTD_STEP_BYTES = 64
_GZIP_WBITS, _ZLIB_WBITS, _RAW_WBITS = 31, 15, -15
_ALIASES = {"x-gzip": "gzip", "": "identity"}


def gzip_candidates(data: bytes, size: int, effort: int = 2) -> Iterator[bytes]:
    """Yield members padded by any number of bytes in a comment (RFC 1952 section 2.3)."""
    for level, memory in _ZLIB_LEVELS[: _ZLIB_TRIES[effort]]:
        packed = _deflated(data, level, memory, -zlib.MAX_WBITS)
        yield gzip_member(packed, data, size - GZIP_FRAME_BYTES - len(packed))


def gzip_member(packed: bytes, data: bytes, spare: int) -> bytes:
    """Return ``data``, deflated to ``packed``, as a member with a comment of ``spare`` bytes."""
    comment = b"." * (spare - 1) + b"\0" if spare > 0 else b""
    # No time stamp, unknown operating system: the same bytes on every machine.
    head = bytes((0x1F, 0x8B, 8, _FCOMMENT if comment else 0, 0, 0, 0, 0, 0, 255))
    check = zlib.crc32(data).to_bytes(4, "little")
    return head + comment + packed + check + (len(data) & 0xFFFFFFFF).to_bytes(4, "little")


def deflate_candidates(data: bytes, size: int, effort: int = 2) -> Iterator[bytes]:
    """Yield streams padded by empty blocks in front: by 5, 6, 7, 9 and more bytes."""
    for level, memory in _ZLIB_LEVELS[: _ZLIB_TRIES[effort]]:
        packed = _deflated(data, level, memory, zlib.MAX_WBITS)
        yield packed[:2] + _empty_blocks(size - len(packed)) + packed[2:]


def brotli_candidates(data: bytes, size: int, effort: int = 2) -> Iterator[bytes]:
    """Yield streams padded by metadata (RFC 7932 section 9.2), by any number of bytes."""
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
    stream = brotli.Compressor(quality=quality)
    body = stream.process(data) + stream.flush()
    end = stream.finish()
    return bytes(body + _metadata(size - len(body) - len(end)) + end)


def zstd_candidates(data: bytes, size: int, effort: int = 2) -> Iterator[bytes]:
    """Yield frames padded by empty blocks of 3 bytes or by a skippable frame of 8 and more."""
    for level in _ZSTD_LEVELS[effort]:
        for checksum in (False, True):
            window = min(_ZSTD_WINDOW_LOG, max(10, len(data).bit_length()))
            parameters = zstandard.ZstdCompressionParameters.from_level(
                level, window_log=window, write_checksum=checksum
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
    "gzip": gzip_candidates, "deflate": deflate_candidates,
    "br": brotli_candidates, "zstd": zstd_candidates,
}  # fmt: skip


def _deflated(data: bytes, level: int, memory: int, wbits: int) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, wbits, memory)
    return stream.compress(data) + stream.flush()


def _empty_blocks(missing: int) -> bytes:
    """Return empty blocks of ``missing`` bytes, or of the next smaller number that can be made."""
    for first in range(missing, 4, -1):
        for left in (0, *_EMPTY_BLOCKS):
            if first >= left and (first - left) % 5 == 0:
                return _EMPTY_BLOCKS[5] * ((first - left) // 5) + _EMPTY_BLOCKS.get(left, b"")
    return b""


def _metadata(missing: int) -> bytes:
    """Return meta-blocks of metadata, ``missing`` bytes in all, each of whole bytes."""
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


class CodingError(Exception):
    """A body does not decode, or not within its limit; the message is a clause without a URL."""


class CutShortError(CodingError):
    """The data is sound as far as it goes, but ends too early."""


def split_codings(encoding: str) -> tuple[str, ...]:
    """Return the codings of a ``Content-Encoding`` value, in the order of their application.

    ``identity`` is left out; names are in lower case, ``x-gzip`` is ``gzip``.
    """
    names = (name.strip().lower() for name in encoding.split(","))
    plain = (_ALIASES.get(name, name) for name in names)
    return tuple(name for name in plain if name != "identity")


def content_coding(headers: Iterable[tuple[str, str]]) -> str:
    """Return the value of all ``Content-Encoding`` headers together."""
    return ", ".join(value for name, value in headers if name.lower() == "content-encoding")


def decode(data: bytes, encoding: str, limit: int) -> bytes:
    """Undo every coding of the ``Content-Encoding`` value ``encoding``.

    An empty body decodes to nothing, whatever its coding.  What follows a gzip member or a zlib
    stream and is no further member is left alone, as browsers do.

    Raises:
        CodingError: unknown coding, broken or truncated data, or more than ``limit`` bytes.  Never
            are much more than ``limit`` bytes of decoded data in memory.
    """
    names = _known(encoding)
    for place in reversed(range(len(names))):
        if data:
            # What is still coded once more may be larger than what it decodes to.
            bound = 2 * limit + 1000 if place else limit
            data = _collect(data, names[place], bound, [])
    _check_size(len(data), limit, "identity")
    return data


def undo_chunks(data: bytes) -> tuple[bytes | None, int]:
    """Return the content of a chunked body (RFC 9112 section 7.1), and how much of it there is.

    It is ``None`` where ``data`` is not chunked, or not to its end.
    """
    content, is_whole = split_chunks(data)
    return content if is_whole else None, len(content)


def split_chunks(data: bytes) -> tuple[bytes, bool]:
    """Return what of a chunked body's content is there, and whether that is all of it."""
    pieces: list[bytes] = []
    at = 0
    while True:
        end = data.find(b"\r\n", at, at + 4096)
        size_line = _CHUNK.fullmatch(data[at:end].partition(b";")[0].strip()) if end >= 0 else None
        if size_line is None:
            return b"".join(pieces), False
        length = int(size_line.group(), 16)
        at = end + 2
        if length == 0:
            return b"".join(pieces), True
        pieces.append(data[at : at + length])
        if data[at + length : at + length + 2] != b"\r\n":
            return b"".join(pieces), False
        at += length + 2


class Effort:
    """How hard ``encode`` tries for the bodies of one page, by how much it has had of them.

    The strongest compressors make a quarter of a megabyte in a second, the usual ones fifty: with
    less effort for what goes beyond, the bodies of a page are done in less than a minute.
    """

    def __init__(self) -> None:
        self._taken = 0

    def take(self, size: int) -> int:
        """Return the effort for the next body, of ``size`` bytes: 2, 1 or 0."""
        self._taken += size
        return sum(self._taken <= most for most in (FULL_EFFORT_BYTES, SOME_EFFORT_BYTES))


def encode(data: bytes, encoding: str, size: int, effort: int = 2) -> bytes:
    """Return ``data`` under ``encoding`` in ``size`` bytes, or as near to that as we can.

    The caller compares lengths; ``effort`` is from 0 to 2.  Only the last coding of a list is
    brought to the size.  The same input gives the same bytes with the same libraries.

    Raises:
        CodingError: unknown coding.
    """
    names = _known(encoding)
    if not names:
        return data
    data = code(data, ",".join(names[:-1]))
    best = b""
    for candidate in CANDIDATES[names[-1]](data, size, effort):
        if len(candidate) == size:
            return candidate
        if not best or abs(len(candidate) - size) < abs(len(best) - size):
            best = candidate
    return best


def code(data: bytes, encoding: str) -> bytes:
    """Return ``data`` under ``encoding`` in whatever size the usual compressors give."""
    for name in _known(encoding):
        data = next(iter(CANDIDATES[name](data, 0, 0)))
    return data


def _known(encoding: str) -> tuple[str, ...]:
    names = split_codings(encoding)
    for name in names:
        if name not in _DECODERS:
            supported = ", ".join(("identity", *_DECODERS))
            raise CodingError(f"content coding {name[:40]!r} is not one of {supported}")
    return names


def _collect(data: bytes, name: str, limit: int, pieces: list[bytes]) -> bytes:
    size = 0
    for piece in _DECODERS[name](data):
        size += len(piece)
        _check_size(size, limit, name)
        pieces.append(piece)
    return b"".join(pieces)


def decode_start(data: bytes, encoding: str, limit: int) -> bytes:
    """Undo the coding of a body that may be cut short, as far as it goes.

    Raises:
        CodingError: as ``decode``, but not where the data ends.
    """
    names = _known(encoding)
    pieces: list[bytes] = []
    try:
        if len(names) != 1:
            return decode(data, encoding, limit)
        _collect(data, names[0], limit, pieces)
    except CutShortError:
        if not any(pieces):
            raise
    return b"".join(pieces)


def _check_size(size: int, limit: int, name: str) -> None:
    if size > limit:
        raise CodingError(f"{name} decodes to more than the limit of {limit} bytes")


def _inflate(data: bytes, wbits: int, name: str) -> Iterator[bytes]:
    """Yield one zlib stream in pieces, and then what follows it if that is a gzip member."""
    stream = zlib.decompressobj(wbits)
    while True:
        try:
            piece = stream.decompress(data, _PIECE_BYTES)
        except zlib.error as error:
            raise CodingError(f"{name} data is broken ({error})") from None
        yield piece
        data = stream.unconsumed_tail
        if stream.eof:
            data = stream.unused_data
            if wbits != _GZIP_WBITS or not data.startswith(b"\x1f\x8b"):
                return
            stream = zlib.decompressobj(wbits)
        elif not piece and not data:
            raise CutShortError(f"{name} data is truncated")


def _undeflate(data: bytes) -> Iterator[bytes]:
    # RFC 1950: the first two bytes are a multiple of 31, and the method is 8.
    wrapped = len(data) > 1 and data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
    return _inflate(data, _ZLIB_WBITS if wrapped else _RAW_WBITS, "deflate")


def _unbrotli(data: bytes) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    while not stream.is_finished():
        try:
            piece = stream.process(data, output_buffer_limit=_PIECE_BYTES)
        except brotli.error:
            raise CodingError("br data is broken") from None
        yield piece
        data = b""
        if not piece and not stream.is_finished() and stream.can_accept_more_data():
            raise CutShortError("br data is truncated")


def _unzstd(data: bytes) -> Iterator[bytes]:
    """Yield frame after frame; skippable ones decode to nothing."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    at = 0
    while at < len(data):
        stream = decompressor.decompressobj()
        while not stream.eof:
            step = data[at : at + _ZSTD_STEP_BYTES]
            if not step:
                raise CutShortError("zstd data is truncated")
            try:
                yield stream.decompress(step)
            except zstandard.ZstdError as error:
                raise CodingError(f"zstd data is broken ({error})") from None
            at += len(step) - len(stream.unused_data)


_DECODERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": lambda data: _inflate(data, _GZIP_WBITS, "gzip"),
    "deflate": _undeflate, "br": _unbrotli, "zstd": _unzstd,
}  # fmt: skip
