"""Proven loads as a frame, split so that nothing unlike is ever averaged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from analysis.publications.reference import Reference
from analysis.records.cells import cells_of, flatten, varying_axes
from analysis.records.frame import trial_frame, varying_columns
from analysis.records.results import Results
from analysis.words import axis_name, axis_value, axis_word, count
from testbed.model import Condition, Record

KNOBS = tuple(flatten(Condition(page="", client="")))
RUN = ("seed", "repetition")
LISTED = 6


def proven_loads(results: Results) -> pd.DataFrame:
    """The rows of ``trial_frame`` whose outcome is ok, with ``plt_s``, in the order planned.

    Knobs, ``seed`` and ``repetition`` are columns even of none.
    """
    frame = trial_frame(results)
    if frame.empty:
        return pd.DataFrame(columns=[*KNOBS, *RUN, "trial_id", "outcome", "plt_ms", "plt_s"])
    proven = frame[frame["outcome"] == "ok"].set_index("trial_id", drop=False)
    proven = proven.loc[[record.trial_id for record in proven_records(results)]]
    proven = proven.reset_index(drop=True)
    return proven.assign(plt_s=proven["plt_ms"] / 1000.0)


def proven_records(results: Results) -> list[Record]:
    """The records whose number counts, cell by cell in the order planned, then by seed."""
    return [record for cell in cells_of(results) for record in cell.proven]


def split_loads(frame: pd.DataFrame, axes: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the parts of ``frame`` that differ in knobs other than ``axes``, each with its name.

    The name is empty where there is only one part, else such as ``client wget2``.
    """
    others = varying_columns(frame, [n for n in KNOBS if n in frame and n not in axes])
    if not others:
        yield "", frame
        return
    for key, part in frame.groupby(list(others), sort=False, dropna=False):
        values = [plain(value) for value in key]
        names = zip(others, values, strict=True)
        yield ", ".join(f"{axis_word(n)} {axis_value(n, v)}" for n, v in names), part


def published_for(frame: pd.DataFrame, reference: Reference | None) -> pd.DataFrame:
    """The rows over the link, and with the knobs, for which ``reference`` states anything."""
    applies = reference.applies if reference else {}
    for name, value in applies.items():
        frame = frame[frame[name] == value]
    return frame


def pair_runs(frame: pd.DataFrame, by: Sequence[str], arm: str) -> pd.DataFrame:
    """``plt_s`` of each run (by ``by``, seed and repetition), one column for each value of ``arm``.

    Arms are compared run by run: a run that lacks an arm has NaN there.
    """
    return frame.pivot_table(index=[*by, *RUN], columns=arm, values="plt_s", aggfunc="first")


def rounded(value: object, places: int) -> float | None:
    """A number for a field of a table; ``None`` where there is none."""
    number = plain(value)
    return None if number is None else round(float(number), places)


def plain(value: Any) -> Any:
    """What a frame holds as Python has it: NaN is ``None``, and numpy's scalars are plain."""
    if value is None or value != value:  # only NaN differs from itself
        return None
    return value.item() if hasattr(value, "item") else value


def titled(title: str, part: str) -> str:
    """A title that names the part it is about, if there are several."""
    return f"{title} ({part})" if part else title


def named(name: str, part: str) -> str:
    """A figure's name that holds the part's, as letters, digits and hyphens."""
    words = re.sub(r"[^a-z0-9.]+", "-", part.lower()).strip("-")
    return f"{name}-{words}" if words else name


def ladder(values: pd.Series[Any]) -> list[Any]:
    """The distinct values from least to greatest."""
    return sorted(plain(value) for value in values.dropna().unique())


def name_absent(results: Results) -> str:
    """One sentence about the cells without any proven load, or nothing."""
    cells = cells_of(results)
    absent = [cell for cell in cells if not cell.proven]
    if not absent:
        return ""
    names = varying_axes(cells) or ("page",)
    listed = "; ".join(
        ", ".join(f"{axis_name(n)} {axis_value(n, cell.axes.get(n))}" for n in names)
        + f": {cell.status.replace('_', ' ')}"
        for cell in absent[:LISTED]
    )
    more = f"; and {len(absent) - LISTED} more" if len(absent) > LISTED else ""
    have = "has" if len(absent) == 1 else "have"
    return f"{len(absent):,} of {count(len(cells), 'cell')} {have} no proven load ({listed}{more})."
