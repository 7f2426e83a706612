"""Prices fitted to loads: found again where they are exact, never negative, and as a file."""

from __future__ import annotations

import shlex
import tomllib

import pytest

from bench.server_price import PARTS, SpentTime, chosen_prices, fit_prices, judge_prices
from bench.work import Machine
from wings.server_loads.price_list import price_work
from wings.server_loads.spec import ServerSpec

PRICES = {"syn": 4.0, "segment": 2.0, "accept_and_close": 9.0, "request": 7.5}
# SYN, segments, accept and close, requests: of each load, a connection.
SHAPES = ((1, 9, 1, 1), (1, 7, 1, 1), (1, 17, 1, 5), (1, 25, 1, 1), (1, 1, 0, 0))


def loads(prices: dict[str, float], more_us: float = 0.0) -> list[SpentTime]:
    """Loads that cost what ``prices`` say, the first ``more_us`` more."""
    found = []
    for number, shape in enumerate(SHAPES):
        parts = dict(zip(PARTS, map(float, shape), strict=True))
        us = sum(parts[part] * prices[part] for part in PARTS) + (more_us if not number else 0)
        found.append(SpentTime(f"load {number}", us, parts))
    return found


def test_exact_prices_are_found_again() -> None:
    assert fit_prices(loads(PRICES)) == pytest.approx(PRICES)


def test_no_price_is_negative() -> None:
    found = fit_prices(loads(PRICES | {"request": -3.0}))
    assert found["request"] == 0.0
    assert all(price >= 0 for price in found.values())


def test_the_list_of_all_rounds_has_intervals_and_is_a_part_of_an_experiment_file() -> None:
    rounds = [loads(PRICES, more_us) for more_us in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)]
    result = judge_prices(rounds, Machine(2, 0.1))
    assert (result.verdict, result.n) == ("reported", 6)
    segment = result.details["prices_us"]["segment"]
    assert segment["interval"]["low"] <= segment["median"] <= segment["interval"]["high"]
    assert segment["least"] <= segment["median"] <= segment["greatest"]
    ((name, text),) = result.files.items()
    assert name == "event-server-prices.toml"
    document = tomllib.loads(text)
    prices = price_work(ServerSpec(**document["server"]))
    assert prices["segment"] == pytest.approx(segment["median"] * 1000, abs=1)
    assert prices["accept"] == prices["close"]
    assert document["prices_from"].startswith("measured: event-server on ")
    assert document["prices_from"].endswith(", n = 6")
    (options,) = [line[1:] for line in text.splitlines() if line.startswith("#   --set")]
    words = shlex.split(options)
    assert set(words[::2]) == {"--set"}
    told = [tomllib.loads(word) for word in words[1::2]]
    given = {name: value for one in told for name, value in one.items()}
    assert given == {**document["server"], "prices_from": document["prices_from"]}


def test_a_list_of_a_busy_machine_says_so() -> None:
    (text,) = judge_prices([loads(PRICES)], Machine(2, 5.0), "nginx").files.values()
    assert tomllib.loads(text)["prices_from"].endswith(", n = 1, on a machine that was not idle")


def test_the_list_that_is_charged_is_beside_it() -> None:
    assert chosen_prices()["segment"] == ServerSpec().price_segment_us
    assert "segment 2.5" in judge_prices([loads(PRICES)], Machine(2, 0.1)).asked
