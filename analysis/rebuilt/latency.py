"""The handshake's part of request latency, in sums and in distributions, from exchanges.

Source: S. Radhakrishnan et al., TCP Fast Open, CoNEXT 2011, sections 2.1 (Figure 1) and 2.2
(Figure 2: "no handshake" is a cold request's latency minus its own handshake).
"""

from __future__ import annotations

from typing import Any

import pandas as pd

# The distributions by the names that the figures' keys have room for.
COLD, BARE, ALL, FAST = "cold", "cold, no handshake", "all", "cold, Fast Open"
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
PERCENTILES = [p / 100 for p in range(10, 91)]


def shares(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each page and RTT, of the exchanges without Fast Open.

    Columns: ``page``, ``rtt_ms``, ``requests``, ``fresh_pct`` (first on their connection),
    ``cold_pct`` and ``all_pct`` (the sum of handshakes in percent of the sum of latencies), and
    the medians ``handshake_ms`` and ``cold_ms``.  Latencies are as a server sees them (the paper's
    are from server logs) if that is known of all, else as the browser does.
    """
    plainly = without_fast_open(frame)
    basis = "served_ms" if plainly["served_ms"].notna().all() else "latency_ms"
    rows = []
    for (page, rtt_ms), part in plainly.groupby(["page", "rtt_ms"], sort=False):
        cold = part[part["cold"]]
        rows.append(
            {
                "page": page,
                "rtt_ms": rtt_ms,
                "requests": len(part),
                "fresh_pct": part["fresh"].mean() * 100,
                "cold_pct": cold["handshake_ms"].sum() / cold[basis].sum() * 100,
                "all_pct": part["handshake_ms"].sum() / part[basis].sum() * 100,
                "handshake_ms": cold["handshake_ms"].median(),
                "cold_ms": cold[basis].median(),
            }
        )
    names = ["page", "rtt_ms", "requests", "fresh_pct", "cold_pct", "all_pct"]
    return pd.DataFrame(rows, columns=[*names, "handshake_ms", "cold_ms"])


def distributions(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each ``latency_ms`` in each distribution (``requests``) that it belongs to.

    The distribution FAST is measured, where loads with Fast Open are there; BARE is simulated, as
    in the paper.
    """
    plainly = without_fast_open(frame)
    cold = plainly[plainly["cold"]]
    fast = frame[frame["tfo"].astype(bool) & frame["cold"]]
    parts = (
        cold.assign(requests=COLD),
        cold.assign(requests=BARE, latency_ms=cold["latency_ms"] - cold["handshake_ms"]),
        plainly.assign(requests=ALL),
        fast.assign(requests=FAST),
    )
    return pd.concat([part for part in parts if not part.empty] or [parts[0]])


def quantiles(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each RTT and distribution, all pages together.

    Columns: ``rtt_ms``, ``requests``, ``n``, and ``p10_ms`` to ``p90_ms`` for QUANTILES.
    """
    rows: list[dict[str, Any]] = []
    for rtt_ms, part in distributions(frame).groupby("rtt_ms"):
        for name, one in part.groupby("requests", sort=False):
            found = {f"p{q * 100:g}_ms": one["latency_ms"].quantile(q) for q in QUANTILES}
            rows.append({"rtt_ms": rtt_ms, "requests": name, "n": len(one), **found})
    return pd.DataFrame(rows, columns=["rtt_ms", "requests", "n", *quantile_names()])


def quantile_names() -> list[str]:
    """The columns of ``quantiles``."""
    return [f"p{q * 100:g}_ms" for q in QUANTILES]


def largest_share_pct(frame: pd.DataFrame) -> float:
    """The largest distance of COLD and BARE between the 10th and 90th percentile, % of COLD."""
    cold = without_fast_open(frame).query("cold")
    whole = cold["latency_ms"].quantile(PERCENTILES)
    bare = (cold["latency_ms"] - cold["handshake_ms"]).quantile(PERCENTILES)
    return float(((whole - bare) / whole * 100).max())


def without_fast_open(frame: pd.DataFrame) -> pd.DataFrame:
    """The exchanges of loads without Fast Open."""
    return frame[~frame["tfo"].astype(bool)]
