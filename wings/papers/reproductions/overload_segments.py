"""What a server under load receives, segment by segment: Table II of Shukla and Brecht, 2006."""

from __future__ import annotations

import pandas as pd

from analysis.records.results import Results
from analysis.report.publications import Grid, Rebuilt, StatedCheck
from analysis.words import number
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.overload_curves import (
    ARM,
    AXES,
    MECHANISM,
    RATE,
    beginning,
    check_saturation,
    curves_of,
    segments_of,
    served_loads,
)
from wings.papers.reproductions.prices import first_list, judge_lists
from wings.papers.reproductions.sweep import (
    RUN,
    median_columns,
    proven_records,
    rounded,
    split_loads,
    titled,
)
from wings.papers.reproductions.view import MeasuredColumn, View
from wings.server_loads.measurement import ServedLoad

EXPECTED = "expected_syns"
WORDS = {EXPECTED: "Expected SYNs", "actual_syns": "Actual SYNs",
         "handshake_acks": "ACKs of SYN-ACKs",
         "establishment_segments": "SYNs and ACKs of SYN-ACKs",
         "established": "Established connections",
         "established_share": "Established connections for each SYN",
         "total_segments": "Segments received"}  # fmt: skip
SHARES = ("established_share",)
CUT = "Of these loads the capture is only the beginning, and nothing else counts ACKs of SYN-ACKs."


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return the table, ours beside the published one, and the checks of each of its numbers."""
    tables: list[Grid] = []
    checks: list[StatedCheck] = []
    story: list[str] = []
    every = _read(results)
    for part, loads in split_loads(every[first_list(every)], AXES):
        if loads.empty:
            continue
        for arm, arm_loads in loads.groupby("arm", sort=False):
            label = ", ".join(filter(None, (part, str(arm) if loads["arm"].nunique() > 1 else "")))
            curves = curves_of(arm_loads)
            ratios = per_connection(arm_loads)
            tables.append(_grid(arm_loads, ratios, reference, label))
            story.append(titled(beginning(results, curves), label))
            story += _tell(ratios)
            checks.append(check_saturation(results, curves))
            checks += check_claims(reference, _measure(arm_loads), label)
    tables += judge_lists(every, lambda loads: check_claims(reference, _measure(loads)))
    return Rebuilt("What the server receives", tuple(tables), (), tuple(checks), story=tuple(story))


def _measure(loads: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {"cells": per_connection(loads), "growth": growth_of(loads)}


def _read(results: Results) -> pd.DataFrame:
    """Return the loads with a column for each of WORDS."""
    counts_by_trial = {record.trial_id: segments_of(record, served)
                       for record in proven_records(results)
                       if (served := record.measured_as(ServedLoad)) is not None}  # fmt: skip
    loads = served_loads(results)
    counts = pd.DataFrame(list(counts_by_trial.values()), columns=list(WORDS), index=loads.index)
    return loads.join(counts)


def per_connection(loads: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each rate: the medians of Table II's rows for each expected SYN.

    Each has the ends of its interval beside it.
    """
    names = [name for name in WORDS if name != EXPECTED]
    cells = median_columns(_divided(loads), [*ARM, RATE, "rate_per_s"], names)
    return cells.assign(missing=cells["handshake_acks"].isna().map({True: CUT, False: ""}))


def _divided(loads: pd.DataFrame) -> pd.DataFrame:
    return loads.assign(
        **{name: loads[name] / loads[EXPECTED]
           for name in WORDS if name != EXPECTED and name not in SHARES}
    )  # fmt: skip


def growth_of(loads: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each rate above the saturation: changes since it in percent, seed by seed.

    Columns: RATE, ``more_segments`` that establish connections, ``more_established`` of these.
    """
    base = loads[loads[RATE] == 1][[*RUN, "establishment_segments", "established"]]
    above = loads[loads[RATE] > 1].merge(base, on=list(RUN), suffixes=("", "_base"))
    changed = above.assign(**{
        new: (above[name] / above[f"{name}_base"] - 1) * 100
        for new, name in (
            ("more_segments", "establishment_segments"), ("more_established", "established")
        )
    })  # fmt: skip
    return median_columns(changed, [RATE], ("more_segments", "more_established"))


def _grid(loads: pd.DataFrame, ratios: pd.DataFrame, reference: Reference, label: str) -> Grid:
    """Return Table II: for each rate our count, our count per connection, and the published one."""
    counts = loads.groupby(RATE, dropna=False)[list(WORDS)].median()
    columns = ["Statistic"]
    for rate in counts.index:
        named = f"at {number(rate, 2)}"
        columns += [named, f"{named}, each", f"{named}, each, published"]
    shares = ratios.set_index(RATE)
    rows = []
    for name, words in WORDS.items():
        row: list[str | float | int | None] = [words]
        for rate in counts.index:
            values = (f"{cell.bound:.{cell.decimals}f}" for cell in reference.select(name)
                      if cell.axes.get(RATE) == rate)  # fmt: skip
            count = None if name in SHARES else rounded(counts.at[rate, name], 0)
            ours = 1.0 if name == EXPECTED else rounded(shares.at[rate, name], 3)
            published = 1.0 if name == EXPECTED else next(values, None)
            row += [count, ours, published]
        rows.append(tuple(row))
    return Grid(
        titled("Table II", label), tuple(columns), tuple(rows),
        "Medians over the seeds, by multiples of the saturation: in the whole load, and for each "
        "connection that clients began."
    )  # fmt: skip


def _tell(ratios: pd.DataFrame) -> list[str]:
    known = ratios.dropna(subset=[RATE])
    if known.empty or known[RATE].max() <= 1:
        return []
    last = known.sort_values(RATE).iloc[-1]
    return [f"At {number(last[RATE], 2)} times it a connection costs the server "
            f"{number(last['actual_syns'], 2)} SYNs instead of one, and of a hundred that clients "
            f"begin {number(100 * last['established'], 0)} are established."]  # fmt: skip


def _read_for_view(results: Results) -> pd.DataFrame:
    loads = _divided(_read(results))
    return loads.assign(**{MECHANISM: loads["arm"]})


VIEW = View("Table II, for each connection that clients began", _read_for_view, MECHANISM,
            (RATE, "rate_per_s"),
            tuple((MeasuredColumn(name, words, places=3),)
                  for name, words in WORDS.items() if name != EXPECTED), AXES,
            drawn=False)  # fmt: skip
