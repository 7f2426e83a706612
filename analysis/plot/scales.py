"""Scales of a still figure: from values to px, the ticks of an axis, and the width of its text.

Ticks are those of D3 (1, 2 or 5 times a power of ten).  Widths are Arial's, which Liberation Sans
and Helvetica share: Adobe Font Metrics of Helvetica, in thousandths of the size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.words import MINUS

WIDTHS = (278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556,
          556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722,
          722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722,
          667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556,
          556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,
          500, 334, 260, 334, 584)  # fmt: skip
"""Of the characters from space to tilde."""
OTHER_WIDTH = 600
PX_A_TICK = 40


@dataclass(frozen=True, slots=True)
class LinearScale:
    """Numbers from ``low`` to ``high`` over the px from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of ``value`` in px."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int | None = None) -> list[tuple[float, str]]:
        """Return about ``most`` round values between both ends, each with its text."""
        intervals = most or math.ceil(abs(self.end - self.start) / PX_A_TICK)
        step = step_of(self.high - self.low, intervals)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        places = max(0, -math.floor(math.log10(step) + 1e-9))
        return [
            (n * step, f"{n * step:,.{places}f}".replace("-", MINUS))
            for n in range(first, last + 1)
        ]


@dataclass(frozen=True, slots=True)
class LogScale:
    """Positive numbers from ``low`` to ``high`` over px: equal ratios are equal distances."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of ``value`` in px."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, _most: int | None = None) -> list[tuple[float, str]]:
        """Return the powers of ten; over less than two of them also 2 and 5 times each."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if self.high < 100 * self.low else (1,)
        values = (step * 10.0**power for power in range(first, last + 1) for step in steps)
        return [
            (value, f"{value:,.10g}")
            for value in values
            if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)
        ]


@dataclass(frozen=True, slots=True)
class BandScale:
    """Names, each in the middle of an equal part of the px from ``start`` to ``end``."""

    names: tuple[str, ...]
    start: float
    end: float

    @property
    def step(self) -> float:
        """Px of one name."""
        return (self.end - self.start) / len(self.names)

    def at(self, name: str) -> float:
        """Return the middle of the part of ``name``."""
        return self.start + (self.names.index(name) + 0.5) * self.step


NumberScale = LinearScale | LogScale
Scale = NumberScale | BandScale


def make_scale(
    specification: dict[str, Any], values: Sequence[float], start: float, end: float
) -> NumberScale:
    """Return the scale that Vega-Lite's ``scale`` property asks for, over all ``values``."""
    if specification.get("type") == "log":
        low, high = min(values), max(values)
        low, high = (10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high)))
        return LogScale(low, high if high > low else 10 * low, start, end)
    domain = specification.get("domain")
    low, high = domain or (min(values, default=0.0), max(values, default=1.0))
    if not domain and specification.get("zero", True):
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = (low - 0.5, high + 0.5) if low else (0.0, 1.0)
    nice = specification.get("nice", not domain)
    if nice:
        step = step_of(high - low, 10 if nice is True else nice)
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    padding = specification.get("padding", 0)
    room = (high - low) * padding / (abs(end - start) - 2 * padding)
    if specification.get("reverse"):
        start, end = end, start
    return LinearScale(low - room, high + room, start, end)


def step_of(span: float, most: int) -> float:
    """Return the round step that divides ``span`` into about ``most`` parts."""
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    excess = raw / power
    return power * next(
        n for n, least in ((10, math.sqrt(50)), (5, math.sqrt(10)), (2, math.sqrt(2)), (1, 0))
        if excess >= least
    )  # fmt: skip


def text_px(text: str, size_px: float = 12.0, bold: bool = False) -> float:
    """Return the width of ``text`` in px."""
    wide = sum(WIDTHS[ord(c) - 32] if " " <= c <= "~" else OTHER_WIDTH for c in text)
    return wide * size_px / 1000.0 * (1.07 if bold else 1.0)


def wrap_px(text: str, width_px: float, size_px: float = 12.0, bold: bool = False) -> list[str]:
    """Return ``text`` in lines of at most ``width_px``, broken between words."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_px(longer, size_px, bold) <= width_px:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def shorten_px(text: str, width_px: float) -> str:
    """Return ``text``, cut to ``width_px`` if it is wider."""
    if text_px(text) <= width_px:
        return text
    while text and text_px(f"{text}…") > width_px:
        text = text[:-1]
    return f"{text}…"
