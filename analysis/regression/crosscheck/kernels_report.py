"""Two virtual kernels for people and for programs: text, JSON, and a page of its own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from analysis.regression.crosscheck.clocks_report import SCHEMA_VERSION
from analysis.regression.crosscheck.kernels import (
    CHANGE_PCT,
    Change,
    KernelCross,
    Overview,
    overview,
)
from analysis.regression.crosscheck.kernels_words import (
    MEANINGS,
    describe_wire,
    first_packet,
    name_cell,
    render_text,
    summary_lines,
)
from analysis.regression.crosscheck.words import Presented, kernel_name, render_crosscheck_page
from testbed.base.errors import EXIT_INCOMPLETE, EXIT_OK


def present_kernels(cross: KernelCross) -> Presented:
    """Return all that is told of ``cross``; a change is a result, and no failure."""
    code = EXIT_INCOMPLETE if cross.counts.get("no number") else EXIT_OK
    return Presented(render_text(cross), describe_cross(cross), render_page(cross), code)


def describe_cross(cross: KernelCross) -> dict[str, Any]:
    """Return everything as JSON-ready values, unrounded; a missing value is ``None``."""
    whole = overview(cross.changes)
    return {
        "schema": SCHEMA_VERSION,
        "change_pct": CHANGE_PCT,
        "base": asdict(cross.base),
        "other": asdict(cross.other),
        "counts": cross.counts,
        "overview_pct": _overview(whole) if whole else None,
        "overview_pct_by_client": {n: _overview(one) for n, one in cross.overviews.items()},
        "cells": [_describe(change) for change in cross.changes],
        "savings": [
            {**asdict(saving), "difference_ms": saving.difference_ms} for saving in cross.savings
        ],
        "notes": list(cross.notes),
    }


def render_page(cross: KernelCross) -> str:
    """Return the comparison as one page without external resources."""
    return render_crosscheck_page(
        "crosskernels.html.jinja",
        check=cross,
        base=cross.base,
        other=cross.other,
        lead=f"The same page loads on {kernel_name(cross.base)} and on "
        f"{kernel_name(cross.other)}, in virtual time: nothing but the kernel is another one.",
        lines=summary_lines(cross),
        meanings=MEANINGS,
        name_of=lambda change: name_cell(change, cross.axes),
        largest=[one.largest for one in cross.overviews.values()],
        first_packet=first_packet,
        wire_of=describe_wire,
    )


def _overview(one: Overview) -> dict[str, Any]:
    return {
        "cells": one.cells,
        "median": one.median,
        "low": one.low,
        "high": one.high,
        "largest": one.largest.axes,
        "partings": one.partings,
    }


def _describe(change: Change) -> dict[str, Any]:
    wire = change.wire
    return {
        "condition": change.axes,
        "direction": change.direction,
        "equal": change.equal,
        "n": change.n,
        "base_ms": change.base_ms,
        "other_ms": change.other_ms,
        "difference_ms": asdict(change.ms) if change.ms else None,
        "difference_pct": asdict(change.percent) if change.percent else None,
        "status": change.status,
        "packets": wire.packets if wire else None,
        "retransmits": wire.retransmits if wire else None,
        "parting": wire.parting if wire else None,
        "first_difference": describe_wire(change) if wire and wire.difference else None,
        "captures_problem": wire.problem if wire else None,
    }
