"""Metric of trials, with its words and its grain: a field of what trials of a kind measure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.words import number, seconds
from testbed.base.suggest import stem
from testbed.model import RESOLUTION_MS


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that loads are judged by.

    Attributes:
        name: the field of a load; it ends in its unit, if it has one.
        label: the metric in the middle of a sentence; ``labels`` are several of it.
        short: the metric in the heading of a column.
        grain: values that are no further apart may be equal; in the metric's unit.
        absent: why a load whose client can give it has none.
        places: decimals of a value for people.
        better: what a load becomes in it when the value gets smaller.
        unit: ``ms`` or another; empty if it has none.
        more: whether a larger value is better.
    """

    name: str
    label: str
    short: str
    grain: float
    absent: str = ""
    places: int = 1
    labels: str = ""
    better: str = "sooner"
    unit: str = ""
    more: bool = False

    def __post_init__(self) -> None:
        """Make the plural, and find the unit in the name, unless they are given."""
        object.__setattr__(self, "labels", self.labels or f"{self.label}s")
        object.__setattr__(self, "unit", self.unit or self.name[len(stem(self.name)) + 1 :])

    @property
    def word(self) -> str:
        """The label where it is clear that a page is loaded: ``load time``."""
        return self.label.removeprefix("page ")

    @property
    def words(self) -> str:
        """Several of ``word``."""
        return self.labels.removeprefix("page ")

    @property
    def thing(self) -> str:
        """What gets ``better``: ``page load``."""
        return self.label.removesuffix(" time")

    @property
    def is_time(self) -> bool:
        """Whether it is a duration."""
        return self.unit == "ms"

    def column(self, *words: str, unit: str | None = None) -> str:
        """Return the name of a column: ``fcp_off_ms`` for ``off``; in ``unit`` if it is another."""
        ends = self.unit if unit is None else unit
        return "_".join(part for part in (stem(self.name), *words, ends) if part)

    def with_unit(self, value: str) -> str:
        """Return a number in words with the metric's unit, if it has one."""
        return f"{value} {self.unit}".rstrip()

    def write(self, value: float) -> str:
        """Return a value for people: times in seconds, without the unit."""
        return seconds(value) if self.is_time else number(value, self.places)

    @property
    def written_in(self) -> str:
        """The unit of what ``write`` returns, with a space before it, if there is one."""
        return " s" if self.is_time else ""

    def of(self, measured: object | None) -> float | None:
        """Return the metric of what was measured; ``None`` where it has none."""
        value: float | None = getattr(measured, self.name, None)
        kind, timed, name = self.name.partition(":")
        if timed:  # what a page or its servers timed themselves (testbed.model.PageTiming)
            own = (e for e in getattr(measured, "timings", ()) if (e.kind, e.name) == (kind, name))
            value = next((e.lasted_ms if kind in LASTING else e.start_ms for e in own), None)
        return value if value is not None and math.isfinite(value) else None


LASTING = ("measure", "server")
TIMED = ("mark", "element", *LASTING)
"""What a page times itself: a metric by the kind and its name, ``mark:shown``."""
PLT = Metric("plt_ms", "page load time", "PLT", RESOLUTION_MS, better="faster")
"""The time of a page load, and what is meant where no metric is named."""
