"""Metrics of trials by their kind, each with its words and its grain.

A metric is a field of what trials of its kind measure: of ``testbed.model.PageLoad`` its load time
and what a visitor sees, of ``ServedLoad`` throughput, response times, failures.  Of most, less is
better.  Paints are rounded to 4 ms and the first byte to 0.1 ms by the browser (W3C Paint Timing,
section 2.4; High Resolution Time 3, section 9.1), so that moments which are no further apart may be
one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.words import number, seconds
from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean, stem
from testbed.model import RESOLUTION_MS

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

    @property
    def is_default(self) -> bool:
        """Whether it is what trials of its kind are judged by where no metric is named."""
        return self == self.default

    @property
    def default(self) -> Metric:
        """The metric that trials of its kind are judged by where none is named."""
        return next(metrics[0] for metrics in METRICS_OF.values() if self in metrics)

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
SERVED = (
    Metric(
        "replies_per_s",
        "throughput",
        "replies",
        0.0,
        labels="throughputs",
        unit="1/s",
        more=True,
        better="smaller",
    ),
    Metric("response_p50_ms", "median response time", "response p50", RESOLUTION_MS, places=2),
    Metric("response_mean_ms", "mean response time", "mean", RESOLUTION_MS, places=2),
    Metric("response_p99_ms", "99th percentile of response times", "p99", RESOLUTION_MS, places=2),
    Metric(
        "failed_pct",
        "share of failures",
        "failed",
        0.0,
        labels="shares of failures",
        unit="%",
        better="smaller",
    ),
    Metric(
        "server_cpu_pct",
        "load of the server's processor",
        "CPU",
        0.0,
        absent="the server's work was free (price = 0)",
        labels="loads of the server's processor",
        unit="%",
        better="smaller",
    ),
)
"""Of a load on a server."""
PROMISES = (
    Metric(
        "failed_checks",
        "number of failed checks",
        "failed checks",
        0.0,
        places=0,
        labels="numbers of failed checks",
        better="smaller",
    ),
)
"""Of a scenario: calls and packets that are not as promised."""
COMMANDS = (
    Metric("duration_ms", "duration", "duration", RESOLUTION_MS),
    Metric("exit_status", "exit status", "status", 0.0, places=0, labels="exit statuses",
           better="smaller"),
)  # fmt: skip
"""Of a command in the lab."""
METRICS_OF: dict[str, tuple[Metric, ...]] = {
    "page_load": (PLT, *MILESTONES),
    "server_load": SERVED,
    "scenario": PROMISES,
    "command": COMMANDS,
}
"""The metrics of each kind of trial; the first is meant where none is named."""
METRICS = {metric.name: metric for metrics in METRICS_OF.values() for metric in metrics}


def metric_for(kind: str, named: Metric) -> Metric:
    """Return the metric that trials of ``kind`` are judged by: ``named``, or their own default.

    PLT is what callers have where none was named.

    Raises:
        ConfigurationError: trials of this kind do not have the metric.
    """
    own = METRICS_OF[kind]
    if named in own:
        return named
    if named == PLT:
        return own[0]
    known = ", ".join(f"{each.name} ({each.label})" for each in own)
    raise ConfigurationError(
        [f"--metric {named.name}: trials of the kind {kind} are not measured by it; use {known}"]
    )


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
