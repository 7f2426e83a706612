"""Whether signs of paired differences agree by chance alone, over several cells."""

from __future__ import annotations

import random

import pytest

from analysis.stats.signs import MOST_FLIPS, p_of_signs

Cell = dict[tuple[int, int], float]


def cell(*values: float) -> Cell:
    return {(seed, seed): value for seed, value in enumerate(values)}


@pytest.mark.parametrize(("cells", "chance"), [
    ([cell(1, 2, 3, 4, 5, 6)], 2 / 64),  # all one way: that, and its mirror
    ([cell(-1, -2, -3, -4, -5, -6)], 2 / 64),
    ([cell(1, 2, 3, 4, 5)], 2 / 32),
    ([cell(1, 2, 3, 4, 5, 6), cell(-3, -1, -4, -1, -5, -9)], 2 / 64),  # each its own way
    ([cell(0, 0, 0, 0, 0, 0)], 1.0),
    ([cell(0, 0, 0, 0, 0, 0), cell(1, 1, 1, 1, 1, 1)], 2 / 64),  # what is still takes no part
    ([], 1.0),
])  # fmt: skip
def test_signs_that_agree_are_rarely_chance(cells: list[Cell], chance: float) -> None:
    assert p_of_signs(cells) == pytest.approx(chance)


def test_seeds_that_a_cell_lacks_do_not_count() -> None:
    assert p_of_signs([cell(1, 2, 3), {(5, 5): 1.0}]) == pytest.approx(2 / 16 * 2)


def test_one_cell_among_many_is_what_chance_gives() -> None:
    drawn = random.Random(3)  # noqa: S311 - no secret
    luck = [cell(*(drawn.gauss(0, 1) for _ in range(6))) for _ in range(23)]
    assert p_of_signs([*luck, cell(1, 2, 3, 4, 5, 6)]) > 0.05


def test_of_changes_that_do_nothing_no_more_are_called_so_than_promised() -> None:
    """Cells share the luck of a seed, as pages over one link do: chance is held all the same."""
    drawn = random.Random(1)  # noqa: S311 - no secret
    found = 0
    for _ in range(400):
        shared = [drawn.gauss(0, 1) for _ in range(6)]
        cells = [cell(*(one + drawn.gauss(0, 1) for one in shared)) for _ in range(12)]
        found += p_of_signs(cells) <= 0.05
    assert found <= 400 * 0.05


def test_many_seeds_are_flipped_in_a_sample_of_ways_the_same_every_time() -> None:
    values = cell(*(float(n) for n in range(1, 21)))
    chances = {p_of_signs([values]) for _ in range(3)}
    assert chances == {1 / MOST_FLIPS}
