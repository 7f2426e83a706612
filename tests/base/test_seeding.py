"""What a seed varies: the same everywhere, within its bounds, and another for another seed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.seeding import MOST_SYSTEM_CALL_NS, start_offset_ns, system_call_ns, think_factor

SEEDS = st.integers(0, 2**31 - 1)
TEXTS = st.text(st.characters(codec="utf-8"))
START_OFFSETS_NS = [639_976_586, 282_302_066, 754_307_125]
PRICES_NS = [115, 6, 29, 164, 65]
FACTORS = [0.999511185046503, 0.9398148114360205]


@given(seed=SEEDS, spread=st.floats(0, 60_000))
def test_a_load_starts_within_the_spread(seed: int, spread: float) -> None:
    offset = start_offset_ns(seed, spread)
    assert 0 <= offset <= spread * 1e6
    assert offset == start_offset_ns(seed, spread)


@given(seed=SEEDS, request=TEXTS, spread=st.floats(0, 100))
def test_a_factor_is_within_the_spread(seed: int, request: str, spread: float) -> None:
    factor = think_factor(seed, request, spread)
    assert abs(factor - 1) <= spread / 100 + 1e-12
    assert factor == think_factor(seed, request, spread)


@given(seed=SEEDS, request=TEXTS)
def test_no_spread_changes_nothing(seed: int, request: str) -> None:
    assert start_offset_ns(seed, 0.0) == 0
    assert think_factor(seed, request, 0.0) == 1.0


def test_a_seed_means_the_same_for_ever() -> None:
    assert [start_offset_ns(seed, 1000.0) for seed in range(3)] == START_OFFSETS_NS
    assert [think_factor(7, name, 20.0) for name in "ab"] == pytest.approx(FACTORS, abs=1e-12)


def test_values_fill_the_spread_evenly() -> None:
    factors = sorted(think_factor(1, f"GET http://a.test/{i}", 50.0) for i in range(1000))
    assert 0.5 <= factors[0] < 0.51 and 1.49 < factors[-1] <= 1.5
    assert sum(factors) / 1000 == pytest.approx(1.0, abs=0.02)
    offsets = {start_offset_ns(seed, 100.0) for seed in range(100)}
    assert len(offsets) == 100
    assert max(offsets) - min(offsets) > 90e6
    assert [system_call_ns(seed) for seed in range(5)] == PRICES_NS


def test_each_price_of_a_system_call_is_as_likely() -> None:
    drawn = [system_call_ns(seed) for seed in range(20_000)]
    assert (min(drawn), max(drawn)) == (0, MOST_SYSTEM_CALL_NS)
    assert sum(drawn) / len(drawn) == pytest.approx(MOST_SYSTEM_CALL_NS / 2, rel=0.02)
