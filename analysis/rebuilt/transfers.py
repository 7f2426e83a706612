"""Durations of single transfers by initial window, measured and predicted, as frames."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from analysis.rebuilt.sweep import proven_records
from analysis.records.cells import flatten
from analysis.records.har import HarError, parse_har, read_har_bytes
from analysis.records.results import Results
from analysis.shortflow import predict_fetch_ms
from testbed.base.errors import ConfigurationError
from testbed.model import Record

WINDOW = "initcwnd_segments"
BASE = 4
"""The window against which gains are stated (RFC 5681; section 5 of the seminar paper)."""

USUAL_REQUEST_BYTES = 400
"""A browser's or our client's GET; at 10 Mbit/s 100 bytes more or less are 0.08 ms."""


def predictions(results: Results) -> pd.DataFrame:
    """One row for each proven load of a single object: the knobs, ``trial_id``, ``model_s``."""
    rows = []
    for record in proven_records(results):
        model_s = _predict_s(record, results.folder)
        if model_s is not None:
            known = flatten(record.trial.condition)
            rows.append({"trial_id": record.trial_id, **known, "model_s": model_s})
    columns = ["trial_id", "page", "rtt_ms", WINDOW, "model_s"]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def medians(frame: pd.DataFrame, value: str) -> pd.DataFrame:
    """The median of ``value`` over the runs: one row for each window, one column for each page.

    Pages stand in the order of what they take.
    """
    table = frame.pivot_table(index=WINDOW, columns="page", values=value, aggfunc="median")
    return table[table.median().sort_values(kind="stable").index]


def gains_pct(durations: pd.DataFrame, window: int) -> dict[str, float]:
    """Of each page of ``medians``: how much sooner it is with ``window`` than with BASE, in %.

    Pages that lack one of the two are not there; the order is that of ``medians``.
    """
    if BASE not in durations.index or window not in durations.index:
        return {}
    found = {str(page): (column[BASE], column[window]) for page, column in durations.items()}
    gains = {page: float((base - other) / base * 100.0) for page, (base, other) in found.items()}
    return {page: gain for page, gain in gains.items() if not math.isnan(gain)}


def _predict_s(record: Record, folder: Path) -> float | None:
    """What slow start says of a load of one object; ``None`` where the model does not hold."""
    condition, requests = record.trial.condition, record.load.requests if record.load else ()
    if len(requests) != 1 or not requests[0].transfer_bytes or condition.dns != "hosts":
        return None
    try:
        fetch_ms = predict_fetch_ms(
            condition.link,
            condition.tcp,
            _request_bytes(record, folder),
            requests[0].transfer_bytes,
        )
    except ConfigurationError:
        return None
    return (fetch_ms + condition.server_think_ms) / 1000.0


def _request_bytes(record: Record, folder: Path) -> int:
    """What the request took above TCP, by the load's HAR; USUAL_REQUEST_BYTES without one."""
    try:
        entries = parse_har(read_har_bytes(folder, record))["entries"]
        size = entries[0]["request"]["headersSize"]
    except (HarError, IndexError, KeyError, TypeError):
        return USUAL_REQUEST_BYTES
    return size if isinstance(size, int) and size > 0 else USUAL_REQUEST_BYTES
