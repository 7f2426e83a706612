"""A comparison as documents: JSON values, JUnit XML, a Markdown comment, and an HTML page.

JUnit: a test case for each cell.  Different is a failure; inconclusive is skipped, since nothing
failed and nothing was shown; the exit code distinguishes it from success.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.formats.lines import plain
from analysis.formats.markdown import escape, escape_html, make_table
from analysis.formats.suites import Case, State, Suite, write_junit
from analysis.verdicts.compare.comparison import CellFinding, Comparison, Side, Verdict
from analysis.verdicts.compare.kernels import Kernels, Overview
from analysis.verdicts.compare.schema import CellDocument, ComparisonDocument, KernelsDocument
from analysis.verdicts.compare.sentences import (
    columns_of,
    first_packet,
    headline,
    median_of,
    moved_of,
    name_cell,
    notes_of,
    packet_lines,
    sentence,
    size_of,
    verdict_words,
)
from analysis.words import capitalised, count, name_axes
from testbed.base.whole_file import write_whole
from testbed.capture.difference import describe_difference

SCHEMA_VERSION = 1
JUNIT_CLASS = "firstflight.compare"
SIGNS: dict[Verdict, str] = {"different": ":x:", "inconclusive": ":grey_question:",
                             "same": ":white_check_mark:"}  # fmt: skip
STATES: dict[Verdict, State] = {"different": "failed", "inconclusive": "skipped", "same": "passed"}
BADGES: dict[Verdict, str] = {"different": "bad", "inconclusive": "warn", "same": "good"}
MAX_CELLS = 50
"""A comment holds 65536 characters."""
MAX_DETAILS = 10


def write_files(
    comparison: Comparison, junit: Path | None = None, markdown: Path | None = None,
    html: Path | None = None,
) -> None:  # fmt: skip
    """Write JUnit XML, a Markdown comment and an HTML page where they are asked for.

    Raises:
        StorageError: a file cannot be written.
    """
    for path, render in ((junit, render_junit), (markdown, render_markdown), (html, render_page)):
        if path is not None:
            write_whole(path, render(comparison), "make its folder, or choose another place")


def describe_comparison(comparison: Comparison) -> ComparisonDocument:
    """Return everything as JSON-ready values, unrounded; a missing value is ``None``.

    ``cells`` are in the order of the base's table; ``kernels`` is there where they are two.
    """
    document: ComparisonDocument = {
        "schema": SCHEMA_VERSION, "verdict": comparison.verdict, "exit_code": comparison.exit_code,
        "headline": headline(comparison), "base": comparison.base, "new": comparison.new,
        "kernel": comparison.kernel, "alpha": comparison.alpha,
        "min_effect_pct": comparison.min_effect_pct, "allow_faster": comparison.allow_faster,
        "metric": comparison.metric.name, "counts": comparison.counts,
        "under_test": {
            "environment": [asdict(part) for part in comparison.parts],
            "knobs": {name: {"base": a, "new": b} for name, (a, b) in comparison.knobs.items()},
        },
        "cells": [_cell(comparison, cell) for cell in comparison.cells],
        "gains": [_cell(comparison, cell) for cell in comparison.gains],
        "uniform_p": comparison.uniform, "added": list(comparison.added),
        "notes": list(comparison.notes),
    }  # fmt: skip
    if comparison.kernels is not None:
        document["kernels"] = _kernels(comparison, comparison.kernels)
    return document


def render_junit(comparison: Comparison) -> str:
    """Return the XML document; times are 0, since a comparison of cells takes none that matters."""
    facts = ("base", "new", "kernel", "alpha", "min_effect_pct")
    suite = Suite(
        "firstflight compare",
        cases_of(comparison),
        {n: str(getattr(comparison, n)) for n in facts} | {"metric": comparison.metric.name},
        "\n".join([*notes_of(comparison), headline(comparison)]),
    )
    return write_junit(suite.name, JUNIT_CLASS, [suite], timed=False)


def cases_of(comparison: Comparison) -> list[Case]:
    """Return a test case for each cell and each gain."""
    return [_case(comparison, cell) for cell in (*comparison.cells, *comparison.gains)]


def render_markdown(comparison: Comparison) -> str:
    """Return a comment for a pull request: verdict, changed cells, folded details."""
    rows = (*comparison.worst_first, *comparison.gains)
    cells = [cell for cell in rows if cell.verdict != "same"]
    what = capitalised(comparison.metric.labels)
    lines = [f"### {SIGNS[comparison.verdict]} {what}: {escape(headline(comparison))}", ""]
    lines += [f"{escape(comparison.new)} against {escape(comparison.base)}.", ""]
    lines += _table(comparison, cells[:MAX_CELLS])
    if len(cells) > MAX_CELLS:
        lines += [f"... and {count(len(cells) - MAX_CELLS, 'more cell')}.", ""]
    for cell in cells[:MAX_DETAILS]:
        lines += _details(comparison, cell)
    notes = (f"- {escape(note)}" for note in notes_of(comparison))
    return plain("\n".join([*lines, *notes])) + "\n"


def render_page(comparison: Comparison) -> str:
    """Return the comparison as one HTML page without external resources or scripts."""
    # Imported here: the other forms need no templates.
    from analysis.report.rendering import TEMPLATES, open_templates

    cells, kernels = (*comparison.cells, *comparison.gains), comparison.kernels
    columns = columns_of(comparison, cells)
    badges = [_badge(comparison, cell) for cell in cells]
    packets = [(name_cell(comparison, cell), "\n".join(packet_lines(cell))) for cell in cells]
    return (
        open_templates()
        .get_template("comparison.html.jinja")
        .render(
            comparison=comparison, headline=headline(comparison), notes=notes_of(comparison),
            columns=columns,
            rows=list(zip(badges, zip(*(c.cells for c in columns), strict=True), strict=True)),
            sentences=[sentence(comparison, cell) for cell in comparison.worst_first],
            savings=[
                (name_axes(saving.axes, [n for n in comparison.names if n in saving.axes]), saving)
                for saving in (kernels.savings if kernels else ())
            ],
            packets=[each for each in packets if each[1]],
            style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        )
    )  # fmt: skip


def _badge(comparison: Comparison, cell: CellFinding) -> str:
    """Return the badge of a cell: what got better by what is under test is no fault."""
    better = comparison.is_better(cell) and (comparison.parts or comparison.knobs)
    return "good" if better else BADGES[comparison.counted(cell)]


def _kernels(comparison: Comparison, kernels: Kernels) -> KernelsDocument:
    overview = comparison.overview
    return {
        "base": asdict(kernels.base), "new": asdict(kernels.new), "words": comparison.words,
        "overview_pct": _overview(comparison, overview) if overview else None,
        "overview_pct_by_client": {
            client: _overview(comparison, client_overview)
            for client, client_overview in comparison.overviews.items()
        },
        "savings": [{**asdict(one), "difference_ms": one.difference_ms} for one in kernels.savings],
    }  # fmt: skip


def _overview(comparison: Comparison, overview: Overview) -> dict[str, Any]:
    return asdict(overview) | {"largest": comparison.cells[overview.largest].axes}


def _cell(comparison: Comparison, cell: CellFinding) -> CellDocument:
    packets = asdict(cell.packets) if cell.packets is not None else None
    if packets is not None and cell.packets is not None:
        packets |= {"seed": cell.packets_seed, "text": describe_difference(cell.packets)}
    document: CellDocument = {
        "name": name_cell(comparison, cell), "condition": cell.axes, "verdict": cell.verdict,
        "counts_as": comparison.counted(cell), "direction": cell.direction, "reason": cell.reason,
        "more_runs": cell.more_runs,
        "effect": asdict(cell.effect) if cell.effect else None,
        "tests": {name: asdict(found) for name, found in cell.significance.items()},
        "base": _side(comparison, cell.base), "new": _side(comparison, cell.new),
        "trials": [{**asdict(pair), "difference_ms": pair.difference_ms} for pair in cell.trials],
        "packets": packets, "packets_note": cell.packets_note, "moved_ms": cell.moved_ms,
    }  # fmt: skip
    if comparison.kernels is not None:
        change = asdict(cell.change) | {"parts_at": first_packet(cell)} if cell.change else None
        document["word"], document["change"] = cell.word, change
        document["attribution"] = asdict(cell.attribution) if cell.attribution else None
        document["clocks"] = asdict(cell.clocks) if cell.clocks else None
    return document


def _side(comparison: Comparison, side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {"outcomes": side.outcomes, comparison.metric.name: side.values,
            "median_ms": side.median_ms}  # fmt: skip


def _case(comparison: Comparison, cell: CellFinding) -> Case:
    says = plain(sentence(comparison, cell))
    return Case(name_cell(comparison, cell), STATES[comparison.counted(cell)], says,
                cell.direction or "changed",
                tuple(plain(line) for line in packet_lines(cell)) or (says,), says)  # fmt: skip


def _table(comparison: Comparison, cells: Sequence[CellFinding]) -> list[str]:
    base, new = map(comparison.metric.with_unit, ("Base", "New"))
    spent = ["Spent on"] if any(map(moved_of, cells)) else []
    rows = (
        (
            escape(name_cell(comparison, cell)),
            *(median_of(comparison, side) for side in (cell.base, cell.new)),
            escape(size_of(comparison, cell)) or "-",
            f"{SIGNS[comparison.counted(cell)]} {escape(verdict_words(comparison, cell))}",
            *([escape(moved_of(cell)) or "-"] if spent else ()),
        )
        for cell in cells
    )
    numbers = (base, new, "Difference")
    table = make_table(("Cell", *numbers, "Verdict", *spent), rows, numbers)
    return [*table, ""] if cells else []


def _details(comparison: Comparison, cell: CellFinding) -> list[str]:
    lines = [f"<details><summary>{escape_html(name_cell(comparison, cell))}</summary>", "",
             escape(sentence(comparison, cell)), ""]  # fmt: skip
    packets = packet_lines(cell)
    if packets:
        lines += ["```", *(line.replace("`", "'") for line in packets), "```", ""]
    return [*lines, "</details>", ""]
