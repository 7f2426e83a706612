"""Two environments: within the spread of draws, beyond it, or of too few draws."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.verdicts.compare.comparison import CompareOptions, Comparison
from analysis.verdicts.compare.documents import describe_comparison, render_junit
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import headline, render_text
from tests.analysis.sample import ENVIRONMENT, broken
from tests.analysis.verdicts.compare.folder import (
    FIRST,
    Times,
    changed,
    made,
    write_records_of,
    write_times,
)

ROOT = changed(root="cd" * 32)
ON = replace(FIRST, tcp=replace(FIRST.tcp, tfo=True))
DRAWS = [1000.0, 1004.0, 1009.0, 1015.0, 1022.0, 1030.0]


def compared(tmp_path: Path, base: Times, new: Times) -> Comparison:
    return compare_results(
        write_times(tmp_path / "base", base), write_times(tmp_path / "new", new, environment=ROOT)
    )


def test_further_draws_are_within_and_a_shift_is_beyond_with_its_gain(tmp_path: Path) -> None:
    other = [DRAWS[i] + 1.5 for i in (3, 1, 5, 0, 2, 4)]
    faster = [plt_ms - 200.0 for plt_ms in DRAWS]
    within = compared(tmp_path / "within", {FIRST: DRAWS, ON: faster},
                      {FIRST: other, ON: [v - 201.0 for v in other]})  # fmt: skip
    assert (within.verdict, within.exit_code) == ("same", 0)
    assert headline(within) == (
        "SAME: 2 cells, 2 within the spread of draws (2 with other bits); "
        "1 gain, 1 within the spread of draws."
    )
    assert within.uniform is not None and within.uniform > 0.05
    beyond = compared(tmp_path / "beyond", {FIRST: DRAWS, ON: faster},
                      {FIRST: other, ON: [v - 100.0 for v in other]})  # fmt: skip
    first, second = beyond.cells
    assert (first.verdict, second.verdict, second.direction) == ("same", "different", "slower")
    assert second.effect is not None and second.effect.interval_ms is not None
    assert second.effect.interval_ms.low > 80.0
    (gain,) = beyond.gains
    assert (gain.axes["tfo"], gain.verdict) == ("gain", "different")
    assert gain.effect is not None and gain.effect.ms == pytest.approx(-100.0)
    text = render_text(beyond, 200)
    assert beyond.uniform is not None and beyond.uniform < 0.05
    assert "Ranks of NEW's draws among BASE's are not uniform (p = 0.0" in text
    assert "beyond the spread of draws (p = 0.00" in text
    assert [row for row in text.splitlines() if " gain " in row and row.startswith("amazon")]
    document = json.loads(json.dumps(describe_comparison(beyond), allow_nan=False))
    assert document["gains"][0]["condition"]["tfo"] == "gain"
    assert document["uniform_p"] == beyond.uniform
    assert render_junit(beyond).count("<failure") == 2


@pytest.mark.parametrize(("later_ms", "verdict"), [(18.0, "same"), (19.0, "different")])
def test_alpha_is_where_the_spread_of_draws_ends(
    tmp_path: Path, later_ms: float, verdict: str
) -> None:
    """The p are 0.054 and 0.048."""
    (cell,) = compared(tmp_path, {FIRST: DRAWS}, {FIRST: [v + later_ms for v in DRAWS]}).cells
    assert (cell.verdict, cell.more_runs) == (verdict, None), cell.reason


@pytest.mark.parametrize(("load", "lies"), [(1015.5, "1 of NEW's 1 draw lies"), (3020.0, "0 of")])
def test_one_load_is_too_few_to_say(tmp_path: Path, load: float, lies: str) -> None:
    found = compared(tmp_path, {FIRST: DRAWS}, {FIRST: [load]})
    (cell,) = found.cells
    assert (cell.verdict, found.exit_code, cell.more_runs) == ("inconclusive", 5, 1)
    assert cell.reason.startswith(lies)
    assert "within the range of BASE's 6 draws; too few draws to say" in cell.reason
    assert found.uniform is None and "Ranks of" not in render_text(found)


def test_where_seeds_draw_nothing_any_move_is_a_change(tmp_path: Path) -> None:
    """Two equal loads on each side: a third would be equal, too."""

    def write(name: str, off_ms: float) -> Path:
        loads = [
            replace(made(condition, seed, plt_ms, environment=environment), measured=first.measured)
            for condition, plt_ms in ((FIRST, off_ms), (ON, 900.0))
            for first in (made(condition, 0, plt_ms),)
            for seed in (0, 1)
        ]
        return write_records_of(tmp_path / name, loads, (FIRST, ON), environment=environment)

    environment = ENVIRONMENT
    base = write("base", 1000.0)
    environment = ROOT
    found = compare_results(base, write("new", 1002.0))
    assert found.exit_code == 1
    assert [(cell.verdict, cell.direction) for cell in found.cells] == [
        ("different", "slower"),
        ("same", None),
    ]
    assert found.cells[0].reason == "moved, and seeds draw nothing here"
    assert [gain.verdict for gain in found.gains] == ["different"]


def test_what_moves_no_seed_needs_no_draws(tmp_path: Path) -> None:
    found = compared(tmp_path, {FIRST: [1000.0]}, {FIRST: [1000.0]})
    assert found.verdict == "same" and "same to the bit" in found.cells[0].reason


def test_another_spread_is_beyond(tmp_path: Path) -> None:
    base = [1000.0 + i for i in range(10)]
    wide = [900.0 + 22.0 * i for i in range(10)]
    (cell,) = compared(tmp_path, {FIRST: base}, {FIRST: wide}).cells
    assert cell.verdict == "different" and "(p = " in cell.reason


def test_what_fails_in_one_environment_alone_is_different(tmp_path: Path) -> None:
    base = write_times(tmp_path / "base", {FIRST: DRAWS})
    loads = [made(FIRST, seed, plt_ms, environment=ROOT) for seed, plt_ms in enumerate(DRAWS)]
    loads[2] = broken(loads[2], "unproven")
    new = write_records_of(tmp_path / "new", loads, [FIRST], environment=ROOT)
    (cell,) = compare_results(base, new, CompareOptions(("root",))).cells
    assert (cell.verdict, cell.direction) == ("different", "changed")
    assert "more loads fail in NEW: seed 2 is unproven" in cell.reason
