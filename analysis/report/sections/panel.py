"""A figure that could be drawn, and the kind that it is of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.report.sections.sweep import Row

if TYPE_CHECKING:
    from analysis.plot import Plot


PLOT_PX = (262, 190)
"""A plot so wide and high: with its labels it fits into 390 px unscaled, three into a desk's."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure; ``draw`` makes it, which takes a while.

    ``caption`` is a sentence below.  ``title`` is a heading above that may wrap, which text inside
    of a figure cannot; it is empty where the figure has its own.
    """

    draw: Callable[[], Plot]
    caption: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of figure: ``plan`` returns its panels for the rows of a table, or none.

    ``note`` says once for all of them what they show.
    """

    anchor: str
    title: Callable[[Sequence[Row]], str]
    note: str
    plan: Callable[[Sequence[Row]], tuple[Panel, ...]]


def sized(chart: Plot, width_px: float | None = None, height_px: float | None = None) -> Plot:
    """``chart`` with a plot of that size; what is made of several plots keeps its own."""
    sizes = {"width": width_px, "height": height_px}
    given = {name: px for name, px in sizes.items() if px is not None}
    return chart.properties(**given) if hasattr(chart, "width") else chart
