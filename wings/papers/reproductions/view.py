"""View of loads on a server: what its figure shows, so that one figure can hold several kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from analysis.records.results import Results


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """A measured column: its title with the unit, and how two of its values are compared.

    With ``relative`` by their difference in percent of the first, else by that in ``unit``.
    """

    name: str
    title: str
    unit: str = ""
    places: int = 1
    relative: bool = True
    log: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """A figure: ``read`` gives a row for each proven load, with ``arm`` and all else named here.

    Attributes:
        place: the publication's name of the figure.
        read: from results to loads.
        arm: the column that tells one line from another, under its heading.
        over: columns of the points of a line; the first that all loads have.
        quantities: of each, the ways to say it; the first that every kernel has.
        axes: knobs that are in the figure; others make further figures.
        drawn: whether there is a figure; else a table alone.
    """

    place: str
    read: Callable[[Results], pd.DataFrame]
    arm: str
    over: tuple[str, ...]
    quantities: tuple[tuple[MeasuredColumn, ...], ...]
    axes: tuple[str, ...]
    drawn: bool = True
