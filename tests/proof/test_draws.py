"""Draws of a seed against what happened: the start of a load, and the price of computing."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.model import Condition
from testbed.proof.draws import check_computing, check_start
from tests.capture.packets import ACK, CLIENT, SERVER, Capture
from tests.evidence import evidence

ROUND_MS, DRAWN_MS = 20_000.0, 63.997658
"""Of 100 ms the seed 0 draws as much (SHA-256 of "0 start")."""
PRICES_NS = [115, 6, 29]
"""By the seeds from 0 (SHA-256 of "0 computing")."""


def started(client: str, at_ms: float, folder: Path, **shown: Any) -> list[str]:
    capture = Capture()
    capture.add((CLIENT, 2000), (SERVER, 80), ACK, 1, 1, b"", b"", ROUND_MS + at_ms)
    asked = Condition("p", client, start_spread_ms=100.0)
    seen = evidence(
        condition=asked, clients=[socket.inet_aton(CLIENT)], capture=capture.read(folder), **shown
    )
    return list(check_start(seen))


@pytest.mark.parametrize(
    ("client", "at_ms", "late_ms"),
    [("graph", DRAWN_MS + 1000, None), ("chromium", DRAWN_MS + 1067.9, None),
     ("graph", DRAWN_MS + 1068.1, "68.100"), ("graph", 993.0, "-70.998"),
     ("graph", DRAWN_MS + 999, "-1.000"), ("wget2", DRAWN_MS + 0.3, None),
     ("wget2", DRAWN_MS + 2.1, "2.100"), ("wget2", 0.3, "-63.698"), ("command", 5000.0, None)],
)  # fmt: skip
def test_a_load_starts_when_its_seed_draws(
    tmp_path: Path, client: str, at_ms: float, late_ms: str | None
) -> None:
    said = (
        f"start_spread_ms = 100: the first packet left {late_ms} ms after the moment that the seed "
        "0 draws"
    )
    assert started(client, at_ms, tmp_path) == ([] if late_ms is None else [said])


def test_beside_neighbours_nothing_is_forgotten_last(tmp_path: Path) -> None:
    there = {"neighbour_account": object()}
    assert started("graph", DRAWN_MS + 0.2, tmp_path, **there) == []
    assert started("graph", DRAWN_MS + 1000.2, tmp_path, **there) != []


@pytest.mark.parametrize("seed", range(3))
def test_computing_costs_what_its_seed_draws(seed: int) -> None:
    def said(jitter: str, call_ns: int | None) -> list[str]:
        asked = Condition("p", "graph", jitter=jitter)  # type: ignore[arg-type]
        seen = evidence(condition=asked)
        return list(check_computing(replace(
            seen, trial=replace(seen.trial, seed=seed),
            observed=replace(seen.observed, call_ns=call_ns),
        )))  # fmt: skip

    assert said("computing", PRICES_NS[seed]) == said("none", 0) == []
    for call_ns in {*PRICES_NS, 0, None} - {PRICES_NS[seed]}:
        assert said("computing", call_ns) == [
            f"jitter = computing: a system call took {call_ns} ns, the seed {seed} draws "
            f"{PRICES_NS[seed]}"
        ]
    assert len(said("none", 115)) == 1
