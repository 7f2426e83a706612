"""Neighbours in the words of the knob: what they ask for, and what they cannot."""

from __future__ import annotations

import pytest

from testbed.model.traffic import Neighbour, lead_s, list_flows, parse_traffic


def test_nobody() -> None:
    assert parse_traffic("none") == ()


@pytest.mark.parametrize(
    ("text", "neighbour"),
    [
        ("bulk up", Neighbour("bulk up", "bulk", ("up",), -5.0, None, 1, "cubic")),
        (
            "bulk down 4x bbr from -2s to 20s",
            Neighbour("bulk down 4x bbr from -2s to 20s", "bulk", ("down",), -2.0, 20.0, 4, "bbr"),
        ),
        (
            "cbr up 500kbit from 1s",
            Neighbour(
                "cbr up 500kbit from 1s", "cbr", ("up",), 1.0, None,
                packet_bytes=1200, gap_ns=19_200_000,
            ),
        ),
        (
            "cbr down 8kbit 100B",
            Neighbour(
                "cbr down 8kbit 100B", "cbr", ("down",), -5.0, None,
                packet_bytes=100, gap_ns=100_000_000,
            ),
        ),
        (
            "call to 3s",
            Neighbour(
                "call to 3s", "call", ("up", "down"), -5.0, 3.0, packet_bytes=200, gap_ns=20_000_000
            ),
        ),
    ],
)  # fmt: skip
def test_one_neighbour(text: str, neighbour: Neighbour) -> None:
    assert parse_traffic(text) == (neighbour,)


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
    [
        ("", "is not "),
        ("none + call", "is not "),
        ("call+call", "is not "),
        ("bulk", "is not "),
        ("bulk up 0x", "is not "),
        ("cbr up", "is not "),
        ("call 2x", "is not "),
        ("bulk up to 3s from 1s", "'bulk up to' is no|is not "),
        (" + ".join(["call"] * 9), "is not "),
        ("call from 2s to 2s", "ends before it"),
        ("bulk up to -1s", "ends before it"),
        ("cbr up 100kbit 39B", "40 bytes of headers"),
        ("cbr up 90000000kbit", "packets a second"),
        ("bulk up 99x", "more than 64 flows"),
    ],
)
def test_what_nobody_can_be(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_traffic(text)
