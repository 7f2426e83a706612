"""Metrics and columns of loads on a server."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from analysis.records.kind import COUNTED, RecordKind, leaves_of
from analysis.records.metric import Metric
from testbed.model import RESOLUTION_MS, Record
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.spec import ArrivalSpec, ServerLoad, ServerSpec

METRICS = (
    Metric("replies_per_s", "throughput", "replies", 0.0, labels="throughputs", unit="1/s",
           more=True, better="smaller"),
    Metric("response_p50_ms", "median response time", "response p50", RESOLUTION_MS, places=2),
    Metric("response_mean_ms", "mean response time", "mean", RESOLUTION_MS, places=2),
    Metric("response_p99_ms", "99th percentile of response times", "p99", RESOLUTION_MS, places=2),
    Metric("failed_pct", "share of failures", "failed", 0.0, labels="shares of failures", unit="%",
           better="smaller"),
    Metric("server_cpu_pct", "load of the server's processor", "CPU", 0.0,
           absent="the server's work was free (price = 0)",
           labels="loads of the server's processor", unit="%", better="smaller"),
)  # fmt: skip


def _values(record: Record) -> dict[str, Any]:
    served = record.measured_as(ServedLoad)
    return {} if served is None else {"settled": int(served.is_settled)}


DESCRIPTION = RecordKind(
    metrics=METRICS,
    holds="counts of connections",
    knobs=tuple(leaves_of(asdict(ServerLoad(ServerSpec(), ArrivalSpec())))),
    axes=("mechanism",),
    columns=(*COUNTED, "started", "answered", "refused", "reset", "timed_out",
             "syn_retransmissions", "repeated", "repeated_answered", "settled"),
    values=_values,
    tcp_alone=True,  # the clients are the testbed's own and follow their seed
    offered="of loads on a server {}",
)  # fmt: skip
