"""Stated values beside ours, of a publication that no module here rebuilds: its CSV is enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from analysis.published.names import find_metrics, scale
from analysis.published.reference import PublishedClaim, Reference
from analysis.published.stated import Stated
from analysis.records.cells import Cell, cells_of
from analysis.records.metric import Metric
from analysis.records.results import Results
from analysis.reproductions.agreement import check_claims
from analysis.reproductions.rebuilt import Check, Rebuilt
from analysis.reproductions.sweep import ends_of, published_for
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
    frames: dict[tuple[str, str], pd.DataFrame] = {}
    checks: list[Check] = []
    for stated in reference.stated:
        metric, key = metrics.get(stated.quantity), (stated.quantity, stated.unit)
        if key not in frames:
            rows = _improvements(cells) if metric is None else _medians(cells, metric, stated)
            frames[key] = published_for(pd.DataFrame(rows), reference) if rows else pd.DataFrame()
        name = stated.quantity if metric is None else metric.label
        checks += _beside(stated, name, frames[key], reference)
    return Rebuilt(reference.title, checks=tuple(checks))


def _beside(
    stated: Stated, name: str, frame: pd.DataFrame, reference: Reference
) -> Iterator[Check]:
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
        rows.append({
            **cell.axes,
            OURS: None if median is None else median.value / divisor,
            f"{OURS}_low": low / divisor,
            f"{OURS}_high": high / divisor,
        })  # fmt: skip
    return rows


def _improvements(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return a row for each pair of cells without and with Fast Open: what it saves, in percent."""
    return [
        {
            **pair.axes,
            PAIR_AXIS: True,
            OURS: pair.improvement_pct.median if pair.improvement_pct else None,
        }
        for pair in make_table(cells, None).pairs
    ]
