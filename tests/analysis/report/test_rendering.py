from __future__ import annotations

from analysis.report.publications import Grid
from analysis.report.rendering import format_grid
from analysis.words import MINUS, MISSING


def test_numbers_of_a_column_share_their_decimals() -> None:
    rows = ((1, 0.83), (20, 1.4213), (3, None))
    grid = Grid("t", ("window", "s"), rows)
    assert format_grid(grid) == [["1", "0.8300"], ["20", "1.4213"], ["3", MISSING]]


def test_five_digits_are_enough() -> None:
    grid = Grid("t", ("ms",), ((1664.21349,), (-2.5,), (1e-9,)))
    assert format_grid(grid) == [["1,664.2"], [f"{MINUS}2.5"], ["0.0"]]


def test_text_is_cleaned_and_an_empty_table_is_empty() -> None:
    assert format_grid(Grid("t", ("a",), (("x\x1b[31m",),))) == [["x\ufffd[31m"]]
    assert format_grid(Grid("t", ("a", "b"), ())) == []
