"""Openings: how each connection of a visit began, as bars over time, in order of their starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.plot import rows as rows_of
from analysis.plot.chart import Plot, color_of, describe, field, heading, hint, inline, mark
from analysis.plot.rows import Data, Row, panel_text
from analysis.plot.theme import PANEL_WIDTH
from analysis.words import clean

ROW_PX = 12
TICKS = 6
MOMENT = 0.01
"""How wide a moment is drawn, as a share of all the time that is shown."""
IN_SYN, HELLO = "SYN with part of the hello", "until the hello has left"
WAITING, REQUEST = "until the first request", "first request"
KINDS = (IN_SYN, HELLO, WAITING, REQUEST)
COLUMNS = ("host", "began_ms", "hello_ms", "hello_bytes", "syn_bytes", "early_bytes", "asked_ms")


def openings(connections: Data, facet: str | None = None, title: str = "") -> Plot:
    """Draw how connections were opened (rows of ``analysis.records.frame.opening_frame``).

    Args:
        connections: those of one visit, or of one for each value of ``facet``.
        facet: one panel for each value of this column, with the same axes.
        title: above the figure.

    Raises:
        ConfigurationError: a column is not there, there is nothing to draw, or a panel would hold
            several loads.
    """
    rows = rows_of.read_rows(connections, ("trial_id", *COLUMNS, facet), "openings")
    ends = [row[name] for row in rows for name in ("began_ms", "hello_ms", "asked_ms")]
    moment_ms = MOMENT * max(rows_of.numbers(ends), default=0.0)
    bars: list[Row] = []
    for panel, visit in rows_of.panels_of(rows, facet, "openings"):
        bars += [panel | bar for bar in _bars(visit, moment_ms)]
    rows_of.check_drawable(bars, "openings", ("began_ms",))
    kinds = [kind for kind in KINDS if any(bar["kind"] == kind for bar in bars)]
    last = 1 + max(bar["place"] for bar in bars)
    drawn = mark(
        "bar",
        {
            "x": field("start", "Q", title="Time since the visit's first packet (ms)",
                       axis={"tickCount": TICKS}),
            "x2": {"field": "end"},
            "y": field("place", "Q", axis=None, scale={"reverse": True, "domain": [0, last]}),
            "color": color_of("kind", "connection", kinds),
            "tooltip": [
                hint("host", "N", "Server"),
                hint("start", "Q", "Start (ms)", ",.1f"),
                hint("end", "Q", "End (ms)", ",.1f"),
                hint("size", "Q", "Bytes", ",.0f"),
            ],
        },
        more={"height": ROW_PX - 4},
    )  # fmt: skip
    panels = tuple(rows_of.texts(rows, facet, panel_text))
    height = ROW_PX * last
    properties = {**inline(bars), **describe("began_ms", None, rows_of.given(facet), len(bars)),
                  **heading(title)}  # fmt: skip
    if not panels:
        properties |= {"width": PANEL_WIDTH, "height": height}
    return Plot((drawn,), properties, panels, (PANEL_WIDTH, height), zoomable=True)


def _bars(visit: Sequence[Row], moment_ms: float) -> Iterator[Row]:
    """Yield the bars of each connection; one that was given up has the SYN alone, or the hello."""
    for place, row in enumerate(sorted(visit, key=lambda row: row["began_ms"]), 1):
        began_ms, hello_ms, asked_ms = (row[n] for n in ("began_ms", "hello_ms", "asked_ms"))
        spans = [(HELLO, began_ms, hello_ms, row["hello_bytes"])]
        if hello_ms is not None and asked_ms is not None:
            spans.append((WAITING, hello_ms, asked_ms, None))
        if row["syn_bytes"]:
            spans.append((IN_SYN, began_ms, began_ms + moment_ms, row["syn_bytes"]))
        if asked_ms is not None:
            spans.append((REQUEST, asked_ms, asked_ms + moment_ms, row["early_bytes"]))
        known = {"place": place, "host": clean(str(row["host"]))}
        for kind, start_ms, end_ms, size in spans:
            if end_ms is not None and end_ms - start_ms > moment_ms / 2:
                yield known | {"kind": kind, "start": start_ms, "end": end_ms, "size": size}
