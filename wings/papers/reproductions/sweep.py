"""Proven loads as a frame, split by knobs that a figure does not have, and tables made of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.records.cells import cells_of
from analysis.records.frame import trial_columns, trial_frame, varying_columns
from analysis.records.kind import records_of
from analysis.records.results import Results
from analysis.report.publications import Grid
from analysis.stats.estimates import Estimate, describe_sample
from analysis.words import axis_value, axis_word, is_setting
from testbed.model import DEFAULT_KIND, Record
from wings.papers.published.reference import Reference
from wings.server_loads.spec import ArrivalSpec, ServerLoad, ServerSpec

KNOBS = records_of(DEFAULT_KIND).knobs
"""Of page loads."""
_SERVED = records_of(ServerLoad(ServerSpec(), ArrivalSpec()).kind)
SERVED_KNOBS = _SERVED.knobs
"""Of loads on a server."""
RUN = ("seed", "repetition")


def proven_loads(results: Results) -> pd.DataFrame:
    """Return the rows of ``trial_frame`` whose outcome is ok, with ``plt_s``, in planned order.

    Knobs, ``seed`` and ``repetition`` are columns even of none.
    """
    frame = trial_frame(results)
    if frame.empty:
        return pd.DataFrame(columns=[*KNOBS, *RUN, "trial_id", "outcome", "plt_ms", "plt_s"])
    proven = _in_planned_order(frame, results)
    return proven.assign(plt_s=proven["plt_ms"] / 1000.0)


def proven_served(results: Results) -> pd.DataFrame:
    """Return the rows of ``trial_frame`` of proven loads on a server, in planned order."""
    return proven_trials(results).reindex(columns=list(trial_columns(_SERVED)))


def proven_trials(results: Results) -> pd.DataFrame:
    """Return the rows of ``trial_frame`` whose outcome is ok, of any kind, in planned order."""
    return _in_planned_order(trial_frame(results), results)


def _in_planned_order(frame: pd.DataFrame, results: Results) -> pd.DataFrame:
    order = [record.trial_id for record in proven_records(results)]
    return frame.set_index("trial_id", drop=False).loc[order].reset_index(drop=True)


def proven_records(results: Results) -> list[Record]:
    """Return the records whose number counts, cell by cell in planned order, then by seed."""
    return [record for cell in cells_of(results) for record in cell.proven]


def split_loads(frame: pd.DataFrame, axes: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the parts of ``frame`` that differ in knobs other than ``axes``, each with its name.

    The name is empty where there is only one part, else such as ``client wget2``.
    """
    named = [str(column) for column in frame if is_setting(str(column))]
    knobs = dict.fromkeys((*KNOBS, *SERVED_KNOBS, *named))
    further_axes = varying_columns(frame, [n for n in knobs if n in frame and n not in axes])
    if not further_axes:
        yield "", frame
        return
    for key, part in frame.groupby(list(further_axes), sort=False, dropna=False):
        values = [plain(value) for value in key]
        names = zip(further_axes, values, strict=True)
        yield ", ".join(f"{axis_word(n)} {axis_value(n, v)}" for n, v in names), part


def published_for(frame: pd.DataFrame, reference: Reference) -> pd.DataFrame:
    """Return the rows with the knobs for which ``reference`` states anything."""
    for name, value in reference.applies.items():
        frame = frame[frame[name] == value]
    return frame


def grid_of(frame: pd.DataFrame, title: str, columns: Mapping[str, str], note: str = "") -> Grid:
    """Return ``frame`` as a table: of each column of ``columns`` its heading.

    A heading may end in how many decimals the numbers below it have: ``Load (s)|3``.
    """
    heads = [heading.partition("|") for heading in columns.values()]
    return Grid(
        title,
        tuple(name for name, _, _ in heads),
        tuple(
            tuple(
                rounded(value, int(places)) if places else plain(value)
                for value, (_, _, places) in zip(row, heads, strict=True)
            )
            for row in frame[list(columns)].itertuples(index=False, name=None)
        ),
        note,
    )


def median_columns(loads: pd.DataFrame, by: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    """Return one row for each group: the medians of ``names`` and the ends of their intervals.

    The ends are ``NAME_low`` and ``NAME_high``, NaN where a group has one value or nothing varies.
    """
    groups = loads.groupby(list(by), sort=False, dropna=False)
    medians = groups[list(names)].median()
    ends = [pd.DataFrame([ends_of(_median_of(values.dropna())) for _, values in groups[name]],
                         index=medians.index, columns=[f"{name}_low", f"{name}_high"])
            for name in names]  # fmt: skip
    # A copy, in one piece: columns are added to it.
    return pd.concat([medians, *ends], axis=1).copy().reset_index()


def _median_of(values: pd.Series[Any]) -> Estimate | None:
    sample = describe_sample(values) if values.nunique() > 1 else None
    return sample.median if sample else None


def ends_of(estimate: Estimate | None) -> tuple[float, float]:
    """Return both ends of an interval; NaN where there is none."""
    if estimate is None or estimate.interval is None:
        return math.nan, math.nan
    return estimate.interval.low, estimate.interval.high


def rounded(value: object, places: int) -> float | None:
    """Return a number for a field of a table; ``None`` where there is none."""
    number = plain(value)
    return None if number is None else round(float(number), places)


def plain(value: Any) -> Any:
    """Return a frame's value as Python has it: ``None`` for NaN, and no scalars of numpy."""
    if value is None or value != value:  # only NaN differs from itself
        return None
    return value.item() if hasattr(value, "item") else value


def titled(title: str, part: str) -> str:
    """Return a title that names the part it is about, if there are several."""
    return f"{title} ({part})" if part else title


def named(name: str, part: str) -> str:
    """Return a figure's name with that of its part, as letters, digits and hyphens."""
    words = re.sub(r"[^a-z0-9.]+", "-", part.lower()).strip("-")
    return f"{name}-{words}" if words else name


def ladder(values: pd.Series[Any]) -> list[Any]:
    """Return the distinct values from least to greatest."""
    return sorted(plain(value) for value in values.dropna().unique())
