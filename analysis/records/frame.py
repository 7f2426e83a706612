"""Records as pandas tables: one row for each trial, request, or connection that was opened.

This is where notebooks and figures begin.  Units are in the column names, raw values are not
rounded, and what was not measured is NaN or NA.  The columns are the same for any results of one
kind of trial, empty ones included; beside them there is one for each setting that is asked of TCP
by the kernel's name, such as ``sysctl.tcp_sack``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import pandas as pd

from analysis.records.cells import experiment_of, flatten
from analysis.records.kind import COUNTED, RecordKind, records_of
from analysis.records.results import Results, judge
from analysis.words import is_setting
from testbed.model import OpenedConnection, PageLoad, Record, RequestTiming, stored_kind

_KNOWN = ("kernel", "kernel_version", "seed", "repetition", "position", "outcome")
_OF_REQUEST = ("seed", "url", "status", "start_ms", "end_ms", "latency_ms", "transfer_bytes",
               "connection", "cold")  # fmt: skip


def trial_columns(kind: RecordKind) -> tuple[str, ...]:
    """Return the columns of ``trial_frame`` for trials of a kind, without settings of TCP."""
    return ("trial_id", *kind.knobs, *_KNOWN, *kind.words, *kind.measured)


def request_columns(kind: RecordKind) -> tuple[str, ...]:
    """Return the columns of ``request_frame`` for trials of a kind, without settings of TCP."""
    return ("trial_id", *kind.knobs, *_OF_REQUEST)


def kind_of_results(results: Results) -> RecordKind:
    """Return the description of the kind of trial that ``results`` are of.

    Raises:
        ConfigurationError: the manifest is not a run's.
    """
    return records_of(stored_kind(experiment_of(results.manifest)))


def trial_frame(results: Results) -> pd.DataFrame:
    """Return every counted trial as a row, in the order of trial ids.

    Columns: ``trial_id``, one for each knob by its leaf name (``page``, ``rtt_ms``, ``tfo``, ...),
    ``kernel``, ``kernel_version``, ``seed``, ``repetition``, ``position``, ``outcome`` (as judged
    by ``records.results.judge``), and what trials of the kind measure: every metric and what is
    counted (``measured`` of its description).  They are NaN unless the outcome is ``ok``, and so is
    a metric that the load does not have.  Before the metrics are
    the words of its kind, such as a verdict, NA unless the outcome is ``ok``.
    """
    kind = kind_of_results(results)
    measured = kind.measured
    rows = [_trial_row(record, measured) for record in results.records]
    frame = pd.DataFrame(rows, columns=_with_settings(trial_columns(kind), rows))
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
        known = _origin(record)
        used: set[str] = set()
        for request in sorted(load.requests, key=lambda r: (r.start_ms, r.end_ms, r.url)):
            rows.append({**known, **_request_row(request, used)})
    frame = pd.DataFrame(
        rows, columns=_with_settings(request_columns(kind_of_results(results)), rows)
    )
    return frame.astype({"transfer_bytes": "float64", "cold": "boolean"})


def opening_frame(results: Results) -> pd.DataFrame:
    """Return every connection that the last visit of an ``ok`` trial opened over TLS as a row.

    Columns: ``trial_id``, the knobs, ``seed``, and what is known of it
    (``testbed.model.OpenedConnection``), in the order of their first packets.
    """
    rows: list[dict[str, Any]] = []
    for record in results.records:
        if record.proof is None or not record.proof.visits or judge(record)[0] != "ok":
            continue
        known = _origin(record)
        rows += [known | asdict(each) for each in record.proof.visits[-1].opened]
    opened = (each.name for each in fields(OpenedConnection))
    columns = ("trial_id", *kind_of_results(results).knobs, "seed", *opened)
    return pd.DataFrame(rows, columns=_with_settings(columns, rows))


def _origin(record: Record) -> dict[str, Any]:
    """Return which trial it is, as columns before what was seen in it."""
    trial = record.trial
    return {"trial_id": record.trial_id, **flatten(trial.condition), "seed": trial.seed}


def _with_settings(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return ``columns``, and before the seed the settings of TCP that ``rows`` have."""
    settings = list(dict.fromkeys(name for row in rows for name in row if is_setting(name)))
    at = next(place for place, name in enumerate(columns) if name in ("kernel", "seed"))
    return [*columns[:at], *settings, *columns[at:]]


def varying_columns(frame: pd.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of the columns ``names`` that hold more than one value."""
    return tuple(name for name in names if frame[name].nunique(dropna=False) > 1)


def _trial_row(record: Record, names: Sequence[str]) -> dict[str, Any]:
    outcome = judge(record)[0]
    trial, proof = record.trial, record.proof
    measured: dict[str, Any] = dict.fromkeys(names, float("nan"))
    if outcome == "ok":
        known = {name: getattr(proof, name, None) for name in COUNTED}
        known |= {name: getattr(record.measured, name, None) for name in names if name not in known}
        known |= records_of(trial.kind).values(record)
        measured |= {name: value for name, value in known.items() if value is not None}
    return {"trial_id": record.trial_id, **flatten(trial.condition), "kernel": trial.kernel,
            "kernel_version": trial.kernel_version, "seed": trial.seed,
            "repetition": trial.repetition, "position": record.position, "outcome": outcome,
            **measured}  # fmt: skip


def _request_row(request: RequestTiming, used: set[str]) -> dict[str, Any]:
    """Return one request; add its connection to ``used``, those before it."""
    cold = None if request.connection is None else request.connection not in used
    if request.connection is not None:
        used.add(request.connection)
    return {"url": request.url, "status": request.status, "start_ms": request.start_ms,
            "end_ms": request.end_ms, "latency_ms": request.end_ms - request.start_ms,
            "transfer_bytes": request.transfer_bytes, "connection": request.connection,
            "cold": cold}  # fmt: skip
