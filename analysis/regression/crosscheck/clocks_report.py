"""Virtual against real time for people and for programs: text, JSON, and a page of its own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from analysis.regression.crosscheck.clocks import (
    TOLERANCE_PCT,
    Comparison,
    CrossCheck,
    Side,
    Verdict,
)
from analysis.regression.crosscheck.words import (
    Presented,
    align,
    kernel_name,
    render_crosscheck_page,
)
from analysis.words import axis_value, axis_word, clean, count, number, signed
from testbed.base.errors import (
    EXIT_INCOMPLETE,
    EXIT_INCONCLUSIVE,
    EXIT_OK,
    EXIT_OUT_OF_TOLERANCE,
)

SCHEMA_VERSION = 2
MEANINGS: dict[Verdict, str] = {
    "agrees": f"the load times are within {TOLERANCE_PCT:g} %",
    "explained": "they are not, and the browser computed for long enough to account for it",
    "differs": "they are not, and nothing that was measured accounts for it",
    "unclear": "the intervals are too wide to tell: run more repetitions",
    "no number": "a kernel has no proven load",
}
EXIT_CODES: dict[Verdict, int] = {
    "differs": EXIT_OUT_OF_TOLERANCE,
    "no number": EXIT_INCOMPLETE,
    "unclear": EXIT_INCONCLUSIVE,
}
"""By verdict, the gravest first."""


def present_check(check: CrossCheck) -> Presented:
    """Return all that is told of ``check``."""
    return Presented(
        render_text(check), describe_check(check), render_page(check), exit_code_of(check)
    )


def exit_code_of(check: CrossCheck) -> int:
    """Return the process's exit code for the gravest verdict."""
    found = check.counts
    return next((code for verdict, code in EXIT_CODES.items() if verdict in found), EXIT_OK)


def summary_lines(check: CrossCheck) -> list[str]:
    """Return the verdicts in sentences, worst last."""
    counts = check.counts
    lines = [
        f"{count(counts[verdict], 'cell')} of {len(check.comparisons)} "
        f"{'is' if counts[verdict] == 1 else 'are'} “{verdict}”: {meaning}."
        for verdict, meaning in MEANINGS.items()
        if verdict in counts
    ]
    gaps = [abs(saving.difference_ms) for saving in check.savings]
    if gaps:
        lines.append(f"What Fast Open saves differs by at most {number(max(gaps), 1)} ms.")
    return [*lines, *map(clean, check.notes)]


def render_text(check: CrossCheck) -> str:
    """Return the comparison as a table for a terminal, one line for each cell."""
    comparisons = check.comparisons
    columns = [
        [axis_word(name), *(axis_value(name, one.axes.get(name)) for one in comparisons)]
        for name in check.axes
    ]
    columns += [
        [kernel_name(check.base), *(_plt(one.base) for one in comparisons)],
        [kernel_name(check.real), *(_plt(one.real) for one in comparisons)],
        ["diff ms", *(signed(_likely(one), 1) for one in comparisons)],
        ["diff %", *(signed(one.difference_pct, 2) for one in comparisons)],
        ["CPU <=", *(number(one.cpu_ms, 0) for one in comparisons)],
        ["link <=", *(number(one.link_ms, 1) for one in comparisons)],
        ["late", *(number(one.real.worst_lateness_ms, 2) for one in comparisons)],
        ["slack <=", *(number(one.slack_ms, 1) for one in comparisons)],
        ["verdict", *(one.verdict for one in comparisons)],
    ]
    return "\n".join([*align(columns), "", *summary_lines(check)]) + "\n"


def describe_check(check: CrossCheck) -> dict[str, Any]:
    """Return everything as JSON-ready values, unrounded; a missing value is ``None``."""
    return {
        "schema": SCHEMA_VERSION,
        "tolerance_pct": TOLERANCE_PCT,
        "base": asdict(check.base),
        "real": asdict(check.real),
        "counts": check.counts,
        "cells": [
            {
                "condition": one.axes,
                "verdict": one.verdict,
                "difference_ms": one.difference_ms,
                "difference_pct": one.difference_pct,
                "cpu_ms": one.cpu_ms,
                "link_ms": one.link_ms,
                "slack_ms": one.slack_ms,
                "base": asdict(one.base),
                "real": asdict(one.real),
            }
            for one in check.comparisons
        ],
        "savings": [
            {**asdict(saving), "difference_ms": saving.difference_ms} for saving in check.savings
        ],
        "notes": list(check.notes),
    }


def render_page(check: CrossCheck) -> str:
    """Return the comparison as one page without external resources."""
    return render_crosscheck_page(
        "crosscheck.html.jinja",
        check=check,
        base=check.base,
        other=check.real,
        lead="The same page loads on two kernels: one in virtual time, where computing is free, "
        "one in real time.",
        lines=summary_lines(check),
        meanings=MEANINGS,
    )


def _plt(side: Side) -> str:
    if side.plt_ms is None:
        return side.status
    return f"{number(side.plt_ms.median.value, 1)} (n={side.plt_ms.n})"


def _likely(one: Comparison) -> float | None:
    return one.difference_ms[1] if one.difference_ms is not None else None
