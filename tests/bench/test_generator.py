"""Rates of the generator: the highest that was held counts, whatever became of connections."""

from __future__ import annotations

from bench.generator import ASKED_PER_S, Held, judge_rates


def held(rate: int, lateness_us: float = 20.0, lacked: tuple[str, ...] = ()) -> Held:
    return Held(rate, float(rate), rate * 0.9, lateness_us, 24.0, lacked)


def test_the_highest_rate_that_was_held() -> None:
    result = judge_rates([held(20_000), held(30_000), held(40_000, 5e6, ("lateness",))],
                         in_full=True)  # fmt: skip
    assert result.measured == "30,000/s, lateness p99 20 us"
    assert result.verdict == "missed"


def test_what_is_asked_is_met_in_full_only() -> None:
    enough = [held(ASKED_PER_S)]
    assert judge_rates(enough, in_full=True).verdict == "met"
    assert judge_rates(enough, in_full=False).verdict == "reported"


def test_none_was_held() -> None:
    result = judge_rates([held(10_000, 2000.0), held(15_000, 1.0, ("ports",))], in_full=True)
    assert result.verdict == "missed"
    assert result.measured.startswith("not even 10,000/s held")
