"""Openings of connections, drawn."""

from __future__ import annotations

from typing import Any

import pytest

from analysis import plot
from testbed.base.errors import ConfigurationError
from wings.papers.plot.openings import HELLO, IN_SYN, REQUEST, WAITING, openings


def opened(**other: Any) -> dict[str, Any]:
    """A connection over TCP whose server is asked as soon as its handshake has ended."""
    usual = {"trial_id": "a", "tfo": False, "host": "a.test", "began_ms": 0.0, "hello_ms": 100.0,
             "hello_bytes": 500, "syn_bytes": 0, "early_bytes": 0, "asked_ms": 200.0}  # fmt: skip
    return usual | other


def bars(*connections: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = openings(connections, **more).to_dict()["data"]["values"]
    return rows


def test_a_connection_is_a_row_of_what_came_one_after_the_other() -> None:
    later = opened(began_ms=50.0, hello_ms=150.0, asked_ms=None, host="b.test")
    drawn = bars(later, opened())
    assert [(bar["place"], bar["host"], bar["kind"]) for bar in drawn] == [
        (1, "a.test", HELLO), (1, "a.test", WAITING), (1, "a.test", REQUEST), (2, "b.test", HELLO),
    ]  # fmt: skip
    assert [(bar["start"], bar["end"]) for bar in drawn[:2]] == [(0.0, 100.0), (100.0, 200.0)]


def test_early_data_does_not_wait() -> None:
    drawn = bars(opened(asked_ms=100.01, early_bytes=585))
    assert [(bar["kind"], bar["size"]) for bar in drawn] == [(HELLO, 500), (REQUEST, 585)]


def test_a_connection_that_is_given_up_has_its_syn_alone() -> None:
    given_up = opened(hello_ms=None, asked_ms=None, syn_bytes=1420)
    kinds = [bar["kind"] for bar in bars(opened(syn_bytes=500), given_up)]
    assert kinds == [HELLO, WAITING, IN_SYN, REQUEST, IN_SYN]


def test_each_load_has_a_panel() -> None:
    both = (opened(), opened(trial_id="b", tfo=True, syn_bytes=500))
    drawn = openings(both, facet="tfo", title="wikipedia")
    assert {bar["facet"] for bar in drawn.to_dict()["data"]["values"]} == {
        "Fast Open off", "Fast Open on",
    }  # fmt: skip
    assert "Fast Open on" in plot.to_svg(drawn)
    with pytest.raises(ConfigurationError, match="openings: 2 loads in one panel"):
        openings(both)
    with pytest.raises(ConfigurationError, match="nothing to draw"):
        openings([opened(hello_ms=None, asked_ms=None)])
