"""Clients that connect again at once when refused: Figure 4 of Shukla and Brecht, 2006."""

from __future__ import annotations

import pandas as pd

from analysis.words import number
from wings.papers.reproductions.overload_curves import RATE, ArmPair, gains_of, in_words
from wings.papers.reproductions.overload_figure import Frames, OverloadFigure

ABORT, REFUSING, NEVER_REFUSING, REGULAR = ("abort win-emu", "abort rst-syn win-emu",
                                            "no-syn-drop win-emu", "abort rst-syn")  # fmt: skip
PAIRS = (ArmPair(REFUSING, ABORT), ArmPair(REFUSING, REGULAR), ArmPair(NEVER_REFUSING, ABORT),
         ArmPair(NEVER_REFUSING, REFUSING), ArmPair(NEVER_REFUSING, REGULAR))  # fmt: skip


def _measure(loads: pd.DataFrame, _curves: pd.DataFrame) -> Frames:
    return {"pairs": gains_of(loads.dropna(subset=[RATE]), PAIRS)}


def _tell(curves: pd.DataFrame, _measured: Frames, _part: str) -> list[str]:
    most = curves[RATE].max()  # NaN where no saturation is stated
    if not most > 1:
        return []
    arms = list(curves["arm"].unique())
    return [f"At {number(most, 2)} times it: {in_words(curves, most, arms)}. A Windows client "
            "(win-emu) that is refused connects again at once, up to twice, so that rst-syn "
            "has three SYNs to refuse instead of one; no-syn-drop refuses no SYN and resets "
            "the connection at the end of its handshake instead, which such a client takes "
            "for an end."]  # fmt: skip


FIGURE = OverloadFigure("Figure 4", "Clients that connect again at once", _tell, _measure)
VIEW, rebuild = FIGURE.view, FIGURE.rebuild
