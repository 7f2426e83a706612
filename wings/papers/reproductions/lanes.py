"""Lanes side by side: the loads of one experiment on several kernels in one figure, never pooled.

A lane is the results of one kernel.  Each keeps its own verdicts; added are the differences of the
lanes, point by point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import plot
from analysis.records.cells import experiment_of
from analysis.records.results import Results
from analysis.report.drawings import Drawing
from analysis.report.publications import Figure, Grid, Rebuilt, StatedCheck
from analysis.report.rendering import TEMPLATES, open_templates
from analysis.tables.kind import tables_of
from analysis.words import axis_value, axis_word, capitalised, clean, count, lowered, signed
from testbed.base.errors import ConfigurationError
from testbed.base.whole_file import write_whole
from testbed.model import stored_kind
from wings.papers.publications import find, name_module, rebuild
from wings.papers.reproductions.overload_curves import VIEW_OF_LOADS
from wings.papers.reproductions.prices import note_prices
from wings.papers.reproductions.sweep import (
    SERVED_KNOBS,
    named,
    plain,
    rounded,
    split_loads,
    titled,
)
from wings.papers.reproductions.view import MeasuredColumn, View

LANE = "Lane"


@dataclass(frozen=True, slots=True)
class KernelLane:
    """Results of one kernel, and the name of the lane: ``host 6.18.44``."""

    name: str
    results: Results


def name_lanes(every: Sequence[Results]) -> tuple[KernelLane, ...]:
    """Name each results folder by its kernel; two of one kernel by their folders as well.

    Raises:
        ConfigurationError: they are not the loads of one experiment on servers.
    """
    experiments = [experiment_of(results.manifest) for results in every]
    names = list(dict.fromkeys(str(experiment.get("name")) for experiment in experiments))
    if len(names) > 1:
        raise ConfigurationError(
            [f"they are of several experiments ({', '.join(names)}), and only one goes into a "
             "figure; report each alone"]
        )  # fmt: skip
    if not all(tables_of(stored_kind(experiment)).on_one_page for experiment in experiments):
        raise ConfigurationError(
            [f"{names[0]} is no load on a server: side by side are only those; two kernels' page "
             "loads are held together by ./run.sh compare BASE NEW"]
        )  # fmt: skip
    kernels = [clean(f"{experiment.get('kernel')} {results.identity.kernel_version or ''}".strip())
               for experiment, results in zip(experiments, every, strict=True)]  # fmt: skip
    return tuple(
        KernelLane(
            kernel if kernels.count(kernel) == 1 else f"{kernel}, {clean(results.folder.name)}",
            results,
        )
        for kernel, results in zip(kernels, every, strict=True)
    )


def write_lanes_page(path: Path, every: Sequence[Results]) -> Rebuilt:
    """Write a page with the loads of all results in one figure; return what is on it.

    Raises:
        ConfigurationError: the results are not the loads of one experiment on servers.
        StorageError: it cannot be written.
    """
    lanes = name_lanes(every)
    rebuilt = draw_lanes(lanes)
    page = (
        open_templates(Path(__file__).parent)
        .get_template("lanes.html.jinja")
        .render(
            lanes=lanes,
            rebuilt=rebuilt,
            drawings=[Drawing(each.chart, each.caption, each.title) for each in rebuilt.figures],
            figures=(),
            style=plot.style_sheet() + (TEMPLATES / "report.css").read_text(encoding="utf-8"),
        )
    )
    write_whole(path, page, f"make room or check the permissions of {path.parent}")
    return rebuilt


def draw_lanes(lanes: Sequence[KernelLane]) -> Rebuilt:
    """Return the figure of an experiment with all ``lanes``, each judged by itself.

    Raises:
        ConfigurationError: a manifest is not a run's.
    """
    rebuilt_lanes = [rebuild(lane.results) for lane in lanes]
    view = _view_of(lanes[0].results)
    tables: list[Grid] = []
    figures: list[Figure] = []
    story: list[str] = []
    for part, loads in _parts(lanes, view):
        over = next((name for name in view.over if loads[name].notna().all()), None)
        shown = [column for quantity in view.quantities if (column := _choose(quantity, loads))]
        if not shown:
            continue
        note = " ".join(filter(None, (_differing(lanes, loads, view), _notes(lanes))))
        if over is not None and view.drawn:
            figures += [_draw(view, column, loads, over, part, note) for column in shown]
        cells = _medians(loads, view, over, shown)
        tables.append(_grid(lanes, cells, view, over, shown, part))
        story += [titled(sentence, part) for sentence in _tell(lanes, cells, shown)]
    for lane, rebuilt in zip(lanes, rebuilt_lanes, strict=True):
        if rebuilt and rebuilt.story:
            story.append(f"{capitalised(lane.name)}: {' '.join(rebuilt.story)}")
    title = next((rebuilt.title for rebuilt in rebuilt_lanes if rebuilt), view.place)
    return Rebuilt(f"{title}: {' and '.join(lane.name for lane in lanes)}", tuple(tables),
                   tuple(figures), tuple(_side_by_side(lanes, rebuilt_lanes)),
                   story=tuple(story))  # fmt: skip


def _view_of(results: Results) -> View:
    module = name_module(results, find(results))
    view = getattr(import_module(module), "VIEW", None) if module else None
    return view if isinstance(view, View) else VIEW_OF_LOADS


def _side_by_side(
    lanes: Sequence[KernelLane], rebuilt_lanes: Sequence[Rebuilt | None]
) -> Iterator[StatedCheck]:
    """Yield the checks of all lanes; those of the same claim are adjacent."""
    claims: dict[tuple[str, str], list[StatedCheck]] = {}
    for lane, rebuilt in zip(lanes, rebuilt_lanes, strict=True):
        for check in rebuilt.checks if rebuilt else ():
            claims.setdefault((check.where, check.what), []).append(replace(check, lane=lane.name))
    yield from chain.from_iterable(claims.values())


def _parts(lanes: Sequence[KernelLane], view: View) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the loads of each figure: those of all lanes with equal values of all other knobs."""
    frames_by_part: dict[str, list[pd.DataFrame]] = {}
    for lane in lanes:
        for part, loads in split_loads(view.read(lane.results), view.axes):
            if not loads.empty:
                frames_by_part.setdefault(part, []).append(loads.assign(**{LANE: lane.name}))
    for part, frames in frames_by_part.items():
        yield part, pd.concat(frames, ignore_index=True)


def _choose(ways: Sequence[MeasuredColumn], loads: pd.DataFrame) -> MeasuredColumn | None:
    """Return the first of ``ways`` to express a quantity that has values in every lane."""
    for column in ways:
        if loads.groupby(LANE)[column.name].count().min() > 0:
            return column
    return None


def _draw(
    view: View, shown: MeasuredColumn, loads: pd.DataFrame, over: str, part: str, note: str
) -> Figure:
    known = loads.dropna(subset=[shown.name]).sort_values(over, kind="stable")
    chart = plot.lines(known.rename(columns={shown.name: shown.title}), x=over, y=shown.title,
                       color=view.arm, dash=LANE, log=shown.log)  # fmt: skip
    return Figure(
        named(f"lanes-{shown.name.replace('_', '-')}", part),
        titled(f"{view.place}: {lowered(shown.title)}", part),
        chart,
        f"A line for each kernel: medians, and the range of the seeds. {note}".strip(),
    )


def _medians(
    loads: pd.DataFrame, view: View, over: str | None, shown: Sequence[MeasuredColumn]
) -> pd.DataFrame:
    """Return a row for each arm and point, and of each quantity a column for each lane."""
    by = [view.arm, *([over] if over else [])]
    names = [column.name for column in shown]
    order = loads[by].drop_duplicates()
    wide = pd.DataFrame(loads.groupby([*by, LANE], sort=False)[names].median().unstack(LANE))
    return wide.reindex([tuple(row) if over else row[0] for row in order.to_numpy(dtype=object)])


def _distance(
    cells: pd.DataFrame, column: MeasuredColumn, first: str, other: str
) -> pd.Series[Any]:
    """Return ``other`` minus ``first``: in percent of ``first``, or in the quantity's unit."""
    base, beside = cells[column.name, first], cells[column.name, other]
    return (beside / base - 1) * 100 if column.relative else beside - base


def _grid(lanes: Sequence[KernelLane], cells: pd.DataFrame, view: View, over: str | None,
          shown: Sequence[MeasuredColumn], part: str) -> Grid:  # fmt: skip
    present = [lane.name for lane in lanes if lane.name in cells.columns.get_level_values(LANE)]
    columns = [view.arm, *([capitalised(axis_word(over))] if over else [])]
    values: list[list[str | float | int | None]] = [
        [plain(value) for value in (key if over else (key,))] for key in cells.index
    ]
    for column in shown:
        columns += [f"{column.title}, {name}" for name in present]
        for row, place in zip(values, range(len(cells)), strict=True):
            row += [
                rounded(cells[column.name, name].iloc[place], column.places) for name in present
            ]
        for other in present[1:]:
            columns.append(f"{other}: {'%' if column.relative else column.unit} more")
            apart = _distance(cells, column, present[0], other)
            for row, place in zip(values, range(len(cells)), strict=True):
                row.append(rounded(apart.iloc[place], 1))
    return Grid(
        titled(f"{view.place}, side by side", part), tuple(columns), tuple(map(tuple, values)),
        f"Medians over the seeds of each kernel; how much more it is than {present[0]}."
    )  # fmt: skip


def _tell(
    lanes: Sequence[KernelLane], cells: pd.DataFrame, shown: Sequence[MeasuredColumn]
) -> Iterator[str]:
    """Yield a sentence for each further lane: its differences from the first."""
    first, *further = (lane.name for lane in lanes)
    known = set(cells.columns.get_level_values(LANE))
    for other in further:
        parts = []
        points = 0
        for column in shown if {first, other} <= known else ():
            apart = _distance(cells, column, first, other).dropna()
            points = max(points, len(apart))
            if len(apart):
                unit = "%" if column.relative else column.unit
                parts.append(f"{lowered(column.title)} {signed(apart.median(), 1)} {unit} "
                             f"({signed(apart.min(), 1)} to {signed(apart.max(), 1)})")  # fmt: skip
        yield (f"{capitalised(other)} beside {first}, at {count(points, 'point')} that both have, "
               f"median and range: {'; '.join(parts)}." if parts
               else f"{capitalised(other)} and {first} have no point in common.")  # fmt: skip


def _differing(lanes: Sequence[KernelLane], loads: pd.DataFrame, view: View) -> str:
    """Return a sentence on the knobs that each lane holds constant, but at different values."""
    grouped = loads.groupby(LANE, sort=False)
    words = []
    for name in SERVED_KNOBS:
        if name in view.axes or name not in loads or not (grouped[name].nunique() == 1).all():
            continue
        settings = grouped[name].first().reindex([lane.name for lane in lanes]).dropna()
        if settings.nunique() > 1:
            values = ", ".join(f"{axis_value(name, plain(v))} on {k}" for k, v in settings.items())
            words.append(f"{axis_word(name)} ({values})")
    return f"They differ in {'; '.join(words)}." if words else ""


def _notes(lanes: Sequence[KernelLane]) -> str:
    """Return the notes below a figure: the lanes' saturations, and their prices in virtual time."""
    sentences = []
    for lane in lanes:
        saturation = experiment_of(lane.results.manifest).get("saturation_per_s")
        if saturation:
            sentences.append(f"Saturation of {lane.name}: {int(saturation):,} 1/s.")
    return " ".join(
        dict.fromkeys([*sentences, *filter(None, (note_prices(x.results) for x in lanes))])
    )
