"""How long a client may keep its load waiting, in captures made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from testbed.capture.packets import ACK
from testbed.model import Condition, LinkSpec, PageLoad, RequestTiming
from testbed.proof.client_time import check_client_time
from tests.evidence import found
from tests.proof.test_account import Load, opened


def check(load: Load, ended_ms: float, client: str = "chromium") -> bool:
    told = PageLoad(client, "1", ended_ms, (RequestTiming("http://a/", 200, 0.0, ended_ms),))
    visit = SimpleNamespace(load=told, zero_ns=lambda *_: 0)
    condition = Condition("p", client, LinkSpec(rtt_ms=100))
    shown = {
        "load": told,
        "visits": [visit],
        "capture": None,
        "transits": load.transits,
        "taken": load.transits,
    }
    return not found(check_client_time, condition=condition, **shown)


@pytest.mark.parametrize(("waits_ms", "held"), [(0, True), (6, True), (60, False)])
def test_a_browser_asks_when_it_can(waits_ms: int, held: bool) -> None:
    load = Load()
    came = load.down(load.up(opened(load) + waits_ms, 1, payload=b"GET"), 1)
    assert check(load, came) is held
    assert check(load, came, "graph")  # its rules say more, and are held one by one


@pytest.mark.parametrize(("waits_ms", "held"), [(40, True), (250, False)])
def test_an_acknowledgement_waits_for_its_timer(waits_ms: int, held: bool) -> None:
    load = Load()
    first = load.down(load.up(opened(load), 1, payload=b"GET"), 1)
    came = load.down(load.up(first + waits_ms, 4, flags=ACK), 1461)
    assert check(load, came) is held
