"""Prices of a server's work: multiples of one list."""

from __future__ import annotations

import pytest

from testbed.kinds.server_load.price_list import LIST, price_work
from testbed.model import ServerSpec


def test_a_connection_costs_about_fifty_microseconds() -> None:
    # SYN, and by client and server: SYN-ACK, ACK, request, ACK, response, ACK, FIN, FIN, ACK.
    whole = LIST.syn + 9 * LIST.segment + LIST.accept + LIST.request + LIST.close
    assert whole == 47_500


@pytest.mark.parametrize("multiple", [0.0, 1.0, 2.5])
def test_all_prices_are_multiplied(multiple: float) -> None:
    prices = price_work(ServerSpec(price=multiple))
    assert prices["syn"] == round(LIST.syn * multiple)
    assert prices["segment"] == round(LIST.segment * multiple)


def test_the_program_s_own_work_is_added_to_each_request_as_it_is() -> None:
    with_work = price_work(ServerSpec(price=2.0, request_cost_us=3.5))
    assert with_work == price_work(ServerSpec(price=2.0)) | {"request": 2 * LIST.request + 3500}
