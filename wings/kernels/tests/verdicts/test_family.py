"""Cells whose loads are drawn: judged by intervals, and together."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.formats.suites import write_ktap
from analysis.verdicts.compare.attribution import HARMLESS_DRAWN_PCT, LEAST_SEEDS
from analysis.verdicts.compare.comparison import CellFinding
from testbed.model import Condition
from tests.analysis.verdicts.compare.test_attribution import AGAIN, LOAD
from tests.analysis.verdicts.compare.test_kernels import OFF, lane
from wings.kernels.verdicts.answer import answer
from wings.kernels.verdicts.suite import suites_of
from wings.kernels.verdicts.table import FailRule, LaneVerdicts, attribute

SEEDS = 6


def lossy(number: int) -> Condition:
    """One of many cells over a link that loses packets."""
    return replace(OFF, link=replace(OFF.link, rtt_ms=20.0 + number, loss_pct=0.3))


def judged(
    tmp_path: Path, *changes: Sequence[float], exact: float | None = None
) -> tuple[LaneVerdicts, FailRule]:
    """What lossy cells came to that changed by so many percent with each seed, and an exact one."""
    before = {lossy(n): [1000.0 + seed for seed in range(SEEDS)] for n in range(len(changes))}
    after = {lossy(n): [1000.0 + seed + 10 * pct for seed, pct in enumerate(cell)]
             for n, cell in enumerate(changes)}  # fmt: skip
    if exact is not None:
        before[OFF], after[OFF] = [1000.0], [1000.0 + 10 * exact]
    old = lane(tmp_path / "7.3", "7.3", before, LOAD)
    found = attribute(old, lane(tmp_path / "mine", "mine", after, AGAIN))
    return found.lanes[0], FailRule()


def verdicts(cells: Sequence[CellFinding]) -> list[str]:
    return [cell.attribution.verdict for cell in cells if cell.attribution]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ((1.0, 1.2, 1.4, 0.9, 1.1, 1.3), "slower"),
        ((-1.0, -1.2, -1.4, -0.9, -1.1, -1.3), "faster"),
        ((1.0, 1.2, 1.4, 0.9, 1.1, -0.3), "spread"),  # its interval holds 0
        ((3.0, -3.2, 8.4, -0.9, 1.1, -0.3), "spread"),
        ((0.05, 0.06, 0.07, 0.05, 0.06, 0.08), "spread"),  # above 0, and of no use to anybody
        ((0.0, 0.0, 0.0, 0.0, 0.005, 0.0), "other packets"),  # 0.05 ms
    ],
)
def test_a_drawn_cell_moves_where_its_interval_leaves_out_0(
    tmp_path: Path, changes: Sequence[float], verdict: str
) -> None:
    found, rule = judged(tmp_path, changes)
    assert verdicts(found.cells) == [verdict]
    (attribution,) = [cell.attribution for cell in found.cells if cell.attribution]
    assert (attribution.drawn, attribution.tcp_alone, attribution.seeds) == (True, True, SEEDS)
    assert rule.flags(found.cells[0]) == (verdict == "slower")


def test_the_bound_is_strict(tmp_path: Path) -> None:
    at = [HARMLESS_DRAWN_PCT * (1 + seed / 1000) for seed in range(SEEDS)]
    found, _ = judged(tmp_path, [pct * 1.01 for pct in at])
    assert verdicts(found.cells) == ["slower"]


def test_few_seeds_tell_nothing_of_what_is_drawn(tmp_path: Path) -> None:
    few = LEAST_SEEDS - 1
    old = lane(tmp_path / "7.3", "7.3", {lossy(0): [1000.0] * few}, LOAD)
    found = attribute(old, lane(tmp_path / "mine", "mine", {lossy(0): [1500.0] * few}, AGAIN))
    assert found.lanes[0].counts == {"inconclusive": 1}
    assert found.exit_code(FailRule()) == 5


def luck(cells: int, seed: int) -> list[list[float]]:
    drawn = random.Random(seed)  # noqa: S311 - no secret
    return [[drawn.gauss(0, 5) for _ in range(SEEDS)] for _ in range(cells)]


def test_the_luck_of_one_cell_among_many_is_none(tmp_path: Path) -> None:
    lucky = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert verdicts(judged(tmp_path / "alone", lucky)[0].cells) == ["slower"]
    found, rule = judged(tmp_path / "many", lucky, *luck(23, 3))
    assert set(verdicts(found.cells)) == {"spread"}
    (family,) = found.families
    assert (family.client, family.cells, family.seeds) == ("graph", 24, SEEDS)
    assert family.chance > 0.05
    assert not any(map(rule.flags, found.cells)) and not rule.flags_family(family)
    assert answer(found).startswith("no shift of load times, ")
    reasons = [cell.attribution.reason for cell in found.cells if cell.attribution]
    assert "as one of 24 cells gives by chance" in reasons[0]


def test_what_all_cells_show_together_fails_though_none_does(tmp_path: Path) -> None:
    """Each cell has a seed or two that went the other way, and never the same."""
    shifted = [[2.0 + 0.1 * s - (6.0 if s == n % SEEDS else 0) for s in range(SEEDS)]
               for n in range(12)]  # fmt: skip
    found, rule = judged(tmp_path, *shifted)
    assert set(verdicts(found.cells)) == {"spread"}
    (family,) = found.families
    assert (family.verdict, rule.flags_family(family)) == ("slower", True)
    assert not FailRule(least_pct=5.0).flags_family(family)
    assert not FailRule("none").flags_family(family)
    assert answer(found).startswith("slower by 1.25 % (95 % interval ")
    assert answer(found).endswith(" in the mean of 12 cells of graph over 6 seeds")


def test_it_fails_in_every_form(tmp_path: Path) -> None:
    shifted = [[2.0 + 0.1 * s - (6.0 if s == n % SEEDS else 0) for s in range(SEEDS)]
               for n in range(12)]  # fmt: skip
    before = {lossy(n): [1000.0] * SEEDS for n in range(12)}
    after = {lossy(n): [1000.0 + 10 * pct for pct in cell] for n, cell in enumerate(shifted)}
    old = lane(tmp_path / "7.3", "7.3", before, LOAD)
    found = attribute(old, lane(tmp_path / "mine", "mine", after, AGAIN))
    assert found.exit_code(FailRule()) == 1
    assert "  not ok 13 all cells with draws of graph" in write_ktap(suites_of(found, FailRule()))


def test_cells_that_move_both_ways_are_found(tmp_path: Path) -> None:
    up, down = [5.0, 6.0, 7.0, 8.0, 9.0, 10.0], [-5.0, -6.0, -7.0, -8.0, -9.0, -10.0]
    found, _ = judged(tmp_path, up, down, up, down, *luck(8, 1))
    (family,) = found.families
    assert (family.verdict, family.has_moved) == ("spread", True)
    assert verdicts(found.cells)[:4] == ["slower", "faster", "slower", "faster"]


def test_an_exact_cell_needs_no_family(tmp_path: Path) -> None:
    found, _ = judged(tmp_path, *luck(12, 2), exact=1.0)
    assert verdicts(found.cells)[-1] == "slower"
    assert answer(found) == "slower by 1.00 % in 1 of 13 cells"


def test_the_answer_says_how_much_how_sure_and_where(tmp_path: Path) -> None:
    changes = (1.0, 1.2, 1.4, 0.9, 1.1, 1.3)
    found, _ = judged(tmp_path, changes, changes, [-pct for pct in changes], exact=0.0)
    assert answer(found) == (
        "slower by 1.15 % (95 % interval 0.90 to 1.40) in 2 and "
        "faster by 1.15 % (95 % interval 0.90 to 1.40) in 1 of 4 cells"
    )


def test_clock_reads_in_every_cell_lend_no_weight_to_the_luck_of_one(tmp_path: Path) -> None:
    """They move all seeds one way, by a ten-thousandth of a percent."""
    reads = [[0.0001 + seed / 1e6 for seed in range(SEEDS)] for _ in range(12)]
    found, _ = judged(tmp_path, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], *luck(23, 3), *reads)
    (family,) = found.families
    assert family.chance > 0.05
    assert not {"slower", "faster"} & set(verdicts(found.cells))
