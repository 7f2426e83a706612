"""The line of the link: exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.model import LinkSpec
from testbed.model.line import burst_bytes, serialisation_ms


@pytest.mark.parametrize(
    ("size", "rate", "framing", "milliseconds"),
    [(1500, 4000, 0, 3.0), (1500, 256, 0, 46.875), (1500, 4000, 14, 3.028), (40, 256, 14, 1.6875)],
)
def test_serialisation(size: int, rate: int, framing: int, milliseconds: float) -> None:
    assert serialisation_ms(size, rate, framing) == milliseconds


@given(size=st.integers(20, 65535), rate=st.integers(1, 10**6), framing=st.integers(0, 100))
def test_serialisation_is_bits_over_rate(size: int, rate: int, framing: int) -> None:
    exact = Fraction((size + framing) * 8, rate)
    assert serialisation_ms(size, rate, framing) == float(exact)


@pytest.mark.parametrize(
    ("rate", "framing", "most"),
    [(4000, 0, 1540), (100_000, 14, 1540), (1_000_000, 14, 1639), (1_000_000, 38, 1663)],
)
def test_the_bucket_holds_a_packet_and_what_comes_while_a_timer_is_late(
    rate: int, framing: int, most: int
) -> None:
    link = LinkSpec(rtt_ms=1.0, down_kbit=rate, up_kbit=1000, framing_bytes=framing)
    assert burst_bytes(link) == most
