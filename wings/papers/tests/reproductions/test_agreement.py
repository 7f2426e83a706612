from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from analysis.report.publications import StatedCheck
from testbed.base.errors import ConfigurationError
from wings.papers.published.reference import Reference, read_reference
from wings.papers.published.stated import Stated
from wings.papers.reproductions.agreement import (
    ONE_POINT,
    VALUELESS,
    agree_from,
    check_claims,
    in_words,
    span,
)

HEADER = "place,quantity,unit,value,low,high,page,rtt_ms,requests_per_connection\n"
DIFFERENCE = '\n[[difference]]\nwhat = "The pages are ours"\nwhy = "They are."\n'
CELLS = pd.DataFrame({"page": ["a", "a", "b", "b"], "rtt_ms": [20.0, 100.0, 20.0, 100.0],
                      "duration": [1.0, 2.0, 1.0, 0.5]})  # fmt: skip


def stated(
    value: float | None = None,
    low: float | None = None,
    high: float | None = None,
    decimals: int = 0,
) -> Stated:
    return Stated("Figure 2", "duration", "s", value, low, high, {}, decimals)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def publish(folder: Path, rows: str, claim: str = "") -> Reference:
    """A publication that states ``rows`` and claims ``claim``."""
    (folder / "x.csv").write_text(HEADER + rows)
    (folder / "x.toml").write_text((f"[[claim]]\n{claim}\n" if claim else "") + DIFFERENCE)
    return read_reference("x", folder)


def check(reference: Reference, cells: pd.DataFrame = CELLS) -> list[StatedCheck]:
    return list(check_claims(reference, {"cells": cells}))


@pytest.mark.parametrize(
    ("one", "ours", "same"),
    [
        (stated(1.3, decimals=1), 1.349, True),
        (stated(1.3, decimals=1), 1.351, False),
        (stated(1, decimals=2), 1.004, True),
        (stated(1, decimals=2), 1.149, False),
        (stated(549), 548.6, True),
        (stated(549), 550.0, False),
        (stated(low=8, high=28), 28.4, True),
        (stated(low=8, high=28), 28.6, False),
        (stated(low=33), 99.0, True),
        (stated(low=33), 32.9, False),
        (stated(high=25), 25.1, False),
        (stated(high=25), 0.0, True),
    ],
)
def test_it_agrees_when_it_would_have_been_printed_so(one: Stated, ours: float, same: bool) -> None:
    assert agree_from(one, ours, ours) is same


def test_words() -> None:
    ranges = (stated(1.3, decimals=1), stated(low=8, high=28), stated(low=33), stated(high=25))
    assert [in_words(one) for one in ranges] == ["1.3 s", "8 to 28 s", "at least 33 s",
                                                 "at most 25 s"]  # fmt: skip
    assert span([1.0, 3.0, 2.0], 1, "%") == "1.0 to 3.0 %"
    assert span([1.01, 1.02], 1, "%") == "1.0 %"


def test_a_stated_value_is_beside_the_cells_that_have_its_knobs(folder: Path) -> None:
    claim = """
        quantity = "duration"
        says = "duration of {page}"
        derived.extra_s = "duration - stated"
        why = "At {rtt_ms} it takes {extra_s:1} s more."
        see = [{ what = "The pages are ours", cells = "rtt_ms > 50" }]"""
    rows = "T,duration,s,1.0,,,a,20,\nT,duration,s,1.0,,,a,,\nT,duration,s,1.0,,,c,,\n"
    one, both, none = check(publish(folder, rows, claim))
    assert one == StatedCheck("T", "duration of a", "1.0 s", "1.00 s", "agrees")
    assert (both.ours, both.agreement) == ("1.00 to 2.00 s", "differs")
    assert both.why == "At 100 ms it takes 1.0 s more. See \u201cThe pages are ours\u201d."
    assert (none.what, none.agreement) == ("duration of c", "not measured")
    assert none.why == "These results hold no proven load for it."


def test_what_agrees_by_rounding_alone_says_so(folder: Path) -> None:
    reference = publish(folder, "T,duration,s,,1,2,,,\n")
    (rounded,) = check(reference, pd.DataFrame({"duration": [1.0, 2.4]}))
    assert (rounded.ours, rounded.agreement) == ("1.0 to 2.4 s (rounded as it was stated)",
                                                 "agrees")  # fmt: skip


@pytest.mark.parametrize(
    "claim",
    ['quantity = "duration"\nsays = "x"', 'quantity = "duration"\nsays = "x"\ncounted = true',
     'place = "T"\nsays = "x"\nholds = "duration > 0"',
     'place = "T"\nsays = "x"\nholds = "duration > 0"\nours = "{duration:1}"'],
)  # fmt: skip
def test_what_proven_loads_do_not_have_is_not_measured_for_their_reason(
    folder: Path, claim: str
) -> None:
    reference = publish(folder, "T,duration,s,1.0,,,a,,\n", claim)
    cells = pd.DataFrame({"page": ["a"], "duration": [float("nan")]})
    for extra, why in (({}, VALUELESS), ({"missing": "It was cut."}, "It was cut.")):
        found = [one for one in check(reference, cells.assign(**extra)) if one.what == "x"]
        assert [(one.ours, one.agreement, one.why) for one in found] == [
            ("\u2013", "not measured", why)
        ]  # fmt: skip


def test_a_line_takes_two_points(folder: Path) -> None:
    claim = 'place = "T"\nsays = "x"\nrises = "duration"\nalong = "rtt_ms"\neach = "page"'
    (found,) = check(publish(folder, "T,q,s,1,,,,,\n", claim), CELLS[:1])
    assert (found.agreement, found.why) == ("not measured", ONE_POINT)


def test_a_quantity_without_a_claim_stands_for_itself_if_it_is_measured(folder: Path) -> None:
    reference = publish(folder, "T,duration,s,1.0,,,a,20,\nT,page_weight,kB,1,,,,,\n")
    assert check(reference) == [StatedCheck("T", "duration", "1.0 s", "1.00 s", "agrees")]


def test_rows_name_the_first_exceptions(folder: Path) -> None:
    claim = 'place = "T"\nsays = "it holds"\nholds = "n < 1"\nrow = "b{n:0}"\nwhy = "Because."'
    reference = publish(folder, "T,q,s,1,,,,,\n", claim)
    (found,) = check(reference, pd.DataFrame({"n": [0.0, *range(1, 9)]}))
    assert found.ours == "in 1 of 9; not in b1; b2; b3; b4; b5; b6; and 2 more"
    assert (found.agreement, found.why) == ("differs", "Because.")
    (none,) = check(reference, pd.DataFrame({"n": [float("nan")]}))
    assert (none.agreement, none.why) == ("not measured", VALUELESS)


def test_what_rises_does_so_at_each_step_of_each_group(folder: Path) -> None:
    claim = """
        place = "T"
        says = "the duration grows"
        rises = "duration"
        along = "rtt_ms"
        each = "page"
        row = "{page}"
        step = "{duration:1} s at {rtt_ms}"
        """
    (found,) = check(publish(folder, "T,q,s,1,,,,,\n", claim))
    assert found.ours == "in 1 of 2; not in b (1.0 s at 20 ms, 0.5 s at 100 ms)"
    detour = pd.DataFrame({"page": "a", "rtt_ms": [1.0, 2.0, 3.0], "duration": [1.0, 0.5, 2.0]})
    (found,) = check(publish(folder, "T,q,s,1,,,,,\n", claim), detour)
    assert found.agreement == "differs"
    (found,) = check(publish(folder, "T,q,s,1,,,,,\n", f"{claim}\nends = true"), detour)
    assert found.agreement == "agrees"


def test_a_counted_quantity_counts_at_each_place(folder: Path) -> None:
    claim = 'quantity = "duration"\ncounted = true\nsays = "{stated} s at most"\nrow = "{page}"'
    reference = publish(folder, "T,duration,s,,,1,,20,\nU,duration,s,,,1,,100,\n", claim)
    assert [(one.where, one.ours) for one in check(reference)] == [
        ("T", "in 2 of 2"), ("U", "in 1 of 2; not in a"),
    ]  # fmt: skip


WIDE = "our spread is too wide to say"


@pytest.mark.parametrize(("low", "high", "verdict"),
                         [(0.96, 1.04, "agrees"), (0.9, 1.04, WIDE), (0.5, 3.0, WIDE),
                          (1.2, 3.0, "differs"), (0.1, 0.9, "differs"),
                          (None, None, "agrees")])  # fmt: skip
def test_an_interval_agrees_as_a_whole_or_not_at_all_or_is_too_wide(
    folder: Path, low: float | None, high: float | None, verdict: str
) -> None:
    middle = 1.0 if low is None or high is None else (low + high) / 2
    cells = pd.DataFrame({"duration": [middle], "duration_low": [low], "duration_high": [high]})
    stated_once = "T,duration,s,,0.95,1.05,,,\n"
    (found,) = check(publish(folder, stated_once), cells.astype(float))
    assert found.agreement == verdict
    assert bool(found.why) is (verdict == WIDE)
    same = 'place = "T"\nsays = "x"\nderived.gap = "duration - 1"\nholds = "-0.05 <= gap <= 0.05"'
    alone = check(
        publish(folder, stated_once, f'{same}\nours = "{{duration:1}}"'), cells.astype(float)
    )
    assert [one.agreement for one in alone if one.what == "x"] == [verdict]


@pytest.mark.parametrize(
    "most",
    ["n.groupby(group).transform('max')", "n.where(n > 0).groupby(page).transform('max')",
     "n.max()", "n.groupby(page).transform('max') + 0 * n.max()"],
)  # fmt: skip
def test_what_asks_for_other_rows_is_derived_anew_at_each_step(folder: Path, most: str) -> None:
    """All move together: 1 to 3 is half of 2 to 6 everywhere."""
    claim = f"""
        place = "T"
        says = "x"
        derived.group = "page + page"
        derived.most = "{most}"
        derived.share = "n / most"
        holds = "share == 0.5 or share == 1"
        """
    cells = pd.DataFrame({"page": ["a", "a"], "n": [2.0, 4.0], "n_low": [1.0, 2.0],
                          "n_high": [3.0, 6.0], "further": "unused"})  # fmt: skip
    (found,) = check(publish(folder, "T,q,s,1,,,,,\n", claim), cells)
    assert (found.ours, found.agreement) == ("in 2 of 2", "agrees")


def test_cells_that_are_too_wide_are_counted_apart(folder: Path) -> None:
    claim = 'place = "T"\nsays = "it holds"\nholds = "n > 0"\nrow = "b{n:0}"'
    cells = pd.DataFrame({"n": [1.0, 2.0, -3.0], "n_low": [0.5, -1, -4], "n_high": [2.0, 3, -1]})
    (found,) = check(publish(folder, "T,q,s,1,,,,,\n", claim), cells)
    assert found.ours == "in 1 of 3; too wide to say in b2; not in b\u22123"
    assert found.agreement == "differs"
    (found,) = check(publish(folder, "T,q,s,1,,,,,\n", claim), cells[:2])
    assert (found.ours, found.agreement) == ("in 1 of 2; too wide to say in b2", WIDE)


@pytest.mark.parametrize(("half_width", "verdict"), [(0.1, "agrees"), (0.6, WIDE)])
def test_a_rise_is_sure_where_intervals_do_not_overlap(
    folder: Path, half_width: float, verdict: str
) -> None:
    ends = {"n_low": [1 - half_width, 2 - half_width], "n_high": [1 + half_width, 2 + half_width]}
    cells = pd.DataFrame({"page": "a", "rtt_ms": [20.0, 100.0], "n": [1.0, 2.0], **ends})
    claim = 'place = "T"\nsays = "x"\n{} = "n"\nalong = "rtt_ms"\neach = "page"\nrow = "{{page}}"'
    rows = "T,q,s,1,,,,,\n"
    (found,) = check(publish(folder, rows, claim.format("rises")), cells)
    assert found.agreement == verdict
    (found,) = check(publish(folder, rows, claim.format("falls")), cells)
    assert found.agreement == ("differs" if verdict == "agrees" else WIDE)


def test_no_limit_is_a_value_of_a_knob_too(folder: Path) -> None:
    reference = publish(folder, "T,duration,s,3,,,,,unlimited\n")
    cells = pd.DataFrame({"requests_per_connection": [1, None], "duration": [1.0, 3.0]})
    assert [one.ours for one in check(reference, cells)] == ["3.0 s"]


def test_a_column_that_is_not_measured_is_named_with_those_that_are(folder: Path) -> None:
    claim = 'place = "T"\nsays = "it holds"\nholds = "durations > 1"'
    with pytest.raises(ConfigurationError, match=r"x\.toml: claim 'it holds'.*page, rtt_ms, durat"):
        check(publish(folder, "T,q,s,1,,,,,\n", claim))


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ('says = "x"', "one of quantity, holds, rises and falls"),
        ('says = "x"\nholds = "a"\nrises = "b"', "one of quantity, holds, rises and falls"),
        ('says = "x"\nrises = "b"\nplace = "T"', "along a column"),
        ('says = "x"\nholds = "a"', "needs its place"),
        ('says = "x"\nquantity = "durations"', "(did you mean 'duration'?)"),
        ('says = "x"\nquantity = "duration"\nsee = [{ what = "W" }]', "no difference 'W'"),
    ],
)
def test_a_claim_that_cannot_be_checked_is_refused(folder: Path, claim: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        publish(folder, "T,duration,s,1,,,,,\n", claim)
    assert problem in str(caught.value)
