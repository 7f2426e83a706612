"""Prices of a server's work: multiples of one list."""

from __future__ import annotations

import pytest

from testbed.kinds.server_load.price_list import price_work
from testbed.kinds.server_load.spec import ServerSpec


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
