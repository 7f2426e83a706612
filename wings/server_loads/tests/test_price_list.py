"""Prices of a server's work: multiples of one list."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wings.server_loads.price_list import (
    LISTS_US,
    ORIGINS,
    PARTS,
    connection_price,
    list_prices_us,
    price_work,
)
from wings.server_loads.spec import ServerSpec

VARIATIONS = tuple(f"{part}*{factor}" for part in PARTS for factor in ("0.5", "2"))


def test_a_connection_costs_about_fifty_microseconds() -> None:
    prices = price_work(ServerSpec())
    # SYN, and by client and server: SYN-ACK, ACK, request, ACK, response, ACK, FIN, FIN, ACK.
    assert sum(prices.values()) + 8 * prices["segment"] == 47_500


@pytest.mark.parametrize("multiple", [0.0, 1.0, 2.5, 5.4, 20.0])
def test_all_prices_are_multiplied(multiple: float) -> None:
    once = price_work(ServerSpec())
    assert price_work(ServerSpec(price=multiple)) == {
        name: round(price * multiple) for name, price in once.items()
    }


def test_a_list_of_one_s_own() -> None:
    own = ServerSpec(
        price=2.0, price_syn_us=3.1, price_segment_us=1.234, price_accept_us=0.0,
        price_request_us=7.0, price_close_us=0.5,
    )  # fmt: skip
    assert price_work(own) == {
        "syn": 6200, "segment": 2468, "accept": 0, "request": 14_000, "close": 1000
    }  # fmt: skip


def test_the_program_s_own_work_is_added_to_each_request_as_it_is() -> None:
    twice = price_work(ServerSpec(price=2.0))
    with_work = price_work(ServerSpec(price=2.0, request_cost_us=3.5))
    assert with_work == twice | {"request": twice["request"] + 3500}


@pytest.mark.parametrize("name", ORIGINS)
@pytest.mark.parametrize("varied", ["", *VARIATIONS])
def test_a_connection_costs_the_same_by_every_list(name: str, varied: str) -> None:
    prices = list_prices_us(ServerSpec(prices=f"{name} {varied}".strip()))
    assert connection_price(prices) == pytest.approx(47.5)


def test_a_varied_price_changes_against_all_others() -> None:
    base = list_prices_us(ServerSpec(prices="shukla-2006"))
    varied = list_prices_us(ServerSpec(prices="shukla-2006 syn*2"))
    ratios = {part: varied[part] / base[part] for part in base}
    others = {round(ratio, 9) for part, ratio in ratios.items() if part != "syn"}
    assert len(others) == 1
    assert ratios["syn"] / others.pop() == pytest.approx(2.0)


def test_prices_of_one_s_own_are_varied_too() -> None:
    own = ServerSpec(price_syn_us=1.0, price_accept_us=70.0)
    varied = replace(own, prices="model accept*0.5")
    assert (
        connection_price(list_prices_us(varied)) == connection_price(list_prices_us(own)) == 108.5
    )
    assert list_prices_us(varied)["accept"] < 70.0


def test_the_calibrated_list_is_what_table_ii_says() -> None:
    """The counts of Table II; an extra segment costs as much of a connection at both overloads."""
    us = 120e6 / 2_640_011
    lost, extra = [], []
    for establishing, established in ((7_480_239, 2_372_030), (10_213_667, 2_236_980)):
        lost.append(2_640_011 - established)
        extra.append(establishing - 2 * established)
    share = sum(a * b for a, b in zip(lost, extra, strict=True)) / sum(b * b for b in extra)
    prices = dict(zip(PARTS, LISTS_US["shukla-2006"], strict=True))
    assert prices["syn"] == pytest.approx(share * us, abs=0.001)
    assert 2 * prices["segment"] == prices["syn"]  # an ACK, with the SYN-ACK that it answers
    assert connection_price(prices) == pytest.approx(us, abs=0.01)
    assert min(a / b for a, b in zip(lost, extra, strict=True)) == pytest.approx(0.07, abs=0.001)
