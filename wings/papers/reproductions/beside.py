"""Stated values and claims beside ours, where no module rebuilds it: CSV and TOML are enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from analysis.records.cells import Cell, cells_of
from analysis.records.kind import records_of
from analysis.records.metric import Metric
from analysis.records.results import Results
from analysis.report.publications import Rebuilt, StatedCheck
from analysis.tables.table import PAIR_AXIS, make_table
from analysis.words import name_axes
from wings.papers.published.names import find_metrics, scale
from wings.papers.published.reference import PublishedClaim, Reference
from wings.papers.published.stated import Stated
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.sweep import ends_of, median_columns, proven_trials, published_for

OURS = "ours"


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return each stated value beside the median of the cells that have its knobs, and its claims.

    Raises:
        ConfigurationError: a quantity is no metric of these trials, or a claim names no column.
    """
    cells = cells_of(results)
    metrics = find_metrics(reference, cells[0].kind) if cells else {}
    frames: dict[tuple[str, str], pd.DataFrame] = {}
    checks: list[StatedCheck] = []
    for stated in reference.stated:
        metric, key = metrics.get(stated.quantity), (stated.quantity, stated.unit)
        if key not in frames:
            rows = _improvements(cells, OURS) if metric is None else _medians(cells, metric, stated)
            frames[key] = published_for(pd.DataFrame(rows), reference) if rows else pd.DataFrame()
        name = stated.quantity if metric is None else metric.label
        checks += _beside(stated, name, frames[key], reference)
    own = reference.model_copy(update={"stated": ()})
    checks += check_claims(
        own, _tables(results, cells, reference) if reference.claims and cells else {}
    )
    return Rebuilt(reference.title, checks=tuple(checks))


def _tables(
    results: Results, cells: Sequence[Cell], reference: Reference
) -> dict[str, pd.DataFrame]:
    """Return what claims are held to; intervals are beside medians (`median_columns`).

    ``cells``: each cell's knobs, and the medians of all that its trials measure.  ``pairs``: the
    knobs of each pair without and with Fast Open, and ``saved_pct``, what Fast Open saves.
    """
    trials = published_for(proven_trials(results), reference)
    axes = [
        name for name in dict.fromkeys(n for cell in cells for n in cell.axes) if name in trials
    ]
    pairs = _improvements(cells, "saved_pct")
    return {
        "cells": median_columns(trials, axes, records_of(cells[0].kind).measured),
        "pairs": published_for(pd.DataFrame(pairs), reference) if pairs else pd.DataFrame(),
    }


def _beside(
    stated: Stated, name: str, frame: pd.DataFrame, reference: Reference
) -> Iterator[StatedCheck]:
    says = ", ".join(filter(None, (name, name_axes(stated.axes, stated.axes))))
    literal = says.replace("{", "{{").replace("}", "}}")
    claim = PublishedClaim(says=literal, quantity=stated.quantity, measured=OURS)
    alone = reference.model_copy(update={"stated": (stated,), "claims": [claim]})
    return check_claims(alone, {"cells": frame})


def _medians(cells: Sequence[Cell], metric: Metric, stated: Stated) -> list[dict[str, Any]]:
    """Return a row for each cell: its knobs, and the metric's median in the stated unit."""
    divisor = scale(metric, stated) or 1.0
    rows = []
    for cell in cells:
        sample = cell.by(metric).sample
        median = sample.median if sample else None
        low, high = ends_of(median)
        rows.append({**cell.axes, OURS: None if median is None else median.value / divisor,
                     f"{OURS}_low": low / divisor, f"{OURS}_high": high / divisor})  # fmt: skip
    return rows


def _improvements(cells: Sequence[Cell], name: str) -> list[dict[str, Any]]:
    """Return a row for each pair: what Fast Open saves, in percent, as the column ``name``."""
    rows = []
    for pair in make_table(cells, None).pairs:
        low, high = ends_of(pair.shift.percent if pair.shift else None)
        gain = pair.improvement_pct.median if pair.improvement_pct else None
        rows.append(
            {**pair.axes, PAIR_AXIS: True, name: gain, f"{name}_low": low, f"{name}_high": high}
        )
    return rows
