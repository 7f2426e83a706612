from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest

from analysis.records.cells import flatten
from analysis.records.frame import (
    request_columns,
    request_frame,
    trial_columns,
    trial_frame,
    varying_columns,
)
from analysis.records.kind import records_of
from analysis.records.results import Results, gather_results
from testbed.model import Record, RequestTiming
from tests.analysis.sample import broken, conditions, experiment, record, with_milestones
from tests.measured import load_of

PAGE_LOADS = records_of("page_load")
MEASURED = PAGE_LOADS.measured
OFF, ON = conditions(["amazon"], [100.0])


def results_of(*records: Record) -> Results:
    asked = asdict(experiment(1, conditions=(OFF, ON)))
    return gather_results(Path("results"), records, {"experiment": asked})


def requests_of(good: Record, *timings: tuple[str, float, float, str | None]) -> Record:
    """``good`` with these requests: URL, start and end in ms, connection."""
    made = tuple(
        RequestTiming(url, 200, start, end, 1000, connection)
        for url, start, end, connection in timings
    )
    return replace(good, measured=replace(load_of(good), requests=made))


def test_a_row_for_each_trial_in_the_order_of_ids() -> None:
    records = (record(OFF, 0, 2000.0), record(ON, 0, 1500.25), record(OFF, 1, 2001.5))
    frame = trial_frame(results_of(*records))
    assert list(frame["trial_id"]) == sorted(r.trial_id for r in records)
    assert list(frame.columns) == list(trial_columns(PAGE_LOADS))
    assert set(flatten(OFF)) < set(frame.columns)
    on = frame[frame["tfo"]].iloc[0]
    assert (on["plt_ms"], on["rtt_ms"], on["page"], on["outcome"]) == (
        1500.25, 100.0, "amazon", "ok",
    )  # fmt: skip
    assert on["syns_with_payload"] == on["connections"] > 0


def test_settings_by_name_are_columns_where_there_are_any() -> None:
    asked = [
        replace(OFF, tcp=replace(OFF.tcp, sysctl={"tcp_rmem": "4096 1 2"}, route=route))
        for route in ({"server.quickack": 1}, {})
    ]
    load = replace(record(OFF), measured=record(OFF).measured)
    good = requests_of(load, ("http://a/", 0.0, 5.0, "1"))
    records = [replace(good, trial=replace(good.trial, condition=each)) for each in asked]
    records = [replace(each, trial_id=each.trial.id) for each in records]
    frame = trial_frame(results_of(*records))
    found = ["sysctl.tcp_rmem", "route.server.quickack"]
    assert [name for name in frame.columns if name not in trial_columns(PAGE_LOADS)] == found
    assert list(frame["sysctl.tcp_rmem"]) == ["4096 1 2"] * 2
    assert sorted(frame["route.server.quickack"].dropna()) == [1]
    assert set(found) < set(request_frame(results_of(*records)).columns)


def test_every_metric_is_a_column() -> None:
    frame = trial_frame(results_of(with_milestones(record(OFF), fcp_ms=404.0), record(ON)))
    off, on = (frame[frame["tfo"] == tfo].iloc[0] for tfo in (False, True))
    assert (off["fcp_ms"], off["cls"]) == (404.0, 0.0016)
    assert on[["ttfb_ms", "fp_ms", "fcp_ms", "lcp_ms", "cls"]].isna().all()
    assert on["plt_ms"] > 0


@pytest.mark.parametrize("outcome", ["timeout", "unproven", "lab_mismatch"])
def test_what_does_not_count_has_no_numbers(outcome: str) -> None:
    frame = trial_frame(results_of(record(OFF, 0, 2000.0), broken(record(ON, 0), outcome)))
    (bad,) = frame[frame["outcome"] == outcome].index
    assert frame.loc[bad, list(MEASURED)].isna().all()
    assert frame.loc[bad, "tfo"]
    assert frame["plt_ms"].sum() == 2000.0


def test_measured_columns_are_numbers_whatever_happened() -> None:
    frame = trial_frame(results_of(broken(record(ON, 0), "failed")))
    assert all(pd.api.types.is_float_dtype(frame[name]) for name in MEASURED)


def test_empty_results_have_all_columns() -> None:
    empty = results_of()
    assert list(trial_frame(empty).columns) == list(trial_columns(PAGE_LOADS))
    assert list(request_frame(empty).columns) == list(request_columns(PAGE_LOADS))


def test_requests_in_the_order_of_their_starts_and_cold_once_for_each_connection() -> None:
    good = requests_of(record(OFF, 0), ("c", 30.0, 90.0, "2"), ("a", 0.0, 20.0, "1"),
                       ("b", 25.0, 40.5, "1"))  # fmt: skip
    frame = request_frame(results_of(good))
    assert list(frame.columns) == list(request_columns(PAGE_LOADS))
    assert list(frame["url"]) == ["a", "b", "c"]
    assert list(frame["latency_ms"]) == [20.0, 15.5, 60.0]
    assert list(frame["cold"]) == [True, False, True]


def test_a_request_without_connection_is_neither_cold_nor_warm() -> None:
    good = requests_of(record(OFF, 0), ("a", 0.0, 20.0, None), ("b", 0.0, 20.0, None))
    frame = request_frame(results_of(good))
    assert frame["cold"].isna().all()


def test_connections_of_other_trials_are_other_connections() -> None:
    loads = [requests_of(record(each, 0), ("a", 0.0, 20.0, "1")) for each in (OFF, ON)]
    assert list(request_frame(results_of(*loads))["cold"]) == [True, True]


def test_requests_of_failed_trials_are_left_out() -> None:
    good = requests_of(record(OFF, 0), ("a", 0.0, 20.0, "1"))
    frame = request_frame(results_of(good, broken(record(ON, 0), "unproven")))
    assert list(frame["trial_id"]) == [good.trial_id]


def test_varying_columns() -> None:
    frame = trial_frame(results_of(record(OFF, 0), record(ON, 0)))
    assert varying_columns(frame, ("page", "tfo", "rtt_ms")) == ("tfo",)
