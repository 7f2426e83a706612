"""Text tables: aligned columns, and what happens where they do not fit."""

from __future__ import annotations

import pytest

from analysis.tables.columns import Column, align, render_columns

COLUMNS = [Column("page", ["wsj", "amazon"], left=True), Column("ms", ["9.5", "1000.0"], 1),
           Column("spread", ["-", "1..2"], 2),
           Column("proof", ["proven", "no"], left=True)]  # fmt: skip


def test_numbers_are_aligned_at_the_right_and_words_at_the_left() -> None:
    assert align(COLUMNS) == ["page        ms  spread  proof", "------  ------  ------  ------",
                              "wsj        9.5       -  proven",
                              "amazon  1000.0    1..2  no"]  # fmt: skip


@pytest.mark.parametrize(
    ("room", "headings"),
    [(30, "page ms spread proof"), (29, "page ms proof"), (21, "page proof"), (14, "page proof")],
)
def test_the_least_important_columns_go_first(room: int, headings: str) -> None:
    lines = render_columns(COLUMNS, room)
    assert lines[0].split() == headings.split()
    assert max(map(len, lines)) <= room


def test_a_column_that_may_be_cut_is_cut_before_others_go() -> None:
    titled = [*COLUMNS[:2], Column("title", ["A long title", "Short"], left=True, least=6)]
    whole = render_columns(titled, 28)
    assert whole == align(titled)
    assert render_columns(titled, 22) == ["page        ms  title", "------  ------  ------",
                                          "wsj        9.5  A lon…",
                                          "amazon  1000.0  Short"]  # fmt: skip
    assert render_columns(titled, 21)[0].split() == ["page", "title"]


def test_rows_become_sentences_that_leave_nothing_out() -> None:
    lines = render_columns(COLUMNS, 13)
    assert max(map(len, lines)) <= 13
    assert " ".join(lines) == (
        "page wsj, ms 9.5, spread -, proof proven page amazon, ms 1000.0, spread 1..2, proof no"
    )


def test_a_table_without_rows_has_its_headings() -> None:
    assert render_columns([Column("page", [])], 80) == ["page", "----"]


def test_headings_have_several_lines_where_the_table_would_not_fit() -> None:
    columns = [Column("page", ["wsj"], left=True), Column("first visit PLT", ["1.5"])]
    assert render_columns(columns, 21)[0] == "page  first visit PLT"
    assert render_columns(columns, 20) == ["      first", "      visit", "page    PLT",
                                           "----  -----", "wsj     1.5"]  # fmt: skip
    assert render_columns(columns, 10)[0] == "page wsj,"
