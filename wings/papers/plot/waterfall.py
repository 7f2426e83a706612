"""Waterfalls: the requests of a load as bars over time, in the order in which they were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.plot import rows as rows_of
from analysis.plot.chart import Plot, color_of, describe, field, heading, hint, inline, mark
from analysis.plot.rows import Data, Row, panel_text
from analysis.plot.theme import FACET_WIDTH, PANEL_WIDTH
from analysis.words import clean

ROW_PX = 7
TICKS = 4
FIRST, LATER = "first on its connection", "on an open connection"
UNKNOWN = "connection unknown"
COLUMNS = ("url", "start_ms", "end_ms", "transfer_bytes", "connection", "cold")


def waterfall(requests: Data, facet: str | None = None, title: str = "") -> Plot:
    """Draw the requests of a load (rows of ``analysis.records.frame.request_frame``) as bars.

    Args:
        requests: those of one load, or of one for each value of ``facet``.
        facet: one panel for each value of this column, such as ``tfo``, with the same axes.
        title: above the figure.

    Raises:
        ConfigurationError: a column is not there, there is nothing to draw, or a panel would hold
            several loads.
    """
    rows = rows_of.read_rows(requests, ("trial_id", *COLUMNS, facet), "waterfall")
    bars: list[Row] = []
    for panel, load in rows_of.panels_of(rows, facet, "waterfall"):
        bars += [panel | bar for bar in _bars(load)]
    rows_of.check_drawable(bars, "waterfall", ("url",))
    kinds = [kind for kind in (FIRST, LATER, UNKNOWN) if any(b["kind"] == kind for b in bars)]
    drawn = mark(
        "bar",
        {
            "x": field("start", "Q", title="Time since the start (ms)", axis={"tickCount": TICKS}),
            "x2": {"field": "end"},
            "y": field("place", "Q", axis=None, scale={"reverse": True}),
            "color": color_of("kind", "request", kinds),
            "tooltip": [
                hint("url", "N", "URL"),
                hint("start", "Q", "Start (ms)", ",.1f"),
                hint("end", "Q", "End (ms)", ",.1f"),
                hint("size", "Q", "Transferred (B)", ",.0f"),
                hint("connection", "N", "Connection"),
            ],
        },
        more={"height": ROW_PX - 2},
    )
    panels = tuple(rows_of.texts(rows, facet, panel_text))
    height = ROW_PX * (1 + max(bar["place"] for bar in bars))
    properties = {**inline(bars), **describe("end_ms", None, rows_of.given(facet), len(bars)),
                  **heading(title)}  # fmt: skip
    if not panels:
        properties |= {"width": PANEL_WIDTH, "height": height}
    return Plot((drawn,), properties, panels, (FACET_WIDTH, height), zoomable=True)


def _bars(load: Sequence[Row]) -> Iterator[Row]:
    for place, row in enumerate(sorted(load, key=lambda r: (r["start_ms"], r["end_ms"])), 1):
        yield {"place": place, "url": clean(str(row["url"])), "start": row["start_ms"],
               "end": row["end_ms"], "size": row["transfer_bytes"], "connection": row["connection"],
               "kind": {None: UNKNOWN, True: FIRST, False: LATER}[row["cold"]]}  # fmt: skip
