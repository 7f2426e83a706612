"""Mechanisms that open connections with fewer round trips, side by side (``zero-rtt.toml``)."""

from __future__ import annotations

import pandas as pd

from analysis.plot.chart import Plot
from analysis.records.frame import opening_frame, trial_frame
from analysis.records.results import Results
from wings.papers.plot.visit import openings

AXES = ["protocol", "tls_resumption", "early_data", "tfo"]
"""What makes a mechanism."""
MECHANISMS = {("h1", False, False, False): "HTTP/1.1",
              ("h1", False, False, True): "HTTP/1.1 + Fast Open",
              ("h2", False, False, False): "HTTP/2", ("h2", True, False, False): "HTTP/2, tickets",
              ("h2", True, True, False): "HTTP/2, early data",
              ("h2", True, True, True): "HTTP/2, early data + Fast Open",
              ("h3", True, False, False): "HTTP/3, tickets",
              ("h3", True, True, False): "HTTP/3, 0-RTT"}  # fmt: skip
"""The mechanisms by AXES, in the order in which they are shown."""
KEY_SHARES = {"x25519mlkem768": "post-quantum", "x25519": "X25519"}
LARGE = next(iter(KEY_SHARES))
"""What the browser sends of itself."""
OPENED = ["connections", "hello_bytes", "round_trips"]


def medians(results: Results) -> pd.DataFrame:
    """Return the medians of the last visits to the first page, over the loads that count.

    Columns: ``mechanism``, ``key_share``, ``rtt_ms``, ``plt_ms``, and of what connections took
    ``connections``, ``hello_bytes`` and ``round_trips`` (those before the first request).
    """
    frame = _named(trial_frame(results))
    frame = frame.assign(connections=frame["tcp"] + frame["quic"])
    by = ["mechanism", "key_share", "rtt_ms"]
    return frame.groupby(by, sort=False)[["plt_ms", *OPENED]].median().reset_index()


def draw_early(results: Results, rtt_ms: float) -> Plot:
    """Draw how mechanisms with early data opened the connections of a visit at ``rtt_ms``.

    It is that of the first seed to the first page, with the browser's own key share.
    """
    frame = _named(opening_frame(results))
    shown = frame[
        (frame["rtt_ms"] == rtt_ms)
        & (frame["key_share"] == LARGE)
        & (frame["seed"] == frame["seed"].min())
        & frame["early_data"].astype(bool)
    ]
    order = {name: place for place, name in enumerate(MECHANISMS.values())}
    shown = shown.sort_values("mechanism", key=lambda names: names.map(order), kind="stable")
    return openings(shown, facet="mechanism")


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the first page, each with its ``mechanism``."""
    rows = frame[frame["page"] == frame["page"].iloc[0]] if len(frame) else frame
    names = [MECHANISMS.get(tuple(axes)) for axes in rows[AXES].itertuples(index=False)]
    return rows.assign(mechanism=pd.Series(names, rows.index, dtype=object))
