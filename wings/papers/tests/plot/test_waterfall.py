"""Waterfalls of requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis import plot
from analysis.records.frame import request_frame
from analysis.records.results import read_results
from testbed.base.errors import ConfigurationError
from wings.papers.plot.waterfall import FIRST, LATER, UNKNOWN, waterfall


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
