"""Records as pandas tables: one row for each trial, or one for each request.

This is where notebooks and figures begin.  Units are in the column names, raw values are not
rounded, and what was not measured is NaN or NA.  The columns are the same for any results of one
kind of trial, empty ones included; beside them there is one for each setting that is asked of TCP
by the kernel's name, such as ``sysctl.tcp_sack``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.records.cells import experiment_of, flatten
from analysis.records.metric import METRICS_OF, SERVED
from analysis.records.results import Results, judge
from analysis.words import is_setting
from testbed.kinds.command.spec import LabCommand
from testbed.kinds.scenario.measurement import ScenarioResult
from testbed.kinds.server_load.spec import ArrivalSpec, ServerLoad, ServerSpec
from testbed.model import Condition, PageLoad, Record, RequestTiming

COUNTED = ("connections", "syns_with_payload", "retransmits", "server_retransmits")
KNOBS = tuple(flatten(Condition(page="", client="")))
MEASURED = (*(metric.name for metric in METRICS_OF["page_load"]), *COUNTED, "requests")
_KNOWN = ("kernel", "kernel_version", "seed", "repetition", "position", "outcome")
TRIAL_COLUMNS = ("trial_id", *KNOBS, *_KNOWN, *MEASURED)
"""Of page loads."""
_SERVED_KNOBS = tuple(flatten(ServerLoad(ServerSpec(), ArrivalSpec())))
_SERVED_COUNTS = ("started", "answered", "refused", "reset", "timed_out", "syn_retransmissions")
SERVED_MEASURED = (*(metric.name for metric in SERVED), *COUNTED, *_SERVED_COUNTS)
SERVED_COLUMNS = ("trial_id", *_SERVED_KNOBS, *_KNOWN, *SERVED_MEASURED)
"""Of loads on a server."""
SCENARIO_MEASURED = ("failed_checks", "calls", "packets", "lost", "connections", "retransmits")
SCENARIO_COLUMNS = ("trial_id", "kind", "scenario", *_KNOWN, "verdict", *SCENARIO_MEASURED)
"""Of scenarios."""
COMMAND_MEASURED = (*(metric.name for metric in METRICS_OF["command"]), *COUNTED)
COMMAND_COLUMNS = (
    "trial_id", *flatten(LabCommand(page="", client="")), *_KNOWN, *COMMAND_MEASURED,
)  # fmt: skip
"""Of commands in the lab."""
_COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "page_load": (TRIAL_COLUMNS, MEASURED),
    "server_load": (SERVED_COLUMNS, SERVED_MEASURED),
    "scenario": (SCENARIO_COLUMNS, SCENARIO_MEASURED),
    "command": (COMMAND_COLUMNS, COMMAND_MEASURED),
}
REQUEST_COLUMNS = (
    "trial_id",
    *KNOBS,
    "seed",
    "url",
    "status",
    "start_ms",
    "end_ms",
    "latency_ms",
    "transfer_bytes",
    "connection",
    "cold",
)


def trial_frame(results: Results) -> pd.DataFrame:
    """Return every counted trial as a row, in the order of trial ids.

    Columns: ``trial_id``, one for each knob by its leaf name (``page``, ``rtt_ms``, ``tfo``, ...),
    ``kernel``, ``kernel_version``, ``seed``, ``repetition``, ``position``, ``outcome`` (as judged
    by ``records.results.judge``), and MEASURED: every metric and what is counted.  They are NaN
    unless the outcome is ``ok``, and so is a metric that the load does not have.  Loads on a server
    have SERVED_MEASURED instead; scenarios have SCENARIO_MEASURED, and before it their ``verdict``,
    NA unless the outcome is ``ok``: ``packets`` are those sent, ``lost`` those that never arrived;
    commands have COMMAND_MEASURED.
    """
    kind: str = experiment_of(results.manifest).get("kind", "page_load")
    columns, measured = _COLUMNS[kind]
    rows = [_trial_row(record, measured) for record in results.records]
    frame = pd.DataFrame(rows, columns=_with_settings(columns, rows))
    return frame.astype(dict.fromkeys(measured, "float64"))


def request_frame(results: Results) -> pd.DataFrame:
    """Return every request of every ``ok`` trial as a row, in the order in which it was made.

    Columns: ``trial_id``, the knobs, ``seed``, ``url``, ``status``, ``start_ms`` and ``end_ms``
    since the start of the load, ``latency_ms`` (their difference), ``transfer_bytes``,
    ``connection``, and ``cold``: whether it was the first on its connection, NA where the client
    did not report the connection.
    """
    rows: list[dict[str, Any]] = []
    for record in results.records:
        load = record.measured_as(PageLoad)
        if load is None or judge(record)[0] != "ok":
            continue
        known = {
            "trial_id": record.trial_id,
            **flatten(record.trial.condition),
            "seed": record.trial.seed,
        }
        used: set[str] = set()
        for request in sorted(load.requests, key=lambda r: (r.start_ms, r.end_ms, r.url)):
            rows.append({**known, **_request_row(request, used)})
    frame = pd.DataFrame(rows, columns=_with_settings(REQUEST_COLUMNS, rows))
    return frame.astype({"transfer_bytes": "float64", "cold": "boolean"})


def _with_settings(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return ``columns``, and before the seed the settings of TCP that ``rows`` have."""
    found = list(dict.fromkeys(name for row in rows for name in row if is_setting(name)))
    at = next(place for place, name in enumerate(columns) if name in ("kernel", "seed"))
    return [*columns[:at], *found, *columns[at:]]


def varying_columns(frame: pd.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of the columns ``names`` that hold more than one value."""
    return tuple(name for name in names if frame[name].nunique(dropna=False) > 1)


def _trial_row(record: Record, names: Sequence[str]) -> dict[str, Any]:
    outcome = judge(record)[0]
    trial, load, proof = record.trial, record.measured_as(PageLoad), record.proof
    result = record.measured_as(ScenarioResult)
    measured = dict.fromkeys(names, float("nan"))
    if outcome == "ok":
        known = {name: getattr(proof, name, None) for name in COUNTED}
        known |= {name: getattr(record.measured, name, None) for name in names if name not in known}
        if load is not None:
            known["requests"] = len(load.requests)
        if result is not None:
            known |= _performed(result)
        measured |= {name: value for name, value in known.items() if value is not None}
    return {
        "trial_id": record.trial_id,
        **flatten(trial.condition),
        "kernel": trial.kernel,
        "kernel_version": trial.kernel_version,
        "seed": trial.seed,
        "repetition": trial.repetition,
        "position": record.position,
        "outcome": outcome,
        **({"verdict": result.verdict} if result and outcome == "ok" else {}),
        **measured,
    }


def _performed(result: ScenarioResult) -> dict[str, float]:
    passages = result.performance.passages
    return {
        "calls": len(result.performance.calls),
        "packets": len(passages),
        "lost": sum(not passage.arrivals for passage in passages),
    }


def _request_row(request: RequestTiming, used: set[str]) -> dict[str, Any]:
    """Return one request; add its connection to ``used``, those before it."""
    cold = None if request.connection is None else request.connection not in used
    if request.connection is not None:
        used.add(request.connection)
    return {
        "url": request.url,
        "status": request.status,
        "start_ms": request.start_ms,
        "end_ms": request.end_ms,
        "latency_ms": request.end_ms - request.start_ms,
        "transfer_bytes": request.transfer_bytes,
        "connection": request.connection,
        "cold": cold,
    }
