from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analysis.report.sampling import spread_over


@given(st.integers(0, 300), st.integers(0, 40))
def test_as_many_as_asked_in_their_order_with_both_ends(length: int, most: int) -> None:
    items = list(range(length))
    found = spread_over(items, most)
    assert len(found) == min(length, most)
    assert found == sorted(set(found))
    if len(found) > 1:
        assert (found[0], found[-1]) == (0, length - 1)


def test_distances_are_even() -> None:
    assert spread_over("abcdefghi", 3) == ["a", "e", "i"]
