"""Text of an exact decoded and an exact transferred size, out of fixed parts and filler.

Filler is a comment of the language at hand.  Its inside is pseudo-random text followed by a run of
one character; the share of the two decides the compressed size.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from wings.pages.synthesis.deflate import Piece, gzip_size, write_gzip


class TooSmallError(Exception):
    """The fixed parts do not fit into the recorded size."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """How a language holds filler: between two marks, or ``single`` repeated where it is short."""

    opening: bytes
    closing: bytes
    single: bytes


HTML = Syntax(b"<!--", b"-->", b" ")
BLOCK = Syntax(b"/*", b"*/", b" ")
JSON = Syntax(b'["', b'"]', b"1")


@dataclass(frozen=True, slots=True)
class Fill:
    """A place for filler; it gets its ``weight``'s share of all filler bytes."""

    weight: float = 1.0


Template = Sequence[bytes | Fill]
SVG: Template = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1">', Fill(), b"</svg>"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Body:
    """A body as transferred, and how many bytes the browser makes of it."""

    data: bytes
    decoded_size: int
    gzipped: bool = False


def filler(seed: str, size: int) -> bytes:
    """Return ``size`` characters of pseudo-random base64 text that depend on ``seed`` alone."""
    raw = hashlib.shake_128(seed.encode()).digest(size * 3 // 4 + 3)
    return base64.b64encode(raw, b"._")[:size]


def write_identity(template: Template, syntax: Syntax, size: int, seed: str) -> Body:
    """Return the text, uncompressed, in exactly ``size`` bytes.

    Raises:
        TooSmallError: the fixed parts alone are larger.
    """
    lengths = _shares(template, size)
    noise = filler(seed, size)
    parts = _pieces(template, syntax, lengths, lengths, noise)
    return Body(b"".join(part.text for part in parts), size)


def write_gzipped(template: Template, syntax: Syntax, decoded: int, size: int, seed: str) -> Body:
    """Return the text in exactly ``decoded`` bytes, compressed to exactly ``size``.

    Raises:
        TooSmallError: the fixed parts do not fit, or the size asks for more compression than
            runs can give (about 158 to 1).
    """
    lengths = _shares(template, decoded)
    total = sum(lengths)
    if least_gzipped(template, syntax, decoded) > size:
        raise TooSmallError(f"{decoded} bytes cannot be compressed to {size}")
    noise = filler(seed, total)

    def pieces(random: int) -> list[Piece]:
        ends = [reached * random // max(total, 1) for reached in accumulate(lengths)]
        shares = [end - start for start, end in zip([0, *ends], ends, strict=False)]
        return _pieces(template, syntax, lengths, shares, noise)

    def fits(random: int) -> bool:
        parts = pieces(random)
        return gzip_size(sum(len(p.text) for p in parts), [p.run for p in parts]) <= size

    low, high = 0, total + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return Body(write_gzip(pieces(low), size), decoded, gzipped=True)


def least_gzipped(template: Template, syntax: Syntax, decoded: int) -> int:
    """Return bytes of the smallest gzip member that holds the text in ``decoded`` bytes.

    Raises:
        TooSmallError: the fixed parts alone are larger.
    """
    lengths = _shares(template, decoded)
    parts = _pieces(template, syntax, lengths, [0] * len(lengths), b"." * 3 * len(lengths))
    return gzip_size(sum(len(p.text) for p in parts), [p.run for p in parts])


def fixed_bytes(template: Template) -> int:
    """Return the bytes of the fixed parts."""
    return sum(len(part) for part in template if isinstance(part, bytes))


def _shares(template: Template, decoded: int) -> list[int]:
    fixed = fixed_bytes(template)
    free = decoded - fixed
    weights = [part.weight for part in template if isinstance(part, Fill)]
    if free < 0:
        raise TooSmallError(f"{fixed} bytes of fixed text, {decoded} recorded")
    total_weight = sum(weights)
    shares, allotted, reached = [], 0, 0.0
    for weight in weights[:-1]:
        reached += weight
        end = int(free * (reached / total_weight)) if total_weight else 0
        shares.append(end - allotted)
        allotted = end
    return [*shares, free - allotted]


def _pieces(
    template: Template, syntax: Syntax, lengths: Sequence[int], random: Sequence[int], noise: bytes
) -> list[Piece]:
    """Return the template's pieces; fill ``i`` has ``lengths[i]`` bytes, ``random[i]`` of noise."""
    parts: list[Piece] = []
    used = index = 0
    for part in template:
        if isinstance(part, bytes):
            parts.append(Piece(part))
            continue
        inner = lengths[index] - len(syntax.opening) - len(syntax.closing)
        if inner < 1:
            parts.append(Piece(syntax.single * lengths[index]))
        else:
            # The run repeats a noise character, never a mark; a run of 1 or 2 is not worth it.
            share = min(max(random[index], 1), inner)
            share = inner if inner - share < 3 else share
            parts.append(Piece(syntax.opening + noise[used : used + share], inner - share))
            parts.append(Piece(syntax.closing))
            used += share
        index += 1
    return parts
