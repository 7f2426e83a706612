"""Figures of a report, chosen by what was swept and how often.

Each kind of figure is a plan: from the table's rows to panels, none where it says nothing.  A new
one is a `FigureKind`, which the description of its kind of trial lists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from analysis import plot
from analysis.report.kind import report_of
from analysis.report.sections.sweep import FigureKind, Panel, SweepRow, rows_of, spread_over
from analysis.tables.table import ResultTable
from analysis.words import count

MAX_DRAWINGS = 12
LEAST_DRAWINGS = 4
MAX_TOGETHER = 18
WIDE_PX = 400
VIEW = re.compile(r'viewBox="0 0 ([0-9.]+) ')


@dataclass(frozen=True)  # no slots: it is drawn once
class Drawing:
    """A figure, a sentence below it, and a heading above if it has none."""

    chart: plot.Plot
    caption: str
    title: str = ""

    @cached_property
    def svg(self) -> str:
        """The figure as an ``<svg>`` element."""
        return plot.to_svg(self.chart)

    @property
    def wide(self) -> bool:
        """Whether it needs the room of two figures."""
        size = VIEW.search(self.svg)
        return size is not None and float(size[1]) > WIDE_PX


@dataclass(frozen=True, slots=True)
class FigureSection:
    """A titled part of the report; ``left_out`` says what it does not show, if anything."""

    anchor: str
    title: str
    note: str
    drawings: tuple[Drawing, ...]
    left_out: str


def make_sections(table: ResultTable) -> tuple[FigureSection, ...]:
    """Draw every kind of figure that has something to show for ``table``."""
    rows = rows_of(table)
    figures = report_of(table.kind).figures
    planned = [(kind, panels) for kind in figures if (panels := kind.plan(rows))]
    # One kind may take all the room there is; several share it, but for what is small.
    most = MAX_DRAWINGS
    shared = [panels for kind, panels in planned if not kind.small]
    while most > LEAST_DRAWINGS and sum(min(most, len(p)) for p in shared) > MAX_TOGETHER:
        most -= 1
    return tuple(
        _make(kind, panels, rows, MAX_DRAWINGS if kind.small else most) for kind, panels in planned
    )


def _make(
    kind: FigureKind, panels: tuple[Panel, ...], rows: tuple[SweepRow, ...], most: int
) -> FigureSection:
    shown = spread_over(panels, most)
    drawings = tuple(Drawing(panel.draw(), panel.caption, panel.title) for panel in shown)
    left_out = (
        f"{len(shown)} of {count(len(panels), 'figure')} are shown, at even distances; a notebook "
        "draws the others from the same records."
        if len(shown) < len(panels)
        else ""
    )
    return FigureSection(kind.anchor, kind.title(rows), kind.note, drawings, left_out)
