from __future__ import annotations

import random

import pytest

from analysis.stats.draws import Draws, DrawsTest, compare_draws, draws_to_tell, least_p_of_deals

ALPHA = 0.05
TRIES = 200


def family(
    chance: random.Random, n: int, m: int, shift: float = 0.0, spread: float = 1.0
) -> list[tuple[Draws, Draws]]:
    """Six cells that share half of what a seed draws, in whole numbers: with ties."""
    ours, theirs = ([chance.gauss(0, 5) for _ in range(size)] for size in (n, m))
    return [
        (
            {(i, 0): float(round(of_seed + chance.gauss(0, 5))) for i, of_seed in enumerate(ours)},
            {
                (i, 0): float(round(shift + spread * (of_seed + chance.gauss(0, 5))))
                for i, of_seed in enumerate(theirs)
            },
        )
        for _ in range(6)
    ]


def shares(n: int, m: int, tries: int = TRIES, **changes: float) -> tuple[float, float]:
    """How often any cell, and the ranks of all, are called different."""
    chance = random.Random(7)  # noqa: S311 - simulated loads
    found: list[DrawsTest] = [compare_draws(family(chance, n, m, **changes)) for _ in range(tries)]
    cells = sum(min(one.corrected) <= ALPHA for one in found)
    return cells / tries, sum(one.uniform <= ALPHA for one in found) / tries


@pytest.mark.parametrize(("n", "m"), [(6, 6), (7, 4)])
def test_equal_distributions_are_rejected_as_often_as_alpha_says(n: int, m: int) -> None:
    """Of 200 families 3.5 to 19 in all but a few of a thousand such tests; cells are cautious."""
    cells, ranks = shares(n, m)
    assert cells <= 0.095
    assert 0.0 < ranks <= 0.095


@pytest.mark.parametrize("changes", [{"shift": 25.0}, {"spread": 8.0}])
def test_a_shift_and_another_spread_are_found(changes: dict[str, float]) -> None:
    cells, ranks = shares(8, 8, 10, **changes)
    assert min(cells, ranks) >= 0.8


def test_one_cell_far_beyond_is_found_among_many_and_alone() -> None:
    chance = random.Random(3)  # noqa: S311 - simulated loads
    cells = [cell for _ in range(4) for cell in family(chance, 6, 6)]
    before, after = cells[5]
    cells[5] = before, {block: value + 1000.0 for block, value in after.items()}
    found = compare_draws(cells).corrected
    assert [i for i, p in enumerate(found) if p <= ALPHA] == [5]


def test_what_is_equal_or_missing_is_no_evidence() -> None:
    equal = ({(i, 0): 5.0 for i in range(6)},) * 2
    lacking: tuple[Draws, Draws] = ({(0, 0): 1.0}, {(3, 0): 2.0})
    found = compare_draws([equal, lacking])
    assert found.corrected[0] == 1.0
    assert found.corrected[1] > ALPHA
    with pytest.raises(ValueError, match="without draws"):
        compare_draws([({}, {(0, 0): 1.0})])


def test_ranks_do_not_tell_how_far_a_draw_lies_off() -> None:
    base: Draws = {(i, 0): 2.0 * i for i in range(6)}
    near, far = (
        compare_draws([(base, {(i, 0): 2.0 * i + 1 for i in range(5)} | {(5, 0): last})])
        for last in (30.0, 3000.0)
    )
    assert near.uniform == far.uniform
    assert near.corrected != far.corrected


def test_how_many_draws_tell() -> None:
    assert least_p_of_deals(6, 6) == pytest.approx(2 / 924)
    assert least_p_of_deals(1, 19) == pytest.approx(0.05)
    assert draws_to_tell(6, 6, ALPHA) == 0
    assert draws_to_tell(1, 1, ALPHA) == 3


@pytest.mark.parametrize("ranked", [1, 3, 6])
def test_ranks_may_be_those_of_the_first_cells(ranked: int) -> None:
    cells = family(random.Random(3), 8, 9, shift=2.0)  # noqa: S311
    cells[4] = (cells[4][0], {**cells[4][1], (20, 0): 3.0})  # a draw that the first have not
    test = compare_draws(cells, ranked)
    assert test.corrected == compare_draws(cells).corrected
    assert test.uniform == compare_draws(cells[:ranked]).uniform
