"""How long the last packets get to leave the link."""

from __future__ import annotations

import pytest

from testbed.lab.exactness import HOST, VIRTUAL


@pytest.mark.parametrize(
    ("rtt_ms", "real_s"), [(1.0, 0.3), (20.0, 0.3), (100.0, 0.3), (200.0, 0.6), (1000.0, 3.0)]
)
def test_in_virtual_time_two_seconds_and_in_real_time_three_round_trips(
    rtt_ms: float, real_s: float
) -> None:
    assert VIRTUAL.settle_s(rtt_ms) == 2.0
    assert HOST.settle_s(rtt_ms) == pytest.approx(real_s)
