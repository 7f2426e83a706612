"""Figure of a server under load, rebuilt: its panels, its numbers, its story and its checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from analysis.records.results import Results
from analysis.report.publications import Figure, Grid, Rebuilt, StatedCheck
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.overload_curves import (
    AXES,
    beginning,
    check_saturation,
    curves_of,
    draw_failures,
    draw_response,
    draw_throughput,
    grid_of_curves,
    served_loads,
    view_of,
)
from wings.papers.reproductions.prices import first_list, judge_lists, note_prices
from wings.papers.reproductions.sweep import split_loads, titled
from wings.papers.reproductions.view import View

Frames = Mapping[str, pd.DataFrame]
"""What claims are about, by the names that they have for it."""


@dataclass(frozen=True, slots=True)
class OverloadFigure:
    """A published figure, such as ``Figure 3``: throughput and response times over the rate.

    Of loads and curves ``measure`` makes the frames that claims are about; of the curves, these
    frames and the part's name ``tell`` makes the sentences behind the beginning of the story.
    Without ``responses`` its only panel is throughput.
    """

    place: str
    title: str
    tell: Callable[[pd.DataFrame, Frames, str], list[str]]
    measure: Callable[[pd.DataFrame, pd.DataFrame], Frames]
    responses: bool = True

    @property
    def view(self) -> View:
        """What several kernels show of it side by side."""
        return view_of(self.place, responses=self.responses)

    def rebuild(self, results: Results, reference: Reference) -> Rebuilt:
        """Return the figure's panels, and the checks of what the publication states."""
        tables: list[Grid] = []
        figures: list[Figure] = []
        checks: list[StatedCheck] = []
        story: list[str] = []
        note = note_prices(results)
        every = served_loads(results)
        for part, loads in split_loads(every[first_list(every)], AXES):
            if loads.empty:
                continue
            curves = curves_of(loads)
            measured = self.measure(loads, curves)
            tables.append(grid_of_curves(curves, titled(f"{self.place} in numbers", part)))
            figures += self._draw(loads, part, note)
            story.append(titled(beginning(results, curves), part))
            story += self.tell(curves, measured, part)
            checks.append(check_saturation(results, curves))
            checks += check_claims(reference, measured, part)
        tables += judge_lists(every, lambda loads: self._check(loads, reference))
        return Rebuilt(self.title, tuple(tables), tuple(figures), tuple(checks), story=tuple(story))

    def _check(self, every: pd.DataFrame, reference: Reference) -> Iterator[StatedCheck]:
        """Yield the checks of the loads by one price list."""
        for part, loads in split_loads(every, AXES):
            yield from check_claims(reference, self.measure(loads, curves_of(loads)), part)

    def _draw(self, loads: pd.DataFrame, part: str, note: str) -> list[Figure]:
        if not self.responses:
            return [draw_throughput(loads, self.place, part, note)]
        settled = loads["response_ms"].notna().any()
        responses = [draw_response(loads, f"{self.place}(b)", part, note)] if settled else []
        return [draw_throughput(loads, f"{self.place}(a)", part, note), *responses,
                draw_failures(loads, f"Beside {self.place}", part, note)]  # fmt: skip
