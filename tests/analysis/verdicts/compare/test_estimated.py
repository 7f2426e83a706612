"""The host's kernel: A/A is not called different, planted shifts are, and too little is said so."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from analysis.records.cells import Cell, flatten
from analysis.verdicts.compare.comparison import CellFinding, CompareOptions, Comparison
from analysis.verdicts.compare.estimated import judge_by_tests
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.matching import Match
from testbed.model import Record
from tests.analysis.sample import broken
from tests.analysis.verdicts.compare.folder import (
    FIRST,
    SECOND,
    made,
    write_records_of,
    write_times,
)
from tests.measured import load_of

Draw = Callable[[random.Random], float]
SHAPES: dict[str, Draw] = {
    "normal": lambda dice: dice.gauss(1000.0, 15.0),
    "lognormal": lambda dice: dice.lognormvariate(6.9, 0.05),
    "heavy tails": lambda dice: 1000.0 + 8.0 * dice.gauss(0, 1) / max(0.02, dice.random()) ** 0.5,
    "two humps": lambda dice: dice.gauss(1000.0 + 60.0 * (dice.random() < 0.3), 5.0),
    "frames": lambda dice: 1000.0 + 16.6 * dice.randrange(3),
    "no spread": lambda _: 1000.0,
}
ALPHA = 0.05
MATCHED = Match(flatten(FIRST), None, None)


def judged(
    cells: Sequence[tuple[Sequence[float], Sequence[float]]],
    min_effect_pct: float = 1.0,
    alpha: float = ALPHA,
) -> list[CellFinding]:
    return judge_by_tests(
        [replace(MATCHED, base=cell_of(one), new=cell_of(two)) for one, two in cells],
        alpha,
        min_effect_pct,
    )


def cell_of(times: Sequence[float]) -> Cell:
    records = tuple(loaded(seed, plt_ms) for seed, plt_ms in enumerate(times))
    return Cell(flatten(FIRST), records, len(records))


def loaded(seed: int, plt_ms: float) -> Record:
    one = repetition(seed)
    return replace(one, measured=replace(load_of(one), plt_ms=plt_ms))


@cache
def repetition(seed: int) -> Record:
    return made(FIRST, seed, 1000.0, "host")


def draw(dice: random.Random, shape: Draw, n: int) -> list[float]:
    return [round(shape(dice), 1) for _ in range(n)]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_a_a_comparison_is_different_no_more_often_than_alpha(shape: str) -> None:
    # No minimum effect: only the tests and their correction stand between chance and a verdict.
    dice, trials, wrong = random.Random(shape), 60, 0  # noqa: S311
    for _ in range(trials):
        n = dice.choice((6, 8, 12, 20))
        pairs = [(draw(dice, SHAPES[shape], n), draw(dice, SHAPES[shape], n)) for _ in range(4)]
        wrong += any(cell.verdict == "different" for cell in judged(pairs, 0.0))
    assert wrong <= 7  # of 60 at 5 %, 7 or fewer are expected in 99 of 100 such tests


def test_over_all_shapes_200_comparisons_keep_to_alpha() -> None:
    dice, wrong = random.Random(5), 0  # noqa: S311
    for i in range(200):
        shape = SHAPES[sorted(SHAPES)[i % len(SHAPES)]]
        pairs = [(draw(dice, shape, 12), draw(dice, shape, 12)) for _ in range(3)]
        wrong += any(cell.verdict == "different" for cell in judged(pairs, 0.0))
    assert wrong <= 16  # 10 are expected at most


@pytest.mark.parametrize("shape", ["normal", "lognormal", "two humps", "frames", "no spread"])
def test_a_planted_shift_is_found_with_size_and_direction(shape: str) -> None:
    dice = random.Random(shape)  # noqa: S311
    for sign, direction in ((1.0, "slower"), (-1.0, "faster")):
        base, new = (draw(dice, SHAPES[shape], 20) for _ in range(2))
        still = [1000.0 + i for i in range(20)]
        moved, other = judged([(base, [t + sign * 90.0 for t in new]), (still, still)])
        assert (moved.verdict, moved.direction, other.verdict) == ("different", direction, "same")
        assert moved.effect is not None and moved.effect.interval_ms is not None
        assert moved.effect.interval_ms.holds(moved.effect.ms)
        assert moved.effect.ms == pytest.approx(sign * 90.0, abs=25.0)


def test_significance_alone_is_not_enough() -> None:
    base = [1000.0 + i * 0.01 for i in range(20)]
    (cell,) = judged([(base, [time + 2.0 for time in base])])
    assert cell.significance["mann_whitney"].corrected < 1e-6
    assert cell.verdict == "same"
    assert "the distributions differ, by less than that" in cell.reason


def test_size_alone_is_not_enough() -> None:
    dice = random.Random(3)  # noqa: S311
    base, new = ([dice.gauss(1000.0, 200.0) for _ in range(8)] for _ in range(2))
    (cell,) = judged([(base, [time + 60.0 for time in new])])
    assert cell.effect is not None and abs(cell.effect.pct or 0) > 1.0
    assert cell.verdict == "inconclusive"
    assert cell.more_runs is not None and cell.more_runs > 0
    assert f"about {cell.more_runs} more on each side" in cell.reason


def test_stalls_in_some_loads_are_found_though_the_middle_stays() -> None:
    base = [1000.0 + i * 0.1 for i in range(40)]
    new = [*base[:26], *(time + 300.0 for time in base[26:])]
    (cell,) = judged([(base, new)])
    assert (cell.verdict, cell.direction) == ("different", "slower")
    assert "the mean moved by +105.0 ms" in cell.reason
    (cell,) = judged([(new, base)])
    assert (cell.verdict, cell.direction) == ("different", "faster")
    assert "the mean moved by -105.0 ms" in cell.reason


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_too_few_runs_say_how_many_are_needed(n: int) -> None:
    (cell,) = judged([([1000.0] * n, [2000.0] * n)])
    assert (cell.verdict, cell.more_runs) == ("inconclusive", 5 - n)
    assert f"among 2 tests; {5 - n} more on each side can" in cell.reason
    (enough,) = judged([([1000.0] * 5, [2000.0] * 5)])
    assert enough.verdict == "different"


def test_same_takes_an_interval_of_95_percent_whatever_alpha_is() -> None:
    times = [1000.0 + i * 0.1 for i in range(8)]
    for n, verdict in ((3, "inconclusive"), (4, "same")):
        (cell,) = judged([(times[:n], times[:n])], alpha=0.5)
        assert cell.verdict == verdict, cell.reason


def test_more_runs_as_advised_decide() -> None:
    dice = random.Random(11)  # noqa: S311
    base, new = ([dice.gauss(1000.0, 20.0) for _ in range(8)] for _ in range(2))
    (cell,) = judged([(base, new)])
    assert cell.verdict == "inconclusive" and cell.more_runs is not None
    more = 2 * cell.more_runs
    base, new = (side + [dice.gauss(1000.0, 20.0) for _ in range(more)] for side in (base, new))
    assert judged([(base, new)])[0].verdict == "same"


def test_many_cells_ask_for_more() -> None:
    apart = ([1000.0] * 5, [2000.0] * 5)
    cells = judged([apart] * 12)
    assert {cell.verdict for cell in cells} == {"inconclusive"}
    assert "among 24 tests" in cells[0].reason


def folders(tmp_path: Path, new: Sequence[float]) -> Comparison:
    base = [1000.0 + i * 0.1 for i in range(20)]
    one = write_times(tmp_path / "base", {FIRST: base, SECOND: base}, "host")
    two = write_times(tmp_path / "new", {FIRST: base, SECOND: new}, "host")
    return compare_results(one, two)


def test_folders_of_the_host_kernel(tmp_path: Path) -> None:
    found = folders(tmp_path, [1100.0 + i * 0.1 for i in range(20)])
    assert [cell.verdict for cell in found.cells] == ["same", "different"]
    assert found.worst_first[0].axes["page"] == "wsj"
    assert (found.min_effect_pct, found.exit_code) == (1.0, 1)
    assert not found.cells[1].trials


def test_faster_counts_unless_it_is_allowed(tmp_path: Path) -> None:
    found = folders(tmp_path, [900.0 + i * 0.1 for i in range(20)])
    assert (found.verdict, found.cells[1].direction) == ("different", "faster")
    allowed = compare_results(
        tmp_path / "base", tmp_path / "new", CompareOptions(allow_faster=True)
    )
    assert (allowed.verdict, allowed.exit_code) == ("same", 0)
    assert allowed.cells[1].verdict == "different"


def test_failures_count_when_there_are_more_of_them(tmp_path: Path) -> None:
    good = [made(FIRST, seed, 1000.0 + seed * 0.1, "host") for seed in range(20)]
    base = write_records_of(tmp_path / "base", good, [FIRST], "host")
    for number, verdict in ((1, "same"), (10, "different"), (20, "different")):
        bad = [broken(one, "unproven") for one in good[:number]]
        new = write_records_of(tmp_path / f"new{number}", [*bad, *good[number:]], [FIRST],
                               "host")  # fmt: skip
        (cell,) = compare_results(base, new).cells
        assert cell.verdict == verdict
        if verdict == "different":
            assert cell.direction == "changed"
            assert "seed 0 is unproven: 3 of 20 SYNs" in cell.reason
