"""Loads on a server as tests have them: what both programs report, and a trial that went well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from testbed.model import LabReading, Trial
from wings.server_loads.account import Ledger, ServerAccount
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.price_list import price_work
from wings.server_loads.programs import gather_load
from wings.server_loads.spec import ArrivalSpec, ServerLoad, ServerSpec

LOAD = ServerLoad(ServerSpec(), ArrivalSpec(rate_per_s=10, warm_up_s=1, duration_s=2))
TRIAL = Trial(LOAD, 0, 7, "virtual", "7.3")
COUNTERS = {
    "client": {
        "TcpActiveOpens": 30, "TcpExtTCPSynRetrans": 0, "TcpInSegs": 120, "TcpOutSegs": 180,
        "TcpExtTCPFastOpenActive": 0,
    },
    "server": {
        "TcpPassiveOpens": 30, "TcpInSegs": 180, "TcpOutSegs": 120, "TcpExtTCPFastOpenPassive": 0,
    },
}  # fmt: skip
TRAFFIC = {"up.delivered": 180, "down.delivered": 120, "up.dropped": 0, "up.lost": 0}
LAB = LabReading((), {}, traffic=TRAFFIC)
PRICES = price_work(LOAD.server)
BEGAN_NS = 1_700_000_000_000_000_000


def report(**changes: Any) -> dict[str, Any]:
    """What the generator reports of 20 connections, and 10 of the warm-up."""
    made: dict[str, Any] = {
        "warm_up_ms": 1000, "duration_ms": 2000, "began_ns": BEGAN_NS, "retries": 0,
        "established": 20, "syn_retransmissions": 0, "processor_us": 1500, "own_limits": [],
        "connections": {
            "started": 20, "completed": 20, "refused": 0, "reset": 0, "timed_out": 0,
            "cut_short": 0, "invalid": 0, "failed": 0, "unopened": 0, "unfinished": 0,
        },
        "lateness_us": {"count": 20, "mean": 1.0, "p50": 1.0, "p99": 2.5, "max": 3.0},
        "response_us": {"count": 20, "mean": 4500.0, "p50": 4250.0, "p99": 9000.0, "max": 9500.0},
        "response_halves_us": [4600.0, 4400.0],
        "seconds": [{"started": 10, "completed": 10, "failed": 0}] * 3,
    }  # fmt: skip
    return made | changes


def server_counts(**changes: int) -> dict[str, int]:
    """What the event server counts of the same 30 connections."""
    made = {
        "accepted": 30, "requests": 30, "responses": 30, "closed": 0, "client_closed": 30,
        "resets": 0, "invalid": 0, "lacked": 0, "syns": 30, "segments": 270, "unseen": 0,
        "settled_segments": 300,
        "owed_ns": 30 * PRICES["syn"] + 270 * PRICES["segment"]
        + 30 * (PRICES["accept"] + PRICES["request"] + PRICES["close"]),
    }  # fmt: skip
    return made | changes


def account() -> ServerAccount:
    """The server's account: its processor was busy for a tenth of each slice."""
    return ServerAccount(server_counts(), (Ledger(BEGAN_NS, (1_000_000,) * 400),))


def served(**changes: Any) -> ServedLoad:
    """The measurement of both."""
    return replace(gather_load(report(), account(), dict(PRICES)), **changes)
