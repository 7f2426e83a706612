"""Sweep of a knob under overload, rebuilt: each arm by the knob's values, beside a base arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.records.results import Results
from analysis.report.publications import Grid, Rebuilt, StatedCheck
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.overload_curves import (
    AXES,
    RATE,
    ArmPair,
    curves_of,
    gains_of,
    grid_of_curves,
    served_loads,
)
from wings.papers.reproductions.overload_figure import Frames
from wings.papers.reproductions.prices import first_list
from wings.papers.reproductions.sweep import split_loads, titled


def add_nothing(_results: Results) -> Frames:
    """Return no further frames."""
    return {}


@dataclass(frozen=True, slots=True)
class OverloadSweep:
    """What a publication says of arms by a knob ``over``: ``pairs`` are compared at each value.

    ``heading`` is the knob's in the table; ``further`` makes of results more frames that claims are
    about.
    """

    title: str
    over: str
    heading: str
    pairs: Sequence[ArmPair]
    further: Callable[[Results], Frames] = add_nothing

    def rebuild(self, results: Results, reference: Reference) -> Rebuilt:
        """Return the arms in numbers, and the checks of what the publication states."""
        tables: list[Grid] = []
        checks: list[StatedCheck] = []
        every, more = served_loads(results), self.further(results)
        for part, loads in split_loads(every[first_list(every)], (*AXES, self.over)):
            known = loads.dropna(subset=[RATE])
            measured: Mapping[str, pd.DataFrame] = {
                "curves": (curves := curves_of(loads, [self.over])),
                "pairs": gains_of(known, self.pairs, [self.over]),
                **more,
            }
            if not loads.empty:
                headings = {self.over: self.heading}
                tables.append(grid_of_curves(curves, titled(self.title, part), headings))
            checks += check_claims(reference, measured, part)
        return Rebuilt(self.title, tuple(tables), (), tuple(checks))
