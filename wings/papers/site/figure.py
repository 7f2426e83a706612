"""Figure of page load time over the releases: a line for each cell, its steps by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis import plot
from analysis.plot.chart import field, inline, mark
from analysis.plot.rows import Row
from analysis.plot.scales import text_px
from analysis.plot.theme import FACET_HEIGHT, FACET_WIDTH, LINE, PANEL_WIDTH
from analysis.records.cells import find_varying
from analysis.words import name_axes
from wings.papers.site.matrix import Matrix, MatrixRow
from wings.papers.site.steps import ReleaseStep

RELEASE, CHANGE = "Linux release", "Change of page load time (%)"
_PANEL = "condition"
_HALO_PX = 260


def draw_releases(matrix: Matrix, steps: Sequence[ReleaseStep]) -> plot.Plot | None:
    """Draw by how much each cell's median differs from that on its oldest release.

    The last axis of the sweep but the page is the colour, the others are the panels.  A cell that
    has a number on less than two releases is left out; if all are, there is no figure.
    """
    known = [(row, _medians(matrix, row)) for row in matrix.loads]
    drawn = [(row, medians) for row, medians in known if len(medians) > 1]
    varying = find_varying([row.axes or {} for row, _ in drawn])
    colour = next((name for name in reversed(varying) if name != "page"), None)
    panel = [name for name in matrix.names[:1] + varying if name != colour]
    numbers = {(each.row.slug, each.after): step.number for step in steps for each in step.moved}
    rows: list[Row] = []
    for place, column in enumerate(matrix.columns):
        for row, medians in drawn:
            if place in medians:
                oldest = next(iter(medians.values()))
                axes = row.axes or {}
                rows.append({_PANEL: name_axes(axes, dict.fromkeys(panel)), RELEASE: column.name,
                             CHANGE: (medians[place] - oldest) / oldest * 100.0,
                             "step": str(numbers.get((row.slug, place), ""))})  # fmt: skip
                rows[-1] |= {colour: axes.get(colour)} if colour else {}
    if not rows:
        return None
    figure = plot.lines(rows, RELEASE, CHANGE, colour, facet=_PANEL)
    if max(text_px(name) for name in figure.panels) > FACET_WIDTH:
        figure = replace(figure, panel_px=(PANEL_WIDTH, FACET_HEIGHT))
    marked = [{"x": row[RELEASE], "y": row[CHANGE], "facet": row[_PANEL], "step": row["step"]}
              for row in rows if row["step"]]  # fmt: skip
    at = {name: figure.layers[0]["encoding"][name] for name in ("x", "y")}
    halo = mark("point", {**at, "color": {"value": LINE.light}}, more={"size": _HALO_PX})
    named = mark("text", {**at, "text": field("step", "N")}, more={"align": "left", "dx": 12})
    ringed = (inline(marked) | halo, *figure.layers, inline(marked) | named)
    return replace(figure, layers=ringed if marked else figure.layers)


def _medians(matrix: Matrix, row: MatrixRow) -> dict[int, float]:
    """Return the medians of a row on releases, by column, the oldest first."""
    return {place: median for place, median in enumerate(row.medians) if median
            and matrix.columns[place].release}  # fmt: skip
