"""Ways to establish connections under overload: Figure 3 of Shukla and Brecht, 2006."""

from __future__ import annotations

import math

import pandas as pd

from analysis.words import number
from wings.papers.reproductions.overload_curves import (
    ARM,
    RATE,
    UNSETTLED,
    ArmPair,
    gains_of,
    in_words,
    peaks_of,
)
from wings.papers.reproductions.overload_figure import Frames, OverloadFigure
from wings.papers.reproductions.sweep import titled

DEFAULT = "default"
PAIRS = (*(ArmPair(arm, DEFAULT) for arm in ("abort", "reserv", "abort rst-syn", "reserv rst-syn")),
         ArmPair("abort rst-syn", "abort"), ArmPair("reserv rst-syn", "reserv"))  # fmt: skip


def _measure(loads: pd.DataFrame, curves: pd.DataFrame) -> Frames:
    known = loads.dropna(subset=[RATE])
    pairs = gains_of(known, PAIRS)
    over_default = pairs[pairs["base"] == DEFAULT]
    best = over_default.sort_values("gain", ascending=False).drop_duplicates("arm")
    return {"pairs": pairs, "peaks": peaks_of(known, PAIRS), "largest": best,
            "spikes": spikes_of(curves.dropna(subset=[RATE])),
            "curves": curves.dropna(subset=[RATE])}  # fmt: skip


def spikes_of(curves: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each arm: by what factor responses ``rise`` across the saturation.

    From the highest rate below it to the first above it; without both there is no row.
    """
    rows = []
    for key, arm_curve in curves.groupby(ARM, sort=False):
        below, above = arm_curve[arm_curve[RATE] < 1], arm_curve[arm_curve[RATE] > 1]
        if not below.empty and not above.empty:
            rise = above.iloc[0]["response_ms"] / below.iloc[-1]["response_ms"]
            missing = UNSETTLED if math.isnan(rise) else ""
            rows.append({**dict(zip(ARM, key, strict=True)), "rise": rise, "missing": missing})
    return pd.DataFrame(rows, columns=[*ARM, "rise", "missing"])


def _tell(curves: pd.DataFrame, _measured: Frames, part: str) -> list[str]:
    known = curves.dropna(subset=[RATE])
    rates = known[RATE].unique()
    if not len(rates) or rates.max() <= 1:
        return []
    arms = list(known["arm"].unique())
    low = known[known[RATE] == rates.min()]
    sentences = []
    if rates.min() < 1:
        sentences.append(
            f"At {number(rates.min(), 2)} times that rate "
            f"{number(100 - low['failed_pct'].max(), 0)} % of the connections are answered, "
            f"whatever the mechanism, after {number(low['response_ms'].median(), 0)} ms."
        )
    sentences.append(
        f"At {number(rates.max(), 2)} times it: {in_words(known, rates.max(), arms)}. What is "
        "dropped in silence (default, abort, reserv) is sent again and has to be paid for again; "
        "what is refused by a reset (rst-syn) is not."
    )
    return [titled(sentence, part) for sentence in sentences]


FIGURE = OverloadFigure("Figure 3", "Ways to establish connections under overload", _tell, _measure)
VIEW, rebuild = FIGURE.view, FIGURE.rebuild
