"""Figures of one visit: waterfalls of its requests, and openings of its connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis import plot
from analysis.records.frame import request_frame
from analysis.records.results import read_results
from testbed.base.errors import ConfigurationError
from wings.papers.plot.visit import (
    FIRST,
    HELLO,
    IN_SYN,
    LATER,
    REQUEST,
    UNKNOWN,
    WAITING,
    openings,
    waterfall,
)


@pytest.fixture(scope="module")
def requests(sample: Path) -> pd.DataFrame:
    frame = request_frame(read_results(sample))
    return frame.query("page == 'amazon' and rtt_ms == 100 and seed == 0")


def bars(chart: plot.Plot) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = chart.to_dict()["data"]["values"]
    return rows


def test_each_request_is_a_bar_in_order_of_start(requests: pd.DataFrame) -> None:
    load = requests.query("not tfo")
    drawn = bars(waterfall(load))
    assert len(drawn) == len(load)
    assert [bar["place"] for bar in drawn] == list(range(1, len(load) + 1))
    assert [bar["start"] for bar in drawn] == sorted(load["start_ms"])
    assert {bar["kind"] for bar in drawn} == {FIRST, LATER}


def test_both_arms_stand_side_by_side(requests: pd.DataFrame) -> None:
    drawn = bars(waterfall(requests, facet="tfo"))
    assert {bar["facet"] for bar in drawn} == {"Fast Open off", "Fast Open on"}
    svg = plot.to_svg(waterfall(requests, facet="tfo", title="amazon"))
    assert "Fast Open off" in svg
    assert "amazon" in svg


def test_a_client_that_tells_no_connection_gets_a_colour_of_its_own(requests: pd.DataFrame) -> None:
    load = requests.query("tfo").assign(connection=None, cold=None)
    assert {bar["kind"] for bar in bars(waterfall(load))} == {UNKNOWN}


def test_names_of_pages_are_cleaned(requests: pd.DataFrame) -> None:
    load = requests.query("tfo").assign(url="http://a/\u202e\x1b[31m")
    assert {bar["url"] for bar in bars(waterfall(load))} == {"http://a/\ufffd\ufffd[31m"}


def test_several_loads_in_one_panel_are_refused(requests: pd.DataFrame) -> None:
    with pytest.raises(ConfigurationError, match="2 loads in one panel"):
        waterfall(requests)


def test_no_requests_are_refused(requests: pd.DataFrame) -> None:
    with pytest.raises(ConfigurationError, match="nothing to draw"):
        waterfall(requests.iloc[:0])


def opened(**other: Any) -> dict[str, Any]:
    """A connection over TCP whose server is asked as soon as its handshake has ended."""
    usual = {"trial_id": "a", "tfo": False, "host": "a.test", "began_ms": 0.0, "hello_ms": 100.0,
             "hello_bytes": 500, "syn_bytes": 0, "early_bytes": 0, "asked_ms": 200.0}  # fmt: skip
    return usual | other


def test_a_connection_is_a_row_of_what_came_one_after_the_other() -> None:
    later = opened(began_ms=50.0, hello_ms=150.0, asked_ms=None, host="b.test")
    drawn = bars(openings([later, opened()]))
    assert [(bar["place"], bar["host"], bar["kind"]) for bar in drawn] == [
        (1, "a.test", HELLO), (1, "a.test", WAITING), (1, "a.test", REQUEST), (2, "b.test", HELLO),
    ]  # fmt: skip
    assert [(bar["start"], bar["end"]) for bar in drawn[:2]] == [(0.0, 100.0), (100.0, 200.0)]


def test_early_data_does_not_wait() -> None:
    drawn = bars(openings([opened(asked_ms=100.01, early_bytes=585)]))
    assert [(bar["kind"], bar["size"]) for bar in drawn] == [(HELLO, 500), (REQUEST, 585)]


def test_a_connection_that_is_given_up_has_its_syn_alone() -> None:
    given_up = opened(hello_ms=None, asked_ms=None, syn_bytes=1420)
    kinds = [bar["kind"] for bar in bars(openings([opened(syn_bytes=500), given_up]))]
    assert kinds == [HELLO, WAITING, IN_SYN, REQUEST, IN_SYN]


def test_each_load_has_a_panel() -> None:
    both = (opened(), opened(trial_id="b", tfo=True, syn_bytes=500))
    drawn = openings(both, facet="tfo", title="wikipedia")
    assert {bar["facet"] for bar in bars(drawn)} == {"Fast Open off", "Fast Open on"}
    assert "Fast Open on" in plot.to_svg(drawn)
    with pytest.raises(ConfigurationError, match="openings: 2 loads in one panel"):
        openings(both)
    with pytest.raises(ConfigurationError, match="nothing to draw"):
        openings([opened(hello_ms=None, asked_ms=None)])
