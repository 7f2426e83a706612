"""The share of the TCP handshake in request latency: Figures 1 and 2 of the Fast Open paper.

Source: S. Radhakrishnan et al., TCP Fast Open, CoNEXT 2011, sections 2.1 and 2.2.  There it is
statistics of Google's servers and of Chrome's users; here it is the loads of recorded pages, as
their records have each request's phases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from analysis import plot
from analysis.records.cells import flatten
from analysis.records.results import Results
from analysis.report.publications import Figure, Grid, Rebuilt, StatedCheck
from analysis.words import axis_value, count
from testbed.model import PageLoad, RequestTiming
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import NOT_MEASURED, check_claims
from wings.papers.reproductions.sweep import (
    grid_of,
    named,
    plain,
    proven_records,
    published_for,
    split_loads,
    titled,
)

AXES = ("page", "rtt_ms", "tfo")
# The distributions by the names that the figures' keys have room for.
COLD, BARE, ALL, FAST = "cold", "cold, no handshake", "all", "cold, Fast Open"
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
PERCENTILES = [p / 100 for p in range(10, 91)]
QUANTILE_GRID = {"rtt_ms": "RTT (ms)", "requests": "Requests", "n": "n",
                 **{f"p{q * 100:g}_ms": f"{q * 100:g}th percentile (ms)|1"
                    for q in QUANTILES}}  # fmt: skip
SHARES = {"page": "Page", "rtt_ms": "RTT (ms)", "requests": "Requests",
          "fresh_pct": "On new connections (%)|1", "cold_pct": "Handshake, cold requests (%)|1",
          "all_pct": "Handshake, all requests (%)|1", "handshake_ms": "Median handshake (ms)|1",
          "cold_ms": "Median cold request (ms)|1"}  # fmt: skip


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return both figures as tables and drawings, and the checks of what the text states."""
    requests, left_out = gather_exchanges(results)
    unknown = _name_unknown(left_out)
    tables: list[Grid] = []
    figures: list[Figure] = []
    checks: list[StatedCheck] = []
    for part, frame in split_loads(requests, AXES) if len(requests) else ():
        plainly = without_fast_open(frame)
        if plainly.empty:
            continue
        title = titled("Figure 2: request latency, all pages together", part)
        tables.append(_share_grid(plainly, part, unknown))
        tables.append(grid_of(quantiles(frame), title, QUANTILE_GRID, unknown))
        figures += _figures(frame, part, unknown)
        for rtt_ms, at_rtt in published_for(plainly, reference).groupby("rtt_ms"):
            condition = titled(f"at RTT {axis_value('rtt_ms', plain(rtt_ms))}", part)
            checks += check_claims(reference, measured(at_rtt), condition)
    if not checks:
        empty = {"pages": pd.DataFrame(), "requests": pd.DataFrame()}
        checks += check_claims(reference, empty, missing=unknown or NOT_MEASURED)
    title = "The handshake's share of request latency"
    return Rebuilt(title, tuple(tables), tuple(figures), tuple(checks))


def gather_exchanges(results: Results) -> tuple[pd.DataFrame, dict[str, str]]:
    """Read the requests of all proven loads; return a row for each, and the loads without any.

    Those loads are by trial id, with the reason.  Requests that never got a response, and those
    that nothing is told of, are left out.  Columns: ``trial_id``, the knobs, ``seed``, and

    - ``handshake_ms``: how long the request waited for the TCP handshake, 0 if it did not;
    - ``latency_ms``: from when the browser's network stack was asked until its response was whole;
    - ``served_ms``: the same without the wait for a name and for a free connection, which no
      server sees;
    - ``cold``: whether it waited for a handshake, however short;
    - ``fresh``: whether it was the first on its connection.
    """
    rows: list[dict[str, Any]] = []
    unknown: dict[str, str] = {}
    for record in proven_records(results):
        condition = flatten(record.trial.condition)
        known = {"trial_id": record.trial_id, **condition, "seed": record.trial.seed}
        load = record.measured_as(PageLoad)
        exchanges = list(read_exchanges(load.requests if load else ()))
        rows += [{**known, **exchange} for exchange in exchanges]
        if not exchanges:
            opened = load is not None and any(each.connect_ms for each in load.requests)
            unknown[record.trial_id] = (
                "its record is older than the phases of its requests, so measure it again"
                if opened
                else "its client does not say how long requests waited for connections"
            )
    return pd.DataFrame(rows), unknown


def read_exchanges(requests: Iterable[RequestTiming]) -> Iterator[dict[str, Any]]:
    """Yield the columns of each request that was answered and whose phases are known, in order."""
    used: set[str] = set()
    timed = [(request.start_ms + request.queued_ms, request, request.blocked_ms)
             for request in requests if request.status > 0 and request.queued_ms is not None
             and request.blocked_ms is not None]  # fmt: skip
    for asked_ms, request, blocked_ms in sorted(timed, key=lambda each: each[0]):
        connect_ms, latency_ms = request.connect_ms or 0.0, request.end_ms - asked_ms
        yield {"handshake_ms": max(connect_ms - (request.tls_ms or 0.0), 0.0),
               "latency_ms": latency_ms,
               "served_ms": latency_ms - blocked_ms - (request.dns_ms or 0.0),
               "cold": connect_ms > 0, "fresh": request.connection not in used}  # fmt: skip
        used.add(request.connection or "")


def without_fast_open(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the exchanges of loads without Fast Open."""
    return frame[~frame["tfo"].astype(bool)]


def shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each page and RTT of the exchanges, which are without Fast Open.

    Columns: ``page``, ``rtt_ms``, ``requests``, ``fresh_pct`` (first on their connection),
    ``cold_pct`` and ``all_pct`` (the sum of handshakes in percent of the sum of latencies), and
    the medians ``handshake_ms`` and ``cold_ms``.  Latencies are as a server sees them: the paper's
    are from server logs.
    """
    rows = []
    for (page, rtt_ms), part in frame.groupby(["page", "rtt_ms"], sort=False):
        cold = part[part["cold"]]
        rows.append({"page": page, "rtt_ms": rtt_ms, "requests": len(part),
                     "fresh_pct": part["fresh"].mean() * 100,
                     "cold_pct": cold["handshake_ms"].sum() / cold["served_ms"].sum() * 100,
                     "all_pct": part["handshake_ms"].sum() / part["served_ms"].sum() * 100,
                     "handshake_ms": cold["handshake_ms"].median(),
                     "cold_ms": cold["served_ms"].median()})  # fmt: skip
    return pd.DataFrame(rows, columns=list(SHARES))


def distributions(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each ``latency_ms`` in each distribution (``requests``) that it is in.

    FAST is measured, if there are loads with Fast Open; BARE is a cold request's latency minus its
    own handshake, as the paper simulates it (section 2.2).
    """
    plainly = without_fast_open(frame)
    cold = plainly[plainly["cold"]]
    fast = frame[frame["tfo"].astype(bool) & frame["cold"]]
    parts = (cold.assign(requests=COLD),
             cold.assign(requests=BARE, latency_ms=cold["latency_ms"] - cold["handshake_ms"]),
             plainly.assign(requests=ALL), fast.assign(requests=FAST))  # fmt: skip
    return pd.concat([part for part in parts if not part.empty] or [parts[0]])


def quantiles(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each RTT and distribution, all pages together.

    Columns: ``rtt_ms``, ``requests``, ``n``, and ``p10_ms`` to ``p90_ms``.
    """
    rows: list[dict[str, Any]] = []
    for rtt_ms, part in distributions(frame).groupby("rtt_ms"):
        for name, requests in part.groupby("requests", sort=False):
            latencies = requests["latency_ms"].quantile(QUANTILES)
            values = (rtt_ms, name, len(requests), *latencies)
            rows.append(dict(zip(QUANTILE_GRID, values, strict=True)))
    return pd.DataFrame(rows, columns=list(QUANTILE_GRID))


def largest_share_pct(frame: pd.DataFrame) -> float:
    """Return the largest difference of COLD and BARE from the 10th to the 90th percentile.

    In percent of COLD, of exchanges without Fast Open.
    """
    cold = frame[frame["cold"]]
    latency = cold["latency_ms"].quantile(PERCENTILES)
    bare = (cold["latency_ms"] - cold["handshake_ms"]).quantile(PERCENTILES)
    return float(((latency - bare) / latency * 100).max())


def measured(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables that the claims are about, of exchanges at one RTT without Fast Open.

    ``requests`` is one row for all of them; ``pages`` has one for each page, and in it the same.
    """
    cold, by_page = frame[frame["cold"]], shares(frame)
    fresh, rtt_ms = frame["fresh"].mean(), float(plain(frame["rtt_ms"].iloc[0]))
    median, cold_median = frame["latency_ms"].median(), cold["latency_ms"].median()
    saving = cold["handshake_ms"].sum() / cold["latency_ms"].sum() if len(cold) else math.nan
    all_together = {
        "requests": len(frame),
        "connections": int(frame["fresh"].sum()),
        "pages": frame["page"].nunique(),
        "cold_request_share": fresh * 100,
        "requests_per_connection_mean": 1 / fresh if fresh else math.nan,
        "all_latency_median": median,
        "cold_latency_median": cold_median,
        "cold_slowdown": (cold_median / median - 1) * 100,
        "cold_handshake_share_p10_to_p90": largest_share_pct(frame),
        "latency_saving": saving * 100,
        "handshake_ms": cold["handshake_ms"].median(),
        "warm_ms": frame.loc[~frame["cold"], "latency_ms"].median(),
        "handshake_trips": by_page["handshake_ms"].median() / rtt_ms,
        "least_trips": by_page["cold_ms"].min() / rtt_ms,
        "most_trips": by_page["cold_ms"].max() / rtt_ms,
    }
    of_pages = by_page[["page"]].assign(cold_handshake_share=by_page["cold_pct"],
                                        amortized_handshake_share=by_page["all_pct"],
                                        **all_together)  # fmt: skip
    return {"requests": pd.DataFrame([all_together]), "pages": of_pages}


def _share_grid(frame: pd.DataFrame, part: str, note: str) -> Grid:
    basis = "Latency is as a server sees it: handshake, request and response."
    title = titled("Figure 1: share of the handshake in request latency", part)
    return grid_of(shares(frame), title, SHARES, f"{basis} {note}".strip())


def _figures(frame: pd.DataFrame, part: str, note: str) -> Iterator[Figure]:
    handshake_shares = shares(without_fast_open(frame))
    places = handshake_shares["page"] + ", " + handshake_shares["rtt_ms"].map("{:g} ms".format)
    bars = pd.concat(
        handshake_shares.assign(place=places, requests=kind, handshake_pct=handshake_shares[column])
        for kind, column in ((COLD, "cold_pct"), (ALL, "all_pct"))
    )
    yield Figure(
        named("handshake-share", part),
        titled("Figure 1: handshake time in percent of request latency", part),
        plot.paired(bars, label="place", value="handshake_pct", by="requests"),
        "Time spent in TCP handshakes, in percent of the latency of the requests that waited for "
        f"one (cold) and of all requests, by page and round-trip time. {note}".strip(),
    )
    for rtt_ms, at_rtt in distributions(frame).groupby("rtt_ms"):
        rtt = axis_value("rtt_ms", plain(rtt_ms))
        yield Figure(
            named(f"handshake-latency-{rtt.replace(' ', '')}", part),
            titled(f"Figure 2: request latency at RTT {rtt}", part),
            plot.cdf(at_rtt, value="latency_ms", by="requests"),
            "Cumulative share of requests by network latency, all pages together. Cold requests "
            "wait for a handshake; no handshake: the same requests with that time taken off, as "
            f"the paper simulates it. {note}".strip(),
        )


def _name_unknown(left_out: Mapping[str, str]) -> str:
    """Return one sentence about the proven loads whose requests are not known."""
    if not left_out:
        return ""
    verb = "is" if len(left_out) == 1 else "are"
    reasons = "; ".join(dict.fromkeys(left_out.values()))
    return f"{count(len(left_out), 'proven load')} {verb} left out: {reasons}."
