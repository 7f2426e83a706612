"""What the Fast Open paper states of the handshake's share, beside ours at each RTT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.publications.reference import Reference
from analysis.rebuilt.agreement import because, check_value, see, span
from analysis.rebuilt.latency import (
    ALL,
    COLD,
    largest_share_pct,
    quantiles,
    shares,
    without_fast_open,
)
from analysis.rebuilt.rebuilt import Check
from analysis.rebuilt.sweep import plain, published_for, titled
from analysis.words import axis_value, count, number

Found = tuple[str, str, Sequence[float], str]
"""The quantity's name in the reference, in words, our values, and why they may differ."""

# Which of the differences that stand beside the reference bears on which quantity.
SEE = {
    "cold_handshake_share": "think",
    "amortized_handshake_share": "think",
    "cold_request_share": "cold",
    "requests_per_connection_mean": "cold",
    "all_latency_median": "of the world",
    "cold_latency_median": "of the world",
    "cold_slowdown": "cold",
    "cold_handshake_share_p10_to_p90": "uplink",
    "latency_saving": "of the world",
}


def check_latencies(frame: pd.DataFrame, reference: Reference | None, part: str) -> Iterator[Check]:
    """Yield a check for each stated value at each RTT; ``part`` names these exchanges."""
    if reference is None:
        return
    published = published_for(without_fast_open(frame), reference)
    for rtt_ms, one in published.groupby("rtt_ms"):
        at = titled(f"at RTT {axis_value('rtt_ms', plain(rtt_ms))}", part)
        for quantity, what, ours, why in _found(one, float(plain(rtt_ms))):
            for stated in reference.select(quantity):
                known = see(reference, SEE[quantity]) if quantity in SEE else ""
                yield check_value(stated, f"{what}, {at}", ours, because(why, known))


def _found(frame: pd.DataFrame, rtt_ms: float) -> Iterator[Found]:
    """Our values at one RTT, without Fast Open."""
    pages = shares(frame)
    yield (
        "cold_handshake_share",
        f"share of the handshake in cold requests, {count(len(pages), 'page')}",
        list(pages["cold_pct"].dropna()),
        _trips(pages, rtt_ms),
    )
    yield (
        "amortized_handshake_share",
        f"share of the handshake over all requests, {count(len(pages), 'page')}",
        list(pages["all_pct"].dropna()),
        because(_reuse(frame), _trips(pages, rtt_ms)),
    )
    yield from _of_connections(frame)
    yield from _of_distributions(frame, rtt_ms)


def _of_connections(frame: pd.DataFrame) -> Iterator[Found]:
    fresh = float(frame["fresh"].mean())
    yield "cold_request_share", "requests on new connections", [fresh * 100], _reuse(frame)
    if fresh > 0:
        mean = 1 / fresh
        yield "requests_per_connection_mean", "requests on a connection", [mean], _reuse(frame)


def _of_distributions(frame: pd.DataFrame, rtt_ms: float) -> Iterator[Found]:
    medians = quantiles(frame).set_index("requests")["p50_ms"]
    users = (
        f"Ours are {count(len(frame), 'request')} of {count(frame['page'].nunique(), 'page')} at "
        "one round-trip time."
    )
    median = float(medians[ALL])
    yield "all_latency_median", "median latency of all requests", [median], users
    cold = frame[frame["cold"]]
    if cold.empty:
        return
    slower = (float(medians[COLD]) / median - 1) * 100
    share = float(cold["handshake_ms"].sum() / cold["latency_ms"].sum() * 100)
    yield "cold_latency_median", "median latency of cold requests", [float(medians[COLD])], users
    yield (
        "cold_slowdown",
        "how much slower cold requests are at the median",
        [slower],
        f"A cold request takes {number(float(medians[COLD]), 0)} ms at the median, "
        f"{number(float(cold['handshake_ms'].median()), 0)} ms of it handshake, and one on an "
        f"open connection {_warm_ms(frame)} ms.",
    )
    yield (
        "cold_handshake_share_p10_to_p90",
        "largest share of the handshake between the 10th and 90th percentile of cold requests",
        [largest_share_pct(frame)],
        _trips(shares(frame), rtt_ms),
    )
    yield (
        "latency_saving",
        "latency of cold requests without their handshake, less by",
        [share],
        _trips(shares(frame), rtt_ms),
    )


def _trips(pages: pd.DataFrame, rtt_ms: float) -> str:
    """How many round trips requests take here: the share follows from it."""
    trips = [float(one) / rtt_ms for one in pages["cold_ms"].dropna()]
    if not trips:
        return ""
    handshake = number(float(pages["handshake_ms"].median()) / rtt_ms, 1)
    return (
        f"A handshake takes {handshake} round-trip times here, queues included, and a whole cold "
        f"request, at the median of a page, {span(trips, 1, '')}."
    )


def _reuse(frame: pd.DataFrame) -> str:
    """How many connections the requests of these pages needed."""
    fresh = int(frame["fresh"].sum())
    return f"Our {count(len(frame), 'request')} open {count(fresh, 'connection')}."


def _warm_ms(frame: pd.DataFrame) -> str:
    """The median latency of requests that waited for no handshake."""
    return number(plain(frame.loc[~frame["cold"], "latency_ms"].median()), 0)
