"""The share of the TCP handshake in request latency: Figures 1 and 2 of the Fast Open paper.

Source: S. Radhakrishnan et al., TCP Fast Open, CoNEXT 2011, sections 2.1 and 2.2.  There it is
statistics of Google's servers and of Chrome's users; here it is the loads of recorded pages.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis import plot
from analysis.publications.reference import Reference
from analysis.rebuilt.agreement import NOT_MEASURED, check_value
from analysis.rebuilt.exchanges import Exchanges, gather_exchanges
from analysis.rebuilt.handshake_checks import check_latencies
from analysis.rebuilt.latency import (
    ALL,
    COLD,
    QUANTILES,
    distributions,
    quantile_names,
    quantiles,
    shares,
    without_fast_open,
)
from analysis.rebuilt.rebuilt import Check, Figure, Grid, Rebuilt
from analysis.rebuilt.sweep import name_absent, named, plain, rounded, split_loads, titled
from analysis.records.results import Results
from analysis.words import axis_value, count

AXES = ("page", "rtt_ms", "tfo")


def rebuild(results: Results, reference: Reference | None) -> Rebuilt:
    """Return both figures as tables and drawings, and the checks of what the text states."""
    found = gather_exchanges(results)
    note = " ".join(part for part in (name_absent(results), _name_unknown(found)) if part)
    tables: list[Grid] = []
    figures: list[Figure] = []
    checks: list[Check] = []
    for part, frame in split_loads(found.frame, AXES) if not found.frame.empty else ():
        if without_fast_open(frame).empty:
            continue
        tables += [_share_grid(frame, part, note), _quantile_grid(frame, part, note)]
        figures += _figures(frame, part, note)
        checks += check_latencies(frame, reference, part)
    if not checks and reference is not None:
        missing = _name_unknown(found) or NOT_MEASURED
        stated = reference.select()
        checks = [check_value(s, s.quantity.replace("_", " "), (), "", missing) for s in stated]
    title = "The handshake's share of request latency"
    return Rebuilt(title, tuple(tables), tuple(figures), tuple(checks))


def _share_grid(frame: pd.DataFrame, part: str, note: str) -> Grid:
    names = ["fresh_pct", "cold_pct", "all_pct", "handshake_ms", "cold_ms"]
    return Grid(
        titled("Figure 1: share of the handshake in request latency", part),
        (
            *("Page", "RTT (ms)", "Requests", "On new connections (%)"),
            *("Handshake, cold requests (%)", "Handshake, all requests (%)"),
            *("Median handshake (ms)", "Median cold request (ms)"),
        ),
        tuple(
            (
                *(str(row["page"]), plain(row["rtt_ms"]), int(row["requests"])),
                *(rounded(row[name], 1) for name in names),
            )
            for _, row in shares(frame).iterrows()
        ),
        _about_latency(frame, note),
    )


def _quantile_grid(frame: pd.DataFrame, part: str, note: str) -> Grid:
    return Grid(
        titled("Figure 2: request latency, all pages together", part),
        ("RTT (ms)", "Requests", "n", *(f"{q * 100:g}th percentile (ms)" for q in QUANTILES)),
        tuple(
            (
                *(plain(row["rtt_ms"]), str(row["requests"]), int(row["n"])),
                *(rounded(row[name], 1) for name in quantile_names()),
            )
            for _, row in quantiles(frame).iterrows()
        ),
        note,
    )


def _figures(frame: pd.DataFrame, part: str, note: str) -> Iterator[Figure]:
    found = shares(frame)
    places = found["page"] + ", " + found["rtt_ms"].map("{:g} ms".format)
    bars = pd.concat(
        found.assign(place=places, requests=kind, handshake_pct=found[column])
        for kind, column in ((COLD, "cold_pct"), (ALL, "all_pct"))
    )
    yield Figure(
        named("handshake-share", part),
        titled("Figure 1: handshake time in percent of request latency", part),
        plot.paired(bars, label="place", value="handshake_pct", by="requests"),
        "Time spent in TCP handshakes, in percent of the latency of the requests that waited for "
        f"one (cold) and of all requests, by page and round-trip time. {note}".strip(),
    )
    for rtt_ms, one in distributions(frame).groupby("rtt_ms"):
        at = axis_value("rtt_ms", plain(rtt_ms))
        yield Figure(
            named(f"handshake-latency-{at.replace(' ', '')}", part),
            titled(f"Figure 2: request latency at RTT {at}", part),
            plot.cdf(one, value="latency_ms", by="requests"),
            "Cumulative share of requests by network latency, all pages together. Cold requests "
            "wait for a handshake; no handshake: the same requests with that time taken off, as "
            f"the paper simulates it. {note}".strip(),
        )


def _about_latency(frame: pd.DataFrame, note: str) -> str:
    """What the latencies of Figure 1 begin with."""
    if without_fast_open(frame)["served_ms"].notna().all():
        said = "Latency is as a server sees it: handshake, request and response."
    else:
        said = "Latency holds waits for names and free connections: not all loads have a HAR."
    return f"{said} {note}".strip()


def _name_unknown(found: Exchanges) -> str:
    """One sentence about the proven loads whose requests are not known."""
    if not found.unknown:
        return ""
    reasons = dict.fromkeys(found.unknown.values())
    number = len(found.unknown)
    verb = "is" if number == 1 else "are"
    return f"{count(number, 'proven load')} {verb} left out: {'; '.join(reasons)}."
