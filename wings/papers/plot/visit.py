"""Figures of one visit: its requests as a waterfall, and how each of its connections began.

Both are bars over time, in the order in which they began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.plot import rows as rows_of
from analysis.plot.chart import Plot, color_of, describe, field, heading, hint, inline, mark
from analysis.plot.rows import Data, Row, panel_text
from analysis.plot.theme import FACET_WIDTH, PANEL_WIDTH
from analysis.words import clean

FIRST, LATER = "first on its connection", "on an open connection"
UNKNOWN = "connection unknown"
REQUESTS = ("url", "start_ms", "end_ms", "transfer_bytes", "connection", "cold")
MOMENT = 0.01
"""How wide a moment is drawn, as a share of all the time that is shown."""
IN_SYN, HELLO = "SYN with part of the hello", "until the hello has left"
WAITING, REQUEST = "until the first request", "first request"
KINDS = (IN_SYN, HELLO, WAITING, REQUEST)
OPENINGS = ("host", "began_ms", "hello_ms", "hello_bytes", "syn_bytes", "early_bytes", "asked_ms")
_TIMES = [hint("start", "Q", "Start (ms)", ",.1f"), hint("end", "Q", "End (ms)", ",.1f")]


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
    rows = rows_of.read_rows(requests, ("trial_id", *REQUESTS, facet), "waterfall")
    bars: list[Row] = []
    for panel, load in rows_of.panels_of(rows, facet, "waterfall"):
        bars += [panel | bar for bar in _request_bars(load)]
    rows_of.check_drawable(bars, "waterfall", ("url",))
    kinds = [kind for kind in (FIRST, LATER, UNKNOWN) if any(b["kind"] == kind for b in bars)]
    encoding = {"x": field("start", "Q", title="Time since the start (ms)", axis={"tickCount": 4}),
                "x2": {"field": "end"},
                "y": field("place", "Q", axis=None, scale={"reverse": True}),
                "color": color_of("kind", "request", kinds),
                "tooltip": [hint("url", "N", "URL"), *_TIMES,
                            hint("size", "Q", "Transferred (B)", ",.0f"),
                            hint("connection", "N", "Connection")]}  # fmt: skip
    described = describe("end_ms", None, rows_of.given(facet), len(bars)) | heading(title)
    panels = tuple(rows_of.texts(rows, facet, panel_text))
    return _draw(bars, 7, 5, encoding, described, panels, FACET_WIDTH)


def openings(connections: Data, facet: str | None = None, title: str = "") -> Plot:
    """Draw how connections were opened (rows of ``analysis.records.frame.opening_frame``).

    Args:
        connections: those of one visit, or of one for each value of ``facet``.
        facet: one panel for each value of this column, with the same axes.
        title: above the figure.

    Raises:
        ConfigurationError: as ``waterfall``.
    """
    rows = rows_of.read_rows(connections, ("trial_id", *OPENINGS, facet), "openings")
    ends = [row[name] for row in rows for name in ("began_ms", "hello_ms", "asked_ms")]
    moment_ms = MOMENT * max(rows_of.numbers(ends), default=0.0)
    bars: list[Row] = []
    for panel, visit in rows_of.panels_of(rows, facet, "openings"):
        bars += [panel | bar for bar in _opening_bars(visit, moment_ms)]
    rows_of.check_drawable(bars, "openings", ("began_ms",))
    kinds = [kind for kind in KINDS if any(bar["kind"] == kind for bar in bars)]
    places = [0, 1 + max(bar["place"] for bar in bars)]
    encoding = {"x": field("start", "Q", title="Time since the visit's first packet (ms)",
                           axis={"tickCount": 6}), "x2": {"field": "end"},
                "y": field("place", "Q", axis=None, scale={"reverse": True, "domain": places}),
                "color": color_of("kind", "connection", kinds),
                "tooltip": [hint("host", "N", "Server"), *_TIMES,
                            hint("size", "Q", "Bytes", ",.0f")]}  # fmt: skip
    described = describe("began_ms", None, rows_of.given(facet), len(bars)) | heading(title)
    panels = tuple(rows_of.texts(rows, facet, panel_text))
    return _draw(bars, 12, 8, encoding, described, panels, PANEL_WIDTH)


def _draw(bars: Sequence[Row], row_px: int, bar_px: int, encoding: Mapping[str, Any],
          described: Mapping[str, Any], panels: tuple[str, ...],
          facet_px: int) -> Plot:  # fmt: skip
    """Draw bars in rows of ``row_px``; a panel is ``facet_px`` wide, one alone PANEL_WIDTH."""
    drawn = mark("bar", encoding, more={"height": bar_px})
    height = row_px * (1 + max(bar["place"] for bar in bars))
    properties = {**inline(bars), **described}
    if not panels:
        properties |= {"width": PANEL_WIDTH, "height": height}
    return Plot((drawn,), properties, panels, (facet_px, height), zoomable=True)


def _request_bars(load: Sequence[Row]) -> Iterator[Row]:
    for place, row in enumerate(sorted(load, key=lambda r: (r["start_ms"], r["end_ms"])), 1):
        yield {"place": place, "url": clean(str(row["url"])), "start": row["start_ms"],
               "end": row["end_ms"], "size": row["transfer_bytes"], "connection": row["connection"],
               "kind": {None: UNKNOWN, True: FIRST, False: LATER}[row["cold"]]}  # fmt: skip


def _opening_bars(visit: Sequence[Row], moment_ms: float) -> Iterator[Row]:
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
