"""Metrics and columns of page loads, and what a record of one must hold.

The metrics are fields of ``testbed.model.PageLoad``: its load time and what a visitor sees.  Paints
are rounded to 4 ms and the first byte to 0.1 ms by the browser (W3C Paint Timing, section 2.4; High
Resolution Time 3, section 9.1), so that moments which are no further apart may be one.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from analysis.records.accounts import column_of
from analysis.records.kind import COUNTED, RecordKind, defaults_of, leaves_of
from analysis.records.metric import PLT, Metric
from testbed.model import MODIFIED, Condition, PageLoad, Record
from testbed.model.owners import OWNERS

PAINT_GRAIN_MS = 4.0
FIRST_PLT = Metric("first_plt_ms", "first visit's load time", "first visit PLT", PLT.grain,
                   absent="the page was visited once", better="faster")  # fmt: skip
FIRST_FCP = Metric(
    "first_fcp_ms", "first visit's contentful paint", "first visit paint", PAINT_GRAIN_MS,
    absent="the page was visited once, or painted neither text nor a picture", places=0,
)  # fmt: skip
MILESTONES = (
    Metric("ttfb_ms", "time to first byte", "first byte", 0.1,
           absent="the browser did not tell when the page began to arrive",
           labels="times to first byte"),
    Metric("fp_ms", "first paint", "first paint", PAINT_GRAIN_MS, absent="the page painted nothing",
           places=0),
    Metric("fcp_ms", "first contentful paint", "contentful paint", PAINT_GRAIN_MS,
           absent="the page painted neither text nor a picture", places=0),
    Metric("lcp_ms", "largest contentful paint", "largest paint", PAINT_GRAIN_MS,
           absent="the page painted neither text nor a picture that counts", places=0),
    Metric("cls", "layout shift", "layout shift", 0.0,
           absent="the page did not answer when it was asked", places=4, better="smaller"),
    Metric("dcl_ms", "DOMContentLoaded", "DOMContentLoaded", 0.1,
           absent="the page did not answer when it was asked", labels="DOMContentLoaded"),
    Metric("tbt_ms", "total blocking time", "blocking time", 1.0,
           absent="computing takes no virtual time: use --kernel host", better="shorter"),
    Metric("settled_ms", "settled load time", "settled", PLT.grain,
           absent="the network did not fall quiet, or was not watched until it did"),
    FIRST_PLT,
    FIRST_FCP,
)  # fmt: skip
"""What a visitor sees; browsers alone give it, and the first visit's of several."""


def _lack(record: Record) -> str | None:
    load = record.measured_as(PageLoad)
    if load is None or not math.isfinite(load.plt_ms):
        return "holds no page load time"
    if record.replay is None:
        return "holds no replay coverage"
    if record.replay.missed and not record.trial.condition_as(Condition).allow_misses:
        lacking = load.without_later(record.replay.missed)
        return f"the page lacks {lacking[0]}" if lacking else None
    return None


QUEUEING = ("median_ms", "p95_ms", "peak_ms", "dropped", "marked")
"""Of each queue before the line, as columns: ``up_peak_ms`` (``testbed.model.Queueing``)."""

OPENING = ("tcp", "quic", "hellos", "hello_bytes", "resumed", "early", "early_bytes",
           "early_requests", "round_trips", "up_bytes", "down_bytes")  # fmt: skip
"""Of the opening of the last visit's connections, as columns (``testbed.model.VisitProof``)."""


def _values(record: Record) -> dict[str, Any]:
    load = record.measured_as(PageLoad)
    queues = record.proof.queueing if record.proof is not None else {}
    values = {f"{way}_{name}": getattr(queue, name) for way, queue in queues.items()
              for name in QUEUEING}  # fmt: skip
    values |= {"requests": len(load.requests)} if load is not None else {}
    if record.proof is not None and record.proof.visits:
        values |= {name: getattr(record.proof.visits[-1], name) for name in OPENING}
    account = record.proof.account if record.proof is not None else {}
    values["idle_connections"] = record.proof.idle_connections if record.proof is not None else None
    values |= {column_of(owner): account.get(owner, 0.0) for owner in OWNERS if account}
    return values | {"call_p95_ms": call_delay_ms(record)}


def call_delay_ms(record: Record) -> float | None:
    """Return what 95 % of a call's packets beside the load did not exceed, in the worse direction.

    It is one way, in ms; ``None``: no neighbour sent datagrams.
    """
    flows = record.proof.neighbours if record.proof else ()
    return max((f.delay_p95_ms for f in flows if f.delay_p95_ms is not None), default=None)


def _client(record: Record) -> tuple[str, str] | None:
    """A modified client is another one than that which is not, however it is called."""
    load = record.measured_as(PageLoad)
    if load is None:
        return None
    modified = "modified " if MODIFIED in load.client_version else ""
    return f"{modified}{load.client}", load.client_version


DESCRIPTION = RecordKind(
    metrics=(PLT, *MILESTONES),
    holds="page load time",
    knobs=tuple(leaves_of(asdict(Condition(page="", client="")))),
    axes=("page", "rtt_ms"),
    columns=(*COUNTED, "requests",
             *(f"{way}_{name}" for way in ("down", "up") for name in QUEUEING), "call_p95_ms",
             "idle_connections", *OPENING, *map(column_of, OWNERS)),
    values=_values,
    lack=_lack,
    client=_client,
    paired=True,
    offered=f"{PLT.name}, or, of a browser's, {{}}",
    unless_default=defaults_of(Condition, "protocol", "tls_version", "randomness", "allow_misses",
                               "server_think_ms"),
    side_by_side=(FIRST_PLT,),  # what a visitor sees has a table of its own
)  # fmt: skip
