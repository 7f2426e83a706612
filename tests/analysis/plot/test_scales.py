from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.plot.scales import BandScale, make_scale, shorten_px, text_px, wrap_px

NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@given(st.lists(NUMBERS, min_size=1, max_size=9), st.integers(60, 600))
def test_values_are_inside_and_ticks_are_few_and_round(values: list[float], wide: int) -> None:
    scale = make_scale({}, values, 0.0, float(wide))
    assert all(-0.01 <= scale.at(value) <= wide + 0.01 for value in (*values, 0.0))
    ticks = scale.ticks()
    assert len(ticks) <= 2.5 * wide / 40 + 2
    assert [value for value, _ in ticks] == sorted(value for value, _ in ticks)


@pytest.mark.parametrize(("domain", "texts"), [
    ((0.0, 2000.0), ["0", "500", "1,000", "1,500", "2,000"]),
    ((-4.0, 6.0), ["\u22124", "\u22122", "0", "2", "4", "6"]),
    ((0.0, 0.5), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
])  # fmt: skip
def test_texts_of_ticks(domain: tuple[float, float], texts: list[str]) -> None:
    scale = make_scale({"domain": domain}, (), 0.0, 200.0)
    assert [text for _, text in scale.ticks()] == texts


def test_padding_keeps_points_off_the_edge() -> None:
    scale = make_scale({"zero": False, "nice": False, "padding": 10}, (20.0, 200.0), 0.0, 400.0)
    assert (round(scale.at(20.0)), round(scale.at(200.0))) == (10, 390)


def test_one_value_has_a_scale() -> None:
    assert make_scale({"zero": False}, (5.0, 5.0), 0.0, 100.0).at(5.0) == pytest.approx(50.0)
    assert make_scale({}, (0.0,), 0.0, 100.0).at(0.0) == 0.0


def test_names_share_the_room() -> None:
    scale = BandScale(("a", "b"), 0.0, 100.0)
    assert (scale.at("a"), scale.at("b"), scale.step) == (25.0, 75.0, 50.0)


def test_text_is_measured_wrapped_and_shortened() -> None:
    assert text_px("RTT (ms)", 10.0) == pytest.approx(42.21)
    assert wrap_px("one two three", text_px("one two")) == ["one two", "three"]
    assert wrap_px("", 10.0) == []
    assert shorten_px("word", 100.0) == "word"
    assert text_px(shorten_px("a long word", 30.0)) <= 30.0


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=9), st.integers(60, 600))
def test_a_logarithmic_scale_ends_at_powers_of_ten(values: list[float], high: int) -> None:
    scale = make_scale({"type": "log"}, values, float(high), 0.0)
    assert all(-0.01 <= scale.at(value) <= high + 0.01 for value in values)
    ticks = [value for value, _ in scale.ticks()]
    assert scale.at(ticks[0]) == pytest.approx(high, abs=0.01)
    assert scale.at(ticks[-1]) == pytest.approx(0.0, abs=0.01)
    # Equal ratios are equal distances.
    middle = (scale.at(ticks[0]) + scale.at(ticks[-1])) / 2
    assert scale.at((ticks[0] * ticks[-1]) ** 0.5) == pytest.approx(middle)


@pytest.mark.parametrize(("values", "texts"), [
    ((3.0, 2500.0), ["1", "10", "100", "1,000", "10,000"]), ((0.02, 0.9), ["0.01", "0.1", "1"]),
    ((2.0, 9.0), ["1", "2", "5", "10"]), ((10.0,), ["10", "20", "50", "100"]),
])  # fmt: skip
def test_texts_of_a_logarithmic_scale(values: tuple[float, ...], texts: list[str]) -> None:
    scale = make_scale({"type": "log"}, values, 200.0, 0.0)
    assert [text for _, text in scale.ticks()] == texts
