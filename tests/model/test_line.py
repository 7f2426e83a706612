"""The line of the link: exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.model.line import serialisation_ms


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
