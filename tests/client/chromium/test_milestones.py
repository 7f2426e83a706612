"""What a visitor sees: fields of a page load, and layout shifts added up."""

from __future__ import annotations

import pytest

from testbed.client.chromium.milestones import add_up_shifts, milestones_of


def test_a_page_that_shows_something() -> None:
    paints = {"first-paint": 80.0, "first-contentful-paint": 84.0}
    seen = {"paints": paints, "largest": [84.0, 120.5], "shifts": [[90.0, 0.25]]}
    assert milestones_of(seen, 40.5) == {"ttfb_ms": 40.5, "fp_ms": 80.0, "fcp_ms": 84.0,
                                         "lcp_ms": 120.5, "cls": 0.25}  # fmt: skip


def test_an_empty_page_paints_nothing_and_does_not_shift() -> None:
    found = milestones_of({"paints": {}, "largest": [], "shifts": []}, 40.5)
    assert (found["fp_ms"], found["fcp_ms"], found["lcp_ms"], found["cls"]) == (None,) * 3 + (0.0,)


def test_a_browser_or_a_page_that_does_not_say() -> None:
    nothing = dict.fromkeys(("ttfb_ms", "fp_ms", "fcp_ms", "lcp_ms", "cls"))
    assert milestones_of(None, 0.0) == nothing
    assert milestones_of({"paints": {}, "largest": None, "shifts": None}, 0.0) == nothing


@pytest.mark.parametrize(
    ("shifts", "expected"),
    [
        ([], 0.0),
        ([(0.0, 0.5), (900.0, 0.25)], 0.75),
        ([(0.0, 0.5), (1001.0, 0.25)], 0.5),  # a second without any ends a window
        ([(1000.0 * n, 0.125) for n in range(10)], 0.75),  # and so do five seconds
        ([(900.0, 0.25), (0.0, 0.5)], 0.75),  # in whatever order they are told
    ],
)
def test_the_largest_window_of_shifts_counts(
    shifts: list[tuple[float, float]], expected: float
) -> None:
    assert add_up_shifts(shifts) == expected
