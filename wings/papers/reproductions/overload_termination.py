"""Ways to end connections under overload: Figure 5 of Shukla and Brecht, 2006."""

from __future__ import annotations

import pandas as pd

from analysis.words import number
from wings.papers.reproductions.overload_curves import RATE, ArmPair, gains_of, peaks_of
from wings.papers.reproductions.overload_figure import Frames, OverloadFigure

DEFAULT, RST_FIN, CLOSE_RST = "default", "default rst-fin", "default close-rst"
PAIRS = (ArmPair(RST_FIN, DEFAULT), ArmPair(CLOSE_RST, DEFAULT), ArmPair(CLOSE_RST, RST_FIN),
         ArmPair("abort rst-syn rst-fin", RST_FIN), ArmPair("abort rst-syn close-rst", RST_FIN),
         ArmPair("abort rst-syn close-rst", CLOSE_RST))  # fmt: skip


def _measure(loads: pd.DataFrame, _curves: pd.DataFrame) -> Frames:
    known = loads.dropna(subset=[RATE])
    return {"pairs": gains_of(known, PAIRS), "peaks": peaks_of(known, PAIRS)}


def _tell(_curves: pd.DataFrame, measured: Frames, _part: str) -> list[str]:
    """Return the story of the greatest throughputs, where there are some to compare."""
    peaks = measured["peaks"]
    gains = peaks[peaks["base"] == DEFAULT].set_index("arm")["peak_gain"]
    if gains.empty:
        return []
    return [
        "A connection that ends with a reset instead of FINs in both directions is less "
        "work, so more of them fit: the greatest throughput is "
        + " and ".join(f"{number(gain, 1)} % higher with {arm}" for arm, gain in gains.items())
        + ". Above it, how connections are established decides."
    ]


FIGURE = OverloadFigure(
    "Figure 5", "Ways to end connections under overload", _tell, _measure, responses=False
)
VIEW, rebuild = FIGURE.view, FIGURE.rebuild
