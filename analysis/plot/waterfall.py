"""Waterfalls: the requests of a load as bars over time, in the order in which they were made."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import pandas as pd

from analysis.plot import rows as rows_of
from analysis.plot.panels import arrange, describe, heading
from analysis.plot.rows import Row
from analysis.plot.scales import color_of
from analysis.plot.theme import FACET_WIDTH, PANEL_WIDTH, Plot
from analysis.plot.titles import panel_text
from analysis.words import clean
from testbed.base.errors import ConfigurationError

ROW_PX = 7
TICKS = 4
FIRST, LATER = "first on its connection", "on an open connection"
UNTOLD = "connection not told"
COLUMNS = ("url", "start_ms", "end_ms", "transfer_bytes", "connection", "cold")


def waterfall(requests: pd.DataFrame, facet: str | None = None, title: str = "") -> Plot:
    """Draw the requests of a load (rows of ``analysis.records.frame.request_frame``) as bars.

    Args:
        requests: those of one load, or of one for each value of ``facet``.
        facet: one panel for each value of this column, such as ``tfo``, with the same axes.
        title: above the figure.

    Raises:
        ConfigurationError: a column is not there, there is nothing to draw, or a panel would hold
            several loads.
    """
    rows_of.check_columns(requests, ("trial_id", *COLUMNS, facet), "waterfall")
    bars: list[Row] = []
    for key, load in rows_of.groups(requests, rows_of.given(facet)):
        loads = load["trial_id"].nunique()
        if loads > 1:
            raise ConfigurationError(
                [f"waterfall: {loads} loads in one panel; choose one by its knobs and its seed"]
            )
        panel = {"facet": panel_text(facet, key[0])} if facet is not None else {}
        bars += [{**panel, **bar} for bar in _bars(load)]
    rows_of.check_drawable(bars, "waterfall", ("url",))
    kinds = [kind for kind in (FIRST, LATER, UNTOLD) if any(b["kind"] == kind for b in bars)]
    drawn = (
        alt.Chart(rows_of.inline(bars))
        .mark_bar(height=ROW_PX - 2)
        .encode(
            x=alt.X(
                "start:Q",
                title="Time since the start (ms)",
                axis=alt.Axis(tickCount=TICKS),
            ),
            x2="end:Q",
            y=alt.Y("place:Q", axis=None, scale=alt.Scale(reverse=True)),
            color=color_of("kind", "request", kinds),
            tooltip=[
                alt.Tooltip("url:N", title="URL"),
                alt.Tooltip("start:Q", title="Start (ms)", format=",.1f"),
                alt.Tooltip("end:Q", title="End (ms)", format=",.1f"),
                alt.Tooltip("size:Q", title="Transferred (B)", format=",.0f"),
                alt.Tooltip("connection:N", title="Connection"),
            ],
        )
    )
    panels = rows_of.texts(facet, requests[facet], panel_text) if facet is not None else []
    height = ROW_PX * (1 + max(bar["place"] for bar in bars))
    return arrange(
        [drawn], panels, True, (FACET_WIDTH if panels else PANEL_WIDTH, height)
    ).properties(
        description=describe("end_ms", None, rows_of.given(facet), len(bars)), **heading(title)
    )


def _bars(load: pd.DataFrame) -> Iterator[Row]:
    ordered = load.sort_values(["start_ms", "end_ms"], kind="stable")
    columns = (ordered[name] for name in COLUMNS)
    for place, values in enumerate(zip(*columns, strict=True), 1):
        url, start, end, size, connection, cold = (rows_of.plain(value) for value in values)
        kind = {None: UNTOLD, True: FIRST, False: LATER}[cold]
        yield {"place": place, "url": clean(str(url)), "start": start, "end": end, "size": size,
               "connection": connection, "kind": kind}  # fmt: skip
