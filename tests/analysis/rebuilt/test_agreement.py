from __future__ import annotations

import pytest

from analysis.publications.reference import read_reference
from analysis.publications.stated import Stated
from analysis.rebuilt.agreement import agrees, check_rows, check_value, in_words, see, span


def stated(
    value: float | None = None, low: float | None = None, high: float | None = None
) -> Stated:
    return Stated("Figure 2", "duration", "s", value, low, high, {})


@pytest.mark.parametrize(
    ("one", "ours", "same"),
    [
        (stated(1.3), 1.349, True),
        (stated(1.3), 1.351, False),
        (stated(549), 548.6, True),
        (stated(549), 550.0, False),
        (stated(low=8, high=28), 28.4, True),
        (stated(low=8, high=28), 28.6, False),
        (stated(low=33), 99.0, True),
        (stated(low=33), 32.4, False),
        (stated(high=25), 0.0, True),
        (stated(high=25), 25.6, False),
    ],
)
def test_it_agrees_when_it_would_have_been_printed_so(one: Stated, ours: float, same: bool) -> None:
    assert agrees(one, ours) is same
    assert check_value(one, "it", [ours], "because").agreement == ("agrees" if same else "differs")


def test_words() -> None:
    ranges = (stated(1.3), stated(low=8, high=28), stated(low=33), stated(high=25))
    assert [in_words(one) for one in ranges] == [
        "1.3 s", "8 to 28 s", "at least 33 s", "at most 25 s",
    ]  # fmt: skip
    assert span([1.0, 3.0, 2.0], 1, "%") == "1.0 to 3.0 %"
    assert span([1.01, 1.02], 1, "%") == "1.0 %"


def test_a_reason_only_where_they_differ() -> None:
    agreed = check_value(stated(low=8, high=28), "it", [10.0, 28.4], "because")
    assert (agreed.ours, agreed.why) == ("10.0 to 28.4 s (rounded as it was stated)", "")
    assert check_value(stated(1.3), "it", [1.2], "because").why == "because"
    missing = check_value(stated(1.3), "it", [], "because")
    assert (missing.agreement, missing.why) == (
        "not measured", "These results hold no proven load for it.",
    )  # fmt: skip


def test_rows_name_the_first_exceptions() -> None:
    check = check_rows("Section 5", "it holds", ["a"], [f"b{i}" for i in range(8)], "because")
    assert check.ours == "in 1 of 9; not in b0; b1; b2; b3; b4; b5; and 2 more"
    assert check_rows("Section 5", "it holds", [], []).agreement == "not measured"


def test_a_difference_is_pointed_at_by_its_heading() -> None:
    reference = read_reference("tum-initcwnd")
    assert see(reference, "third file") == "See \u201cThe third file size is ours\u201d."
    assert see(reference, "no such heading") == ""
    assert see(None, "third file") == ""
