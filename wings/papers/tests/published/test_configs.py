"""The rebuilt sweeps ask for what their publications state."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.stats.estimates import LEAST_FOR_LEVEL
from testbed.base.places import CONFIGS
from testbed.client import tcp_alone
from testbed.experiment.config import load_experiment
from testbed.experiment.label import knob_of
from testbed.experiment.plan import plan_trials
from testbed.model import Condition, Experiment
from testbed.runner.prepare import read_catalogue
from wings.server_loads.spec import ServerLoad

RECORDED = {"amazon", "nytimes", "wsj", "wikipedia"}
FITTED = {"amazon-fit2011", "nytimes-fit2011", "wikipedia-fit2011"}
RTTS = {20.0, 100.0, 200.0}
PAPER_LINK = {"down_kbit": {4000}, "up_kbit": {256}, "framing_bytes": {0}}
TUM_LINK = {"down_kbit": {10_000}, "up_kbit": {10_000}, "framing_bytes": {14}}
BOTH = {False, True}


def asked(name: str) -> Experiment:
    return load_experiment(CONFIGS / f"{name}.toml", read_catalogue())


def values(conditions: tuple[Condition, ...], knob: str) -> set[Any]:
    return {knob_of(condition, knob) for condition in conditions}


@pytest.mark.parametrize(
    ("name", "loads", "wanted"),
    [
        (
            "paper-table1-fit2011", 108,
            PAPER_LINK
            | {"client": {"chromium"}, "page": FITTED, "rtt_ms": RTTS, "tfo": BOTH}
            | {"buffer_bytes": {131_072}, "initcwnd_segments": {3}, "cookies": {"cached"}},
        ),
        (
            "paper-handshake-share", 16,
            PAPER_LINK
            | {"client": {"chromium"}, "page": RECORDED, "rtt_ms": RTTS | {60.0}, "tfo": {False}},
        ),
        (
            "cs244-reuse", 864,
            PAPER_LINK
            | {"client": {"wget2"}, "page": RECORDED, "rtt_ms": RTTS, "tfo": BOTH}
            | {"requests_per_connection": {1, 2, 100}, "cookies": {"not-required"}},
        ),
        (
            "tum-initcwnd", 120,
            TUM_LINK
            | {"client": {"graph"}, "page": {"file-60k", "file-256k", "file-1m"}}
            | {"rtt_ms": {40.0, 200.0}, "initcwnd_segments": set(range(1, 21)), "tfo": {False}},
        ),
        (
            "tum-website", 80,
            TUM_LINK
            | {"client": {"graph"}, "page": {"tum-website"}, "cookies": {"cold"}, "tfo": BOTH}
            | {"rtt_ms": {float(r) for r in range(10, 201, 10)}, "initcwnd_segments": {4, 10}},
        ),
        (
            "tum-file-sizes", 72,
            TUM_LINK
            | {"client": {"graph"}, "rtt_ms": {40.0, 65.0, 200.0}, "initcwnd_segments": {4, 10}}
            | {"page": {"file-10k", "file-60k", "file-200k", "file-256k", "file-1m", "six-files"}}
            | {"tfo": BOTH, "cookies": {"cached"}},
        ),
        (
            "tum-receive-window", 12,
            TUM_LINK
            | {"client": {"graph"}, "page": {"file-60k"}, "rtt_ms": {200.0}, "tfo": {False}}
            | {"initcwnd_segments": {4, 10}, "route.client.initrwnd": {2, 4, 7, 10, 20, 40}},
        ),
        (
            "reuse-initcwnd", 216,
            PAPER_LINK
            | {"client": {"graph"}, "page": RECORDED, "rtt_ms": RTTS, "tfo": BOTH}
            | {"requests_per_connection": {1, 2, "unlimited"}, "initcwnd_segments": {3, 10, 32}},
        ),
    ],
)  # fmt: skip
def test_a_sweep_is_the_published_one(name: str, loads: int, wanted: dict[str, set[Any]]) -> None:
    experiment = asked(name)
    assert len(experiment.conditions_as(Condition)) * experiment.repetitions == loads
    assert {knob: values(experiment.conditions_as(Condition), knob) for knob in wanted} == wanted


def test_the_fitted_pages_are_loaded_as_the_recorded_ones_are() -> None:
    recorded, fitted = (
        asked(name).conditions_as(Condition) for name in ("paper-table1", "paper-table1-fit2011")
    )
    for knob in ("rtt_ms", "tfo", "buffer_bytes", "dns", "start_spread_ms", "think_spread_pct"):
        assert values(recorded, knob) == values(fitted, knob)


def test_repetitions_of_table_1_differ_by_what_is_asked_for() -> None:
    conditions = asked("paper-table1").conditions_as(Condition)
    assert values(conditions, "start_spread_ms") == {100.0}
    assert values(conditions, "think_spread_pct") == {20.0}


OVERLOADS = {"overload-establishment": [("default", "fin", 0), ("abort", "fin", 0),
                                        ("reserv", "fin", 0), ("abort rst-syn", "fin", 0),
                                        ("reserv rst-syn", "fin", 0)],
             "overload-windows-clients": [("abort", "fin", 2), ("abort rst-syn", "fin", 2),
                                          ("abort rst-syn", "fin", 0), ("no-syn-drop", "fin", 2)],
             "overload-termination": [("default", "fin", 0), ("default", "rst", 0),
                                      ("default rst-fin", "fin", 0), ("abort rst-syn", "rst", 0),
                                      ("abort rst-syn rst-fin", "fin", 0)],
             "overload-segments": [("default", "fin", 0)]}  # fmt: skip
QUEUES = {256: (256, 32), 128: (128, 16)}
"""The source's queues by the saturation: the slower a server, the shorter, so they last as long."""
SWEPT = {"overload-bursts": "burst_s", "overload-clients": "syn_timeouts_s",
         "overload-wan": "rtt_ms"}  # fmt: skip


@pytest.mark.parametrize("name", OVERLOADS)
def test_an_overload_has_the_published_combinations(name: str) -> None:
    experiment = asked(name)
    loads = [c for c in experiment.conditions if isinstance(c, ServerLoad)]
    arms = [(c.server.mechanism, c.arrivals.ending, c.arrivals.retries_refused) for c in loads]
    assert list(dict.fromkeys(arms)) == OVERLOADS[name]
    assert (
        len(loads)
        == len(set(loads))
        == len(set(arms)) * len({c.arrivals.rate_per_s for c in loads})
    )
    assert experiment.reference == name
    for load in loads:
        server, arrivals = load.server, load.arrivals
        # The source's queues, patience and SYNs (sections V and VI).
        assert (server.syn_backlog, server.listen_backlog, server.admission) == (
            *QUEUES[experiment.saturation_per_s or 0], "linux-2.4",
        )  # fmt: skip
        assert (arrivals.patience_s, arrivals.syn_retries, arrivals.syn_linear_timeouts) == (
            10, 2, 0,
        )  # fmt: skip


@pytest.mark.parametrize("name", [*OVERLOADS, "overload-bursts", "overload-clients"])
def test_an_overload_lasts_two_minutes_and_more_than_one_seed_has_it(name: str) -> None:
    experiment = asked(name)
    loads = [c for c in experiment.conditions if isinstance(c, ServerLoad)]
    assert {load.arrivals.duration_s for load in loads} == {120}
    assert experiment.repetitions >= 2


@pytest.mark.parametrize("name", [*OVERLOADS, *SWEPT])
def test_what_is_timed_under_a_load_ends_under_it(name: str) -> None:
    """Of Table II nothing is timed: it counts the whole load."""
    for load in asked(name).conditions:
        assert isinstance(load, ServerLoad)
        counted = name == "overload-segments"
        assert counted or load.arrivals.cool_down_s >= load.arrivals.patience_s


@pytest.mark.parametrize("name", SWEPT)
def test_a_swept_overload_has_default_at_each_value(name: str) -> None:
    experiment = asked(name)
    loads = [c for c in experiment.conditions if isinstance(c, ServerLoad)]
    at_each = {(knob_of(c, SWEPT[name]), c.server.mechanism) for c in loads}
    assert len(at_each) == len(loads)
    values_of = {value for value, _ in at_each}
    assert len(values_of) >= 4 and {(value, "default") for value in values_of} <= at_each
    assert experiment.reference == name


def test_all_overloads_have_one_server_at_one_of_two_speeds() -> None:
    found = [asked(name) for name in (*OVERLOADS, *SWEPT)]
    firsts = [(e.saturation_per_s, c.tcp, c.link.down_kbit, c.server.price, c.server.response_bytes)
              for e in found for c in e.conditions[:1] if isinstance(c, ServerLoad)]  # fmt: skip
    assert len(set(firsts)) == len(QUEUES)


def test_a_change_to_tcp_is_tried_on_cells_that_only_tcp_decides() -> None:
    """A lost question to the name server costs 5 s, and one draw of lost packets is luck."""
    tried = asked("kernel-try")
    conditions = [each for each in tried.conditions if isinstance(each, Condition)]
    assert len(conditions) == len(tried.conditions) == 48
    assert values(tuple(conditions), "dns") == {"hosts"}
    assert values(tuple(conditions), "client") == {"graph"}
    assert tried.repetitions >= LEAST_FOR_LEVEL
    assert len(plan_trials(tried, once=tcp_alone(tried.clients))) == 24 + 24 * tried.repetitions
