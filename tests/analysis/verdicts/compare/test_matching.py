"""Which cell is which, also with a knob under test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.verdicts.compare.comparison import CompareOptions
from analysis.verdicts.compare.documents import render_page
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import headline
from testbed.base.errors import ConfigurationError
from tests.analysis.verdicts.compare.folder import FIRST, SECOND, write_times

NARROW = replace(FIRST, tcp=replace(FIRST.tcp, initcwnd_segments=4))
WINDOW = CompareOptions(("initcwnd_segments",))


def test_a_knob_under_test(tmp_path: Path) -> None:
    base = write_times(tmp_path / "base", {FIRST: [1000.0]})
    new = write_times(tmp_path / "new", {NARROW: [1100.0]})
    with pytest.raises(ConfigurationError, match="--across initcwnd_segments") as refused:
        compare_results(base, new)
    assert "initcwnd_segments is 10 in BASE and 4 in NEW" in str(refused.value)
    found = compare_results(base, new, WINDOW)
    (cell,) = found.cells
    assert "initcwnd_segments" not in cell.axes
    assert found.knobs == {"initcwnd_segments": ("10", "4")}
    assert (cell.verdict, cell.direction) == ("different", "slower")
    assert cell.effect is not None and cell.effect.pct == pytest.approx(10.0)


def test_several_values_of_the_knob_under_test_are_ambiguous(tmp_path: Path) -> None:
    both = write_times(tmp_path / "both", {FIRST: [1000.0], NARROW: [1100.0]})
    with pytest.raises(ConfigurationError, match="BASE holds several cells") as refused:
        compare_results(both, both, WINDOW)
    assert "initcwnd_segments 10, 4" in str(refused.value)
    assert compare_results(both, both).verdict == "same"


def test_a_cell_that_is_gone_is_different_and_a_new_one_is_told(tmp_path: Path) -> None:
    base = write_times(tmp_path / "base", {FIRST: [1000.0], SECOND: [2000.0]})
    new = write_times(tmp_path / "new", {FIRST: [1000.0], NARROW: [900.0]})
    found = compare_results(base, new)
    assert [cell.verdict for cell in found.cells] == ["same", "different"]
    assert found.cells[1].reason == "NEW has no proven load: the cell is not there"
    assert [axes["initcwnd_segments"] for axes in found.added] == [4]
    assert found.notes == ("1 cell of NEW is not in BASE.",)
    assert found.exit_code == 1


def test_whole_numbers_and_others_name_one_cell(tmp_path: Path) -> None:
    base = write_times(tmp_path / "base", {FIRST: [1000.0]})
    text = (base / "manifest.json").read_text().replace('"rtt_ms": 20.0', '"rtt_ms": 20')
    (base / "manifest.json").write_text(text)
    new = write_times(tmp_path / "new", {FIRST: [1000.0]})
    found = compare_results(base, new)
    assert len(found.cells) == 1 and not found.added


def test_a_faster_page_under_test_is_named_and_is_no_fault(tmp_path: Path) -> None:
    sides = [
        write_times(tmp_path / name, {replace(FIRST, page=name): [plt_ms]})
        for name, plt_ms in (("shop-a", 1000.0), ("shop-b", 410.0))
    ]
    found = compare_results(sides[0], sides[1], CompareOptions(across=("page",)))
    assert headline(found) == "shop-b IS FASTER: 1 cell, 1 different."
    assert '<span class="badge good">faster</span>' in render_page(found)
    found = compare_results(sides[1], sides[0], CompareOptions(across=("page",)))
    assert headline(found) == "shop-a IS SLOWER: 1 cell, 1 different."
    assert '<span class="badge bad">slower</span>' in render_page(found)
