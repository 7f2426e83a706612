"""Content codings of bodies (RFC 9110 section 8.4): undone within bounds, and made in exact sizes.

gzip is RFC 1952, deflate RFC 1950 (and the bare RFC 1951 that some servers send), br RFC 7932,
zstd RFC 8878 in the window that RFC 9659 allows on the web.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import brotli  # type: ignore[import-untyped]
import zstandard

from testbed.pages.exact import CANDIDATES, ZSTD_WINDOW_BYTES

FULL_EFFORT_BYTES = 4 << 20
SOME_EFFORT_BYTES = 32 << 20
_PIECE_BYTES = 1 << 16
# A block of zstd that repeats one byte has 4 bytes and makes 128 KiB: small steps bound the memory.
_ZSTD_STEP_BYTES = 64
_GZIP_WBITS, _ZLIB_WBITS, _RAW_WBITS = 31, 15, -15
_ALIASES = {"x-gzip": "gzip", "": "identity"}


class CodingError(Exception):
    """A body does not decode, or not within its limit; the message is a clause without a URL."""


def split_codings(encoding: str) -> tuple[str, ...]:
    """The codings that a ``Content-Encoding`` value names, in the order of their application.

    ``identity`` is left out; names are in lower case, ``x-gzip`` is ``gzip``.
    """
    names = (name.strip().lower() for name in encoding.split(","))
    plain = (_ALIASES.get(name, name) for name in names)
    return tuple(name for name in plain if name != "identity")


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
            data = _collect(data, names[place], bound)
    _check_size(len(data), limit, "identity")
    return data


class Effort:
    """How hard ``encode`` tries for the bodies of one page, by how much it has had of them.

    The strongest compressors make a quarter of a megabyte in a second, the usual ones fifty: with
    less effort for what goes beyond, the bodies of a page are done in less than a minute.
    """

    def __init__(self) -> None:
        self._taken = 0

    def take(self, size: int) -> int:
        """The effort for the next body, of ``size`` bytes: 2, 1 or 0."""
        self._taken += size
        return sum(self._taken <= most for most in (FULL_EFFORT_BYTES, SOME_EFFORT_BYTES))


def encode(data: bytes, encoding: str, size: int, effort: int = 2) -> bytes:
    """``data`` under ``encoding`` in ``size`` bytes if that can be reached, else as near as we can.

    The caller compares lengths; ``effort`` is as in ``exact``.  Only the last coding of a list is
    brought to the size.  The same input gives the same bytes with the same libraries.

    Raises:
        CodingError: unknown coding.
    """
    names = _known(encoding)
    for name in names[:-1]:
        data = next(iter(CANDIDATES[name](data, 0, 0)))
    if not names:
        return data
    best = b""
    for found in CANDIDATES[names[-1]](data, size, effort):
        if len(found) == size:
            return found
        if not best or abs(len(found) - size) < abs(len(best) - size):
            best = found
    return best


def _known(encoding: str) -> tuple[str, ...]:
    names = split_codings(encoding)
    for name in names:
        if name not in _DECODERS:
            known = ", ".join(("identity", *_DECODERS))
            raise CodingError(f"content coding {name[:40]!r} is not one of {known}")
    return names


def _collect(data: bytes, name: str, limit: int) -> bytes:
    pieces, size = [], 0
    for piece in _DECODERS[name](data):
        size += len(piece)
        _check_size(size, limit, name)
        pieces.append(piece)
    return b"".join(pieces)


def _check_size(size: int, limit: int, name: str) -> None:
    if size > limit:
        raise CodingError(f"{name} decodes to more than the limit of {limit} bytes")


def _inflate(data: bytes, wbits: int, name: str) -> Iterator[bytes]:
    """One zlib stream, piece by piece, and then what follows it if that is a gzip member."""
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
            raise CodingError(f"{name} data is truncated")


def _gunzip(data: bytes) -> Iterator[bytes]:
    return _inflate(data, _GZIP_WBITS, "gzip")


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
            raise CodingError("br data is truncated")


def _unzstd(data: bytes) -> Iterator[bytes]:
    """Frame after frame; skippable ones decode to nothing."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    at = 0
    while at < len(data):
        stream = decompressor.decompressobj()
        while not stream.eof:
            step = data[at : at + _ZSTD_STEP_BYTES]
            if not step:
                raise CodingError("zstd data is truncated")
            try:
                yield stream.decompress(step)
            except zstandard.ZstdError as error:
                raise CodingError(f"zstd data is broken ({error})") from None
            at += len(step) - len(stream.unused_data)


_DECODERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
