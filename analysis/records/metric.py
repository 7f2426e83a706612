"""Metrics of a page load: its load time and what a visitor sees, each with its words and its grain.

A metric is a field of ``testbed.model.PageLoad``.  Of each, less is better.  Paints are rounded to
4 ms and the first byte to 0.1 ms by the browser (W3C Paint Timing, section 2.4; High Resolution
Time 3, section 9.1), so that moments which are no further apart may be one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.words import number, seconds
from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean, stem
from testbed.experiment.stopping import RESOLUTION_MS
from testbed.model import PageLoad

PAINT_GRAIN_MS = 4.0


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
    """

    name: str
    label: str
    short: str
    grain: float
    absent: str = ""
    places: int = 1
    labels: str = ""
    better: str = "sooner"

    def __post_init__(self) -> None:
        """Make the plural, unless it is given."""
        object.__setattr__(self, "labels", self.labels or f"{self.label}s")

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
    def unit(self) -> str:
        """``ms``, or nothing."""
        return self.name[len(stem(self.name)) + 1 :]

    def column(self, *words: str, unit: str | None = None) -> str:
        """Return the name of a column: ``fcp_off_ms`` for ``off``; in ``unit`` if it is another."""
        ends = self.unit if unit is None else unit
        return "_".join(part for part in (stem(self.name), *words, ends) if part)

    def with_unit(self, value: str) -> str:
        """Return a number in words with the metric's unit, if it has one."""
        return f"{value} {self.unit}".rstrip()

    def write(self, value: float) -> str:
        """Return a value for people: times in seconds, without the unit."""
        return seconds(value) if self.unit else number(value, self.places)

    @property
    def written_in(self) -> str:
        """The unit of what ``write`` returns, with a space before it, if there is one."""
        return " s" if self.unit else ""

    def of(self, load: PageLoad) -> float | None:
        """Return the metric of ``load``; ``None`` where it has none."""
        value: float | None = getattr(load, self.name)
        return value if value is not None and math.isfinite(value) else None


PLT = Metric("plt_ms", "page load time", "PLT", RESOLUTION_MS, better="faster")
"""Of every client, and what is meant where none is named."""
MILESTONES = (
    Metric(
        "ttfb_ms",
        "time to first byte",
        "first byte",
        0.1,
        absent="the browser did not tell when the page began to arrive",
        labels="times to first byte",
    ),
    Metric(
        "fp_ms",
        "first paint",
        "first paint",
        PAINT_GRAIN_MS,
        absent="the page painted nothing",
        places=0,
    ),
    Metric(
        "fcp_ms",
        "first contentful paint",
        "contentful paint",
        PAINT_GRAIN_MS,
        absent="the page painted neither text nor a picture",
        places=0,
    ),
    Metric(
        "lcp_ms",
        "largest contentful paint",
        "largest paint",
        PAINT_GRAIN_MS,
        absent="the page painted neither text nor a picture that counts",
        places=0,
    ),
    Metric(
        "cls",
        "layout shift",
        "layout shift",
        0.0,
        absent="the page did not answer when it was asked",
        places=4,
        better="smaller",
    ),
)
"""What a visitor sees; browsers alone give it."""
METRICS = {metric.name: metric for metric in (PLT, *MILESTONES)}


def find_metric(name: str) -> Metric:
    """Return the metric of that name.

    Raises:
        ConfigurationError: there is none; the message lists those that there are.
    """
    if name not in METRICS:
        known = ", ".join(f"{each.name} ({each.label})" for each in METRICS.values())
        near = did_you_mean(name, METRICS)
        raise ConfigurationError([f"--metric {name}: no load is measured by it{near}; use {known}"])
    return METRICS[name]
