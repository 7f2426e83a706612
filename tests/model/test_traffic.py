"""Neighbours in the words of the knob: what they ask for, and what they cannot."""

from __future__ import annotations

from math import exp, log
from statistics import NormalDist, median
from typing import Any

import pytest

from testbed.model.fetches import plan_fetches
from testbed.model.traffic import Neighbour, lead_s, list_flows, parse_traffic


def test_nobody() -> None:
    assert parse_traffic("none") == ()


@pytest.mark.parametrize(
    ("text", "asked", "more"),
    [
        ("bulk up", ("bulk", ("up",), -5.0, None, 1, "cubic"), {}),
        ("bulk down 4x bbr from -2s to 20s", ("bulk", ("down",), -2.0, 20.0, 4, "bbr"), {}),
        ("cbr up 500kbit from 1s", ("cbr", ("up",), 1.0, None),
         {"packet_bytes": 1200, "gap_ns": 19_200_000}),
        ("cbr down 8kbit 100B", ("cbr", ("down",), -5.0, None),
         {"packet_bytes": 100, "gap_ns": 100_000_000}),
        ("call to 3s", ("call", ("up", "down"), -5.0, 3.0),
         {"packet_bytes": 200, "gap_ns": 20_000_000}),
        ("video down 8000kbit", ("video", ("down",), -5.0, None, 1, "cubic"),
         {"gap_ns": 4_000_000_000, "segment_bytes": 4_000_000}),
        ("video down 800kbit 2s bbr to 3s", ("video", ("down",), -5.0, 3.0, 1, "bbr"),
         {"gap_ns": 2_000_000_000, "segment_bytes": 200_000}),
        ("page from -1s", ("page", ("down",), -1.0, None, 0), {}),
        ("web 8x reno", ("web", ("down",), -5.0, None, 8, "reno"), {}),
    ],
)  # fmt: skip
def test_one_neighbour(text: str, asked: tuple[Any, ...], more: dict[str, Any]) -> None:
    assert parse_traffic(text) == (Neighbour(text, *asked, **more),)


def test_each_flow_has_a_port_of_its_own() -> None:
    flows = list(list_flows(parse_traffic("bulk up 2x + call from -9s + cbr down 100kbit")))
    assert [(each.number, each.way) for each in flows] == [
        (1, "up"), (2, "up"), (1, "up"), (1, "down"), (1, "down"),
    ]  # fmt: skip
    assert len({each.port for each in flows}) == 5


def test_the_first_decides_how_early_it_begins() -> None:
    assert lead_s(parse_traffic("bulk up from -2s + call from -9s")) == 9
    assert lead_s(parse_traffic("call from 2s")) == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "is not "), ("none + call", "is not "), ("call+call", "is not "), ("bulk", "is not "),
     ("bulk up 0x", "is not "), ("cbr up", "is not "), ("call 2x", "is not "),
     ("bulk up to 3s from 1s", "'bulk up to' is no|is not "), (" + ".join(["call"] * 9), "is not "),
     ("call from 2s to 2s", "ends before it"), ("bulk up to -1s", "ends before it"),
     ("cbr up 100kbit 39B", "40 bytes of headers"), ("cbr up 90000000kbit", "packets a second"),
     ("bulk up 99x", "more than 64 flows"), ("web 65x", "more than 64 flows"),
     ("video down", "is not "), ("video up 500kbit", "is not "),
     ("video down 99999999kbit 99s", "segments of more than")],
)  # fmt: skip
def test_what_nobody_can_be(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_traffic(text)


def test_a_video_has_segments_of_one_size_each_at_its_turn() -> None:
    (flow,) = list_flows(parse_traffic("video down 800kbit 2s"))
    first, second, *_ = plan_fetches(flow, 1)
    assert (first.size_bytes, first.due_ns, first.opens) == (200_000, 0, True)
    assert (second.size_bytes, second.due_ns, second.opens) == (200_000, 2_000_000_000, False)


def test_the_web_is_of_the_stated_distributions_and_of_its_seed() -> None:
    flows = list(list_flows(parse_traffic("web 64x")))
    drawn = [fetch for flow in flows for fetch in plan_fetches(flow, 7)]
    assert drawn == [fetch for flow in flows for fetch in plan_fetches(flow, 7)]
    assert drawn[:5] != [*plan_fetches(flows[0], 8)][:5]
    assert len({fetch.port for fetch in drawn}) == len(drawn) == 64 * 512
    assert median(fetch.size_bytes for fetch in drawn) == pytest.approx(exp(9.357), rel=0.05)
    tail = sum(fetch.size_bytes > 133_000 for fetch in drawn) / len(drawn)
    assert tail == pytest.approx(1 - NormalDist(9.357, 1.318).cdf(log(133_000)), rel=0.1)
    assert min(fetch.pause_ns for fetch in drawn) >= 10**9
    assert median(fetch.pause_ns for fetch in drawn) == pytest.approx(2 ** (2 / 3) * 1e9, rel=0.03)
    assert max(fetch.port for fetch in drawn) < 65_536
