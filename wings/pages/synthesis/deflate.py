"""gzip members of an exact size, written bit by bit so that no zlib version matters.

One block of fixed Huffman codes (RFC 1951 section 3.2.6): an ASCII literal costs exactly 8 bits
and a run of one byte costs at most 13 bits for each 258, so that the compressed size is chosen by
choosing how much of the filler is run.  What is left over goes into the comment field of the gzip
header (RFC 1952 section 2.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wings.pages.coding import GZIP_FRAME_BYTES, gzip_member

_BLOCK_BITS = 3 + 7  # block header and end-of-block code
_LITERAL = bytes(int(f"{0x30 + byte:08b}"[::-1], 2) if byte < 144 else 0 for byte in range(256))
_MAX_RUN = 258
_FLUSH_BITS = 4096  # adding to a number costs its whole length
# (first length, extra bits) of the length codes 257..285, RFC 1951 section 3.2.5.
_LENGTHS = (
    *((length, 0) for length in range(3, 11)),
    *((11 + 2 * i, 1) for i in range(4)),
    *((19 + 4 * i, 2) for i in range(4)),
    *((35 + 8 * i, 3) for i in range(4)),
    *((67 + 16 * i, 4) for i in range(4)),
    *((131 + 32 * i, 5) for i in range(4)),
    (_MAX_RUN, 0),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """ASCII text, then ``run`` more copies of its last character (``run`` is 0 or at least 3)."""

    text: bytes
    run: int = 0


def _run_codes(run: int) -> list[int]:
    """Return lengths of the matches that make a run; none is shorter than 3."""
    full_matches, rest = divmod(run, _MAX_RUN)
    if rest and rest < 3:  # a match cannot be 1 or 2 long: share with the last whole one
        return [_MAX_RUN] * (full_matches - 1) + [_MAX_RUN - 3, rest + 3]
    return [_MAX_RUN] * full_matches + ([rest] if rest else [])


def _match(length: int) -> tuple[int, int]:
    """Return (bits, how many) of a match of ``length`` at distance 1, first bit lowest."""
    index = max(i for i, (first, _) in enumerate(_LENGTHS) if first <= length)
    first, extra = _LENGTHS[index]
    symbol = 257 + index
    width, code = (7, symbol - 256) if symbol < 280 else (8, 0xC0 + symbol - 280)
    bits = int(f"{code:0{width}b}"[::-1], 2) | (length - first) << width
    return bits, width + extra + 5  # the distance code is five zero bits


_MATCHES = {length: _match(length) for length in range(3, _MAX_RUN + 1)}


def run_bits(run: int) -> int:
    """Return the bits that a run costs."""
    full_matches, _ = divmod(run, _MAX_RUN)
    full_matches = max(0, full_matches - 1)  # the tail may share with one whole match
    tail = run - full_matches * _MAX_RUN
    tail_bits = sum(_MATCHES[code][1] for code in _run_codes(tail))
    return full_matches * _MATCHES[_MAX_RUN][1] + tail_bits


def gzip_size(literals: int, runs: Sequence[int]) -> int:
    """Return bytes of the gzip member that holds ``literals`` characters and these runs."""
    bits = _BLOCK_BITS + 8 * literals + sum(run_bits(run) for run in runs)
    return GZIP_FRAME_BYTES + (bits + 7) // 8


def write_gzip(pieces: Sequence[Piece], size: int) -> bytes:
    """Return the pieces as one gzip member of exactly ``size`` bytes.

    Raises:
        ValueError: the pieces do not fit into ``size``.
    """
    data = b"".join(piece.text + piece.text[-1:] * piece.run for piece in pieces)
    packed = _deflate(pieces)
    spare = size - GZIP_FRAME_BYTES - len(packed)
    if spare < 0:
        raise ValueError(f"{-spare} bytes too many for a gzip member of {size} bytes")
    return gzip_member(packed, data, spare)


def _deflate(pieces: Sequence[Piece]) -> bytes:
    out = bytearray()
    pending, width = 0b011, 3  # last block, fixed codes
    for bits, count in _codes(pieces):
        pending |= bits << width
        width += count
        if width >= _FLUSH_BITS:
            full_bytes = width // 8
            out += (pending & ((1 << 8 * full_bytes) - 1)).to_bytes(full_bytes, "little")
            pending >>= 8 * full_bytes
            width -= 8 * full_bytes
    width += 7  # end of block: seven zero bits
    return bytes(out) + pending.to_bytes((width + 7) // 8, "little")


def _codes(pieces: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Yield (bits, how many) of each text and match, first bit lowest."""
    for piece in pieces:
        yield int.from_bytes(piece.text.translate(_LITERAL), "little"), 8 * len(piece.text)
        yield from (_MATCHES[length] for length in _run_codes(piece.run))
