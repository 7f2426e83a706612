"""The table of kernels as a JSON document: its fields and what they mean."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, TypedDict

from analysis.records.cells import Axes
from analysis.records.kernel_warnings import KernelWarning
from analysis.verdicts.compare.attribution import Attributed, CellAttribution
from analysis.verdicts.compare.comparison import CellFinding
from analysis.verdicts.compare.family import Family
from wings.kernels.verdicts.answer import answer
from wings.kernels.verdicts.table import Attribution, FailOn, FailRule, LaneVerdicts, came_to
from wings.kernels.verdicts.terminal import evidence, name_row

SCHEMA_VERSION = 1

_Fields = dict[str, Any]


class KernelCellDocument(TypedDict):
    """One cell on one later kernel."""

    name: str
    """The cell in words, by the knobs that tell cells apart."""
    condition: Axes
    """Its knobs, by name ([knobs](knobs.md))."""
    base: float | None
    """The metric's median in the base; null where it has none."""
    new: float | None
    """The same on the later kernel."""
    flagged: bool
    """Whether it fails by `fail_on`."""
    attribution: Annotated[_Fields | None, CellAttribution]
    """What it came to."""
    packets: tuple[int, int] | None
    """How many packets one trial has on both kernels, the base's first; null without captures."""
    retransmits: tuple[int, int] | None
    """How many segments that trial retransmitted, the base's first."""
    evidence: list[str]
    """The first packet that differs, and the counters that part, in lines."""


class KernelDocument(TypedDict):
    """A later kernel beside the first."""

    name: str
    """The kernel's version, or its own name."""
    folder: str
    """Its results folder."""
    answer: str
    """What it does to the metric, in a sentence."""
    families: list[Annotated[_Fields, Family]]
    """What the cells of each client came to together whose loads a seed draws."""
    counts: dict[Attributed, int]
    """How many cells came to what, by verdict."""
    median_pct: float | None
    """By how many percent the metric of a cell grew, in the median of all."""
    extreme_pct: float | None
    """The largest change of a cell, in either direction."""
    misses: str
    """What of its patches this kernel has not, so that no cell can show it; empty if nothing."""
    broken_by: list[Annotated[_Fields, KernelWarning]]
    """What this kernel complained of on its consoles and the base did not; `trials` are those of
    the first such cell."""
    base_says: list[Annotated[_Fields, KernelWarning]]
    """What the base complained of itself."""
    cells: list[KernelCellDocument]
    """Every cell of the base, in the order of its table."""


class AttributionDocument(TypedDict):
    """Several virtual kernels beside the first: what every cell came to.

    Of a run on several virtual kernels, in its own folder; `./run.sh compare DIR --json` prints it
    as well ([what it means](../wings/kernels/README.md#verdicts)).
    """

    schema: int
    """The schema of this document."""
    base_name: str
    """The first kernel's version, or its own name."""
    base: str
    """Its results folder."""
    metric: str
    """What loads were judged by."""
    fail_on: FailOn
    """What fails (`--fail-on`)."""
    least_pct: float
    """By how many percent a cell must be slower to fail (`--min-effect`)."""
    flagged: int
    """How many cells fail, over all kernels."""
    exit_code: int
    """The exit code of `compare`."""
    kernels: list[KernelDocument]
    """The later kernels, in the order of the run."""


def describe_attribution(attribution: Attribution, rule: FailRule) -> AttributionDocument:
    """Return everything as JSON-ready values, unrounded; a missing value is ``None``."""
    return {"schema": SCHEMA_VERSION, "base_name": attribution.base_name, "base": attribution.base,
            "metric": attribution.metric.name, "fail_on": rule.on, "least_pct": rule.least_pct,
            "flagged": attribution.flagged(rule), "exit_code": attribution.exit_code(rule),
            "kernels": [_lane(attribution, lane, rule) for lane in attribution.lanes]}  # fmt: skip


def _lane(attribution: Attribution, lane: LaneVerdicts, rule: FailRule) -> KernelDocument:
    extreme = came_to(lane.extreme).pct if lane.extreme is not None else None
    return {"name": lane.name, "folder": lane.comparison.new, "answer": answer(lane),
            "families": [asdict(family) for family in lane.families], "counts": lane.counts,
            "median_pct": lane.median_pct,
            "extreme_pct": extreme.value if extreme else None,
            "misses": lane.comparison.misses,
            "broken_by": [asdict(warning) for warning in lane.kernel_warnings],
            "base_says": [asdict(warning) for warning in lane.base_kernel_warnings],
            "cells": [_cell(attribution, cell, rule) for cell in lane.cells]}  # fmt: skip


def _cell(attribution: Attribution, cell: CellFinding, rule: FailRule) -> KernelCellDocument:
    return {"name": name_row(attribution, cell), "condition": cell.axes,
            "base": cell.base.median_ms if cell.base else None,
            "new": cell.new.median_ms if cell.new else None, "flagged": rule.flags(cell),
            "attribution": asdict(came_to(cell)),
            "packets": cell.change.packets if cell.change else None,
            "retransmits": cell.change.retransmits if cell.change else None,
            "evidence": evidence(cell)}  # fmt: skip
