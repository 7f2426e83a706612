"""The table of kernels as a paragraph for a commit message: before, after, and what counters say.

Lines have 72 columns at most, as git and the kernel's checkpatch.pl want them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from analysis.formats.lines import join_lines
from analysis.records.metric import Metric
from analysis.verdicts.compare.comparison import CellFinding
from analysis.words import clean
from wings.kernels.verdicts.answer import answer
from wings.kernels.verdicts.table import Attribution, LaneVerdicts
from wings.kernels.verdicts.terminal import name_row

COMMIT_WIDTH = 72
INDENT = "  "
MAX_CELLS = 6
"""Of so many cells, those that moved most, the metric is given before and after."""
MAX_COUNTERS = 6


def render_commit(attribution: Attribution) -> str:
    """Return a paragraph for each later kernel."""
    lines: list[str] = []
    for lane in attribution.lanes:
        lines += [""] * bool(lines) + [*_paragraph(attribution, lane)]
    return join_lines(lines)


def _paragraph(attribution: Attribution, lane: LaneVerdicts) -> Iterator[str]:
    label = attribution.metric.labels
    head = (f"Firstflight, {label} in virtual time, {attribution.base_name} before and "
            f"{lane.name} after: {answer(lane)}.")  # fmt: skip
    yield from textwrap.wrap(head, COMMIT_WIDTH, break_on_hyphens=False)
    moved = sorted(
        (c for c in lane.cells if c.attribution and c.attribution.verdict in ("slower", "faster")),
        key=_size,
        reverse=True,
    )
    if not moved:
        return
    yield ""
    for cell in moved[:MAX_CELLS]:
        yield from _row(name_row(attribution, cell), cell, attribution.metric)
    if len(moved) > MAX_CELLS:
        yield f"{INDENT}and {len(moved) - MAX_CELLS} more"
    first = next((c for c in moved if c.attribution and c.attribution.counters), None)
    if first is not None and first.attribution is not None:
        counters = [f"{each.end} {clean(each.name)} {each.base} -> {each.new}"
                    for each in first.attribution.counters[:MAX_COUNTERS]]  # fmt: skip
        yield ""
        where = f"Counters of one load ({name_row(attribution, first)}): "
        yield from textwrap.wrap(where + ", ".join(counters), COMMIT_WIDTH)


def _row(name: str, cell: CellFinding, metric: Metric) -> list[str]:
    before, after = (f"{side.median_ms:.{metric.places}f}" if side and side.median_ms is not None
                     else "-" for side in (cell.base, cell.new))  # fmt: skip
    pct = cell.attribution.pct if cell.attribution else None
    size = f" ({pct.value:+.2f}%)" if pct is not None else ""
    text = f"{name}: {before} -> {metric.with_unit(after)}{size}"
    return textwrap.wrap(text, COMMIT_WIDTH, initial_indent=INDENT, subsequent_indent=INDENT * 2,
                         break_on_hyphens=False)  # fmt: skip


def _size(cell: CellFinding) -> float:
    pct = cell.attribution.pct if cell.attribution else None
    return abs(pct.value) if pct is not None else 0.0
