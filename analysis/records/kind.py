"""Description of a kind of trial for its records: metrics, axes, columns, what a record must hold.

That of the kind NAME is in ``analysis/kinds/NAME/records.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from typing import Any

from analysis.records.metric import PLT, TIMED, Metric
from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.kinds import KINDS
from testbed.model import Record
from testbed.model.settings import FAMILIES

COUNTED = ("connections", "syns_with_payload", "retransmits", "server_retransmits")
"""What the packet capture of any trial counts: fields of its proof."""
ReadClient = Callable[[Record], tuple[str, str] | None]
"""From a record to its client and the client's version."""


@dataclass(frozen=True, slots=True)
class RecordKind:
    """What records of a kind hold.

    Attributes:
        metrics: what its trials are judged by; the first is meant where none is named.
        holds: what an ``ok`` record must hold, in words: it has measured nothing else.
        knobs: the knobs of its conditions, by leaf name, as columns of a frame.
        axes: those that each table begins with, whatever else varies.
        columns: what a frame has after knobs and metrics: fields of the proof, of what was
            measured, or ``values``.
        words: the columns of text that stand before the metrics.
        values: columns of a proven record that are no such fields.
        lack: what else an ``ok`` record lacks; ``None``: nothing.
        client: the record's client and its version, if it has one.
        unshown: fields of a condition that are no axes.
        tcp_alone: whether what performs a trial follows from its seed and the network, so that any
            difference between two kernels is TCP's.
        paired: whether two conditions that differ in Fast Open alone are compared, where it was
            swept: as pairs, and by what it saves.
        unless_default: defaults of knobs that a table shows where a cell has another value.
        side_by_side: metrics that a table has beside the first, others having their own; ``None``:
            all.
        offered: how the help of ``--metric`` names the metrics ``{}`` of the kind; empty: not.
    """

    metrics: tuple[Metric, ...]
    holds: str
    knobs: tuple[str, ...]
    axes: tuple[str, ...]
    columns: tuple[str, ...] = COUNTED
    words: tuple[str, ...] = ()
    values: Callable[[Record], dict[str, Any]] = lambda _record: {}
    lack: Callable[[Record], str | None] = lambda _record: None
    client: ReadClient = lambda _record: None
    unshown: tuple[str, ...] = ()
    tcp_alone: bool = False
    paired: bool = False
    unless_default: Mapping[str, Any] = field(default_factory=dict)
    side_by_side: tuple[Metric, ...] | None = None
    offered: str = ""

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns of a frame that hold numbers."""
        return (*(metric.name for metric in self.metrics), *self.columns)


def analysis_of(kind: str) -> str:
    """Return the name of the package that analyses a kind: ours, or that in the kind's wing."""
    package = KINDS[kind].package
    return f"analysis.kinds.{kind}" if package.startswith("testbed.") else f"{package}.analysis"


@cache
def read_description(kind: str, room: str) -> Any:
    """Return what ``room`` is told of a kind: DESCRIPTION in the kind's module ``ROOM``.

    Raises:
        ConfigurationError: there is no such kind.
    """
    if kind not in KINDS:
        known = ", ".join(KINDS)
        raise ConfigurationError(
            [f"no kind of trial is called {kind!r}{did_you_mean(kind, KINDS)}; there are {known}"]
        )
    return import_module(f"{analysis_of(kind)}.{room}").DESCRIPTION


def records_of(kind: str) -> RecordKind:
    """Return the description of a kind for its records.

    Raises:
        ConfigurationError: there is no such kind.
    """
    description: RecordKind = read_description(kind, "records")
    return description


def defaults_of(spec: type, *knobs: str) -> dict[str, Any]:
    """Return the defaults of ``knobs``, which are fields of ``spec``."""
    defaults = {knob.name: knob.default for knob in fields(spec)}
    return {knob: defaults[knob] for knob in knobs}


def leaves_of(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a nested mapping holds by leaf name; settings as in --set."""
    axes: dict[str, Any] = {}
    for name, value in tree.items():
        family = f"{name}." if name in FAMILIES else ""
        for leaf, inner in leaves_of(value).items() if isinstance(value, Mapping) else ():
            axes[family + leaf] = inner
        if not isinstance(value, Mapping):
            axes[name] = value
    return axes


def all_metrics() -> Iterator[Metric]:
    """Yield the metrics of all kinds."""
    for kind in KINDS:
        yield from records_of(kind).metrics


def default_beside(metric: Metric) -> Metric:
    """Return the metric that trials of the kind of ``metric`` are judged by where none is named."""
    own = (records_of(kind).metrics for kind in KINDS)
    return next((metrics[0] for metrics in own if metric in metrics), PLT)


def is_default(metric: Metric) -> bool:
    """Return whether trials are judged by ``metric`` where none is named."""
    return metric == default_beside(metric)


def metric_for(kind: str, named: Metric) -> Metric:
    """Return the metric that trials of ``kind`` are judged by: ``named``, or their own default.

    PLT is what callers have where none was named.

    Raises:
        ConfigurationError: trials of this kind do not have the metric.
    """
    own = records_of(kind).metrics
    if named in own or (own[0] == PLT and named.name.partition(":")[0] in TIMED):
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
    metrics = {metric.name: metric for metric in all_metrics()}
    if name.partition(":")[0] in TIMED and ":" in name:
        return Metric(name, name, name, 0.1, absent="the page has no such timing", unit="ms")
    if name not in metrics:
        known = ", ".join(f"{each.name} ({each.label})" for each in metrics.values())
        near = did_you_mean(name, metrics)
        raise ConfigurationError([f"--metric {name}: no load is measured by it{near}; use {known}"])
    return metrics[name]
