"""Rating of a call by the E-model: the published values, and the best that a player can do."""

from __future__ import annotations

import pytest

from testbed.proof.neighbours.datagrams import rate_call


@pytest.mark.parametrize(
    ("mouth_to_ear_ms", "r_factor"), [(100, 93.2), (200, 90.16), (300, 78.44), (400, 69.13)]
)
def test_a_call_that_loses_nothing_is_rated_by_its_delay(
    mouth_to_ear_ms: float, r_factor: float
) -> None:
    """Idd of G.107, worked out by hand; echo is cancelled."""
    assert rate_call([mouth_to_ear_ms - 20] * 50, 0) == pytest.approx(r_factor, abs=0.01)


@pytest.mark.parametrize(("lost", "impairment"), [(1, 3.64), (5, 15.78), (50, 63.25)])
def test_losses_impair_by_their_share(lost: int, impairment: float) -> None:
    """95 P / (P + 25.1), of G.113's concealed G.711."""
    rating = rate_call([10.0] * (100 - lost), lost)
    assert rating == pytest.approx(93.2 - impairment, abs=0.01)


def test_the_player_does_not_wait_for_the_last() -> None:
    waiting = rate_call([10.0] * 99 + [5000.0], 0)
    assert waiting == pytest.approx(rate_call([10.0] * 99, 1))
    assert waiting > rate_call([5000.0] * 100, 0)


def test_nothing_came() -> None:
    assert rate_call([], 50) == 0
