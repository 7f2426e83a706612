"""What each request of each proven load waited for: from its HAR, else from its record.

Source: HAR 1.2, http://www.softwareishard.com/blog/har-12-spec/ (times in ms, -1 = does not apply;
``connect`` holds ``ssl``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.rebuilt.sweep import proven_records
from analysis.records.cells import flatten
from analysis.records.har import HarError, parse_har, read_har_bytes
from analysis.records.results import Results
from testbed.model import Record

WAITED = ("blocked", "dns")
SERVED = ("connect", "send", "wait", "receive")


@dataclass(frozen=True, slots=True)
class Exchanges:
    """``frame``: a row for each request; ``unknown``: why a load's are not there, by trial id.

    Columns: ``trial_id``, the knobs, ``seed``, and

    - ``handshake_ms``: how long the request waited for the TCP handshake, 0 if it did not;
    - ``latency_ms``: from when the browser scheduled it until its response was complete;
    - ``served_ms``: the same without the wait for a name and for a free connection, which no
      server sees; NaN for a load without a HAR;
    - ``cold``: whether it waited for a handshake, however short;
    - ``fresh``: whether it was the first on its connection.
    """

    frame: pd.DataFrame
    unknown: dict[str, str]


def gather_exchanges(results: Results) -> Exchanges:
    """Read the requests of all proven loads.

    A HAR that is missing or broken is made up for by the record where its client says how long
    connections took to open.  Requests that never got a response are left out.
    """
    rows: list[dict[str, Any]] = []
    unknown: dict[str, str] = {}
    for record in proven_records(results):
        known = {
            "trial_id": record.trial_id,
            **flatten(record.trial.condition),
            "seed": record.trial.seed,
        }
        try:
            found = list(parse_phases(parse_har(read_har_bytes(results.folder, record))))
            reason = "its HAR does not say how long connections took to open"
        except HarError as error:
            found, reason = list(_recorded(record)), str(error)
        if any(exchange["cold"] for exchange in found):
            rows += [{**known, **exchange} for exchange in found]
        else:
            unknown[record.trial_id] = reason
    return Exchanges(pd.DataFrame(rows), unknown)


def parse_phases(log: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the columns of each entry of a HAR's ``log`` that has timings, in order."""
    used: set[str] = set()
    for entry in log["entries"]:
        timings = entry.get("timings") if isinstance(entry, dict) else None
        if not isinstance(timings, dict) or not _answered(entry):
            continue
        phases = {name: _ms(timings.get(name)) for name in (*WAITED, *SERVED, "ssl")}
        connection = str(entry.get("connection") or "")
        cold = phases["connect"] > 0
        yield {
            "handshake_ms": max(phases["connect"] - phases["ssl"], 0.0),
            "latency_ms": sum(phases[name] for name in (*WAITED, *SERVED)),
            "served_ms": sum(phases[name] for name in SERVED),
            "cold": cold,
            "fresh": connection not in used if connection else cold,
        }
        used.add(connection)


def _recorded(record: Record) -> Iterator[dict[str, Any]]:
    """The same from the record itself, over plain TCP only: over TLS the parts are not apart."""
    used: set[str] = set()
    for request in sorted(record.load.requests if record.load else (), key=lambda r: r.start_ms):
        opening = request.connect_ms  # None as well where the client does not say
        if request.url.startswith("https:") or request.status <= 0:
            continue
        yield {
            "handshake_ms": opening or 0.0,
            "latency_ms": request.end_ms - request.start_ms,
            "served_ms": math.nan,
            "cold": bool(opening),
            "fresh": request.connection not in used if request.connection else bool(opening),
        }
        used.add(request.connection or "")


def _answered(entry: Mapping[str, Any]) -> bool:
    response = entry.get("response")
    status = response.get("status") if isinstance(response, dict) else None
    return isinstance(status, int) and status > 0


def _ms(value: object) -> float:
    sound = isinstance(value, (int, float)) and not isinstance(value, bool)
    number = float(value) if isinstance(value, (int, float)) and sound else 0.0
    return number if math.isfinite(number) and number > 0 else 0.0
