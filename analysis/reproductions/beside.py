"""Stated values beside ours, of a publication that no module here rebuilds: its CSV is enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from analysis.published.names import find_metrics, scale
from analysis.published.reference import PublishedClaim, Reference
from analysis.published.stated import Stated
from analysis.records.cells import cells_of
from analysis.records.metric import Metric
from analysis.records.results import Results
from analysis.reproductions.agreement import check_claims
from analysis.reproductions.rebuilt import Check, Rebuilt
from analysis.reproductions.sweep import ends_of, published_for
from analysis.stats.estimates import Estimate
from analysis.tables.table import PAIR_AXIS, make_table
from analysis.words import name_axes

OURS = "ours"


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return each stated value beside the median of the cells that have its knobs.

    Raises:
        ConfigurationError: a quantity is no metric of these trials.
    """
    cells = cells_of(results)
    metrics = find_metrics(reference, cells[0].kind) if cells else {}
    checks = [
        check
        for one in reference.stated
        for check in _beside(one, metrics.get(one.quantity), results, reference)
    ]
    return Rebuilt(reference.title, checks=tuple(checks))


def _beside(
    one: Stated, metric: Metric | None, results: Results, reference: Reference
) -> Iterator[Check]:
    rows = _improvements(results) if metric is None else _medians(results, metric, one)
    name = one.quantity if metric is None else metric.label
    says = ", ".join(filter(None, (name, name_axes(one.axes, one.axes))))
    literal = says.replace("{", "{{").replace("}", "}}")
    claim = PublishedClaim(says=literal, quantity=one.quantity, measured=OURS)
    alone = reference.model_copy(update={"stated": (one,), "claims": [claim]})
    frame = pd.DataFrame(rows)
    yield from check_claims(alone, {"cells": published_for(frame, reference) if rows else frame})


def _medians(results: Results, metric: Metric, one: Stated) -> list[dict[str, Any]]:
    """Return a row for each cell: its knobs, and the metric's median in the stated unit."""
    divisor = scale(metric, one) or 1.0
    found = [(cell.axes, cell.by(metric).sample) for cell in cells_of(results)]
    return [_row(axes, sample.median if sample else None, divisor) for axes, sample in found]


def _improvements(results: Results) -> list[dict[str, Any]]:
    """Return a row for each pair of cells without and with Fast Open: what it saves, in percent."""
    pairs = make_table(cells_of(results), None).pairs
    found = [(pair.axes, pair.improvement_pct) for pair in pairs]
    return [
        dict(axes) | {PAIR_AXIS: True, OURS: spread.median if spread else None}
        for axes, spread in found
    ]


def _row(axes: dict[str, Any], median: Estimate | None, divisor: float) -> dict[str, Any]:
    low, high = ends_of(median)
    return dict(axes) | {
        OURS: None if median is None else median.value / divisor,
        f"{OURS}_low": low / divisor,
        f"{OURS}_high": high / divisor,
    }
