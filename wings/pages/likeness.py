"""Likeness of a replay to its recording: functions that ran in both, and pictures of both.

Source: Z. Wang and others, Image Quality Assessment: From Error Visibility to Structural
Similarity, 2004; PNG, third edition.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from testbed.base.errors import ConfigurationError
from wings.pages.fidelity import FIDELITY_NAME, Seen

_WINDOW = 8
_STEADY = (0.01 * 255) ** 2, (0.03 * 255) ** 2
_GREY = np.array([0.299, 0.587, 0.114])
_CHANNELS = {0: 1, 2: 3, 6: 4}
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Likeness:
    """How a replay is like the recording: functions that ran in both, and pictures, 1 for equal.

    ``less`` are scripts of which less ran, most lost first, with both numbers.
    """

    recorded: int
    ran: int
    more: int
    less: tuple[tuple[str, int, int], ...]
    similarity: float

    def lines(self) -> list[str]:
        """Return it in words."""
        share = 100 * self.ran / self.recorded if self.recorded else 100.0
        shown = [f"less ran of {url}: {ran} of {recorded}" for url, ran, recorded in self.less]
        return [
            f"scripts: {self.ran} of {self.recorded} functions ran that ran when it was recorded "
            f"({share:.1f} %), and {self.more} others",
            *shown[:_SHOWN],
            f"pixels: structural similarity {self.similarity:.3f} (1: the same picture)",
        ]


def compare_seen(recorded: Seen, replayed: Seen) -> Likeness:
    """Return how a replay is like the recording.

    Raises:
        ConfigurationError: the recorded picture is damaged.
    """
    both, more, less = 0, 0, []
    for url in {**recorded.functions, **replayed.functions}:
        one, other = (Counter(seen.functions.get(url, ())) for seen in (recorded, replayed))
        ran = (one & other).total()
        both += ran
        more += other.total() - ran
        if ran < one.total():
            less.append((url, ran, one.total()))
    less.sort(key=lambda each: each[1] - each[2])
    try:
        pictures = read_grey(recorded.picture), read_grey(replayed.picture)
    except (ValueError, KeyError, struct.error, zlib.error) as error:
        raise ConfigurationError([f"{FIDELITY_NAME}: its picture is damaged: {error}"]) from None
    total = sum(map(len, recorded.functions.values()))
    return Likeness(total, both, more, tuple(less), find_similarity(*pictures))


def find_similarity(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the mean structural similarity of two grey pictures; 0 for those of unlike sizes."""
    if one.shape != other.shape or min(one.shape) < _WINDOW:
        return 0.0

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        means: NDArray[np.float64] = sliding_window_view(values, (_WINDOW, _WINDOW)).mean((2, 3))
        return means

    (m1, m2), (c1, c2) = (mean(one), mean(other)), _STEADY
    v1, v2 = mean(one * one) - m1 * m1, mean(other * other) - m2 * m2
    shared = mean(one * other) - m1 * m2
    alike = (2 * m1 * m2 + c1) * (2 * shared + c2)
    return float((alike / ((m1 * m1 + m2 * m2 + c1) * (v1 + v2 + c2))).mean())


def read_grey(png: bytes) -> NDArray[np.float64]:
    """Return a picture's grey levels, 0 to 255, by row.

    Raises:
        ValueError, KeyError, struct.error, zlib.error: it is no PNG of the kind that DevTools makes
            (8 bits, no palette, not interlaced).
    """
    pixels = read_png(png).astype(np.float64)
    return pixels @ _GREY if pixels.shape[2] == len(_GREY) else pixels[:, :, 0]


def read_png(png: bytes) -> NDArray[np.uint8]:
    """Return a picture's values by row, pixel and channel, without transparency; see above."""
    width, height, depth, kind, _, _, interlaced = struct.unpack_from(">IIBBBBB", png, 16)
    if depth != 8 or interlaced:
        raise ValueError("a picture of another kind")
    channels, packed, place = _CHANNELS[kind], b"", 8
    while place < len(png):
        size, name = struct.unpack_from(">I4s", png, place)
        packed += png[place + 8 : place + 8 + size] if name == b"IDAT" else b""
        place += size + 12
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    rows = np.zeros((height + 1, width, channels), np.int64)
    for row, line in enumerate(lines, start=1):
        rows[row] = _unfilter(line[0], line[1:].reshape(width, channels), rows[row - 1])
    colours = min(channels, 3)
    return rows[1:, :, :colours].astype(np.uint8)


def _unfilter(
    kind: int, line: NDArray[np.uint8], above: NDArray[np.int64]
) -> NDArray[np.int64] | list[list[int]]:
    values = line.astype(np.int64)
    if kind <= 2:
        return (values.cumsum(0) if kind == 1 else values + above * (kind == 2)) % 256
    left = corner = [0] * line.shape[1]
    done = []
    for pixel, up in zip(values.tolist(), above.tolist(), strict=True):
        if kind == 3:
            nearest = [(a + b) // 2 for a, b in zip(left, up, strict=True)]
        else:
            nearest = [_paeth(*each) for each in zip(left, up, corner, strict=True)]
        left, corner = [(x + n) % 256 for x, n in zip(pixel, nearest, strict=True)], up
        done.append(left)
    return done


def _paeth(left: int, up: int, corner: int) -> int:
    return min((left, up, corner), key=lambda each: abs(left + up - corner - each))
