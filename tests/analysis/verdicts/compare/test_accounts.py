"""What moved in cells that are slower or faster, in every form that lists them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.kinds.page_load.records import MILESTONES
from analysis.records.metric import PLT, Metric
from analysis.verdicts.compare.comparison import CompareOptions, Comparison
from analysis.verdicts.compare.documents import describe_comparison, render_markdown, render_page
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import render_text
from testbed.model.owners import LINE, RECOVERY, WINDOW
from tests.analysis.sample import with_milestones
from tests.analysis.verdicts.compare.folder import (
    FIRST,
    SECOND,
    made,
    write_records_of,
)

BEFORE = {WINDOW: 600.0, LINE: 400.0}
AFTER = {WINDOW: 607.0, LINE: 400.0, RECOVERY: 31.0}
SAID = "+38 ms: +31 recovery, +7 window"


def folder(where: Path, *accounts: dict[str, float]) -> Path:
    """Two cells: one whose loads have these accounts, by seed, and one that is always the same."""
    records = [made(SECOND, 0, 1000.0)]
    for seed, account in enumerate(accounts):
        one = with_milestones(made(FIRST, seed, sum(account.values()) or 1000.0))
        assert one.proof is not None
        records.append(replace(one, proof=replace(one.proof, account=account)))
    return write_records_of(where, records, [FIRST, SECOND])


def compared(
    tmp_path: Path, base: list[dict[str, float]], new: list[dict[str, float]], metric: Metric = PLT
) -> Comparison:
    one, other = folder(tmp_path / "base", *base), folder(tmp_path / "new", *new)
    return compare_results(one, other, CompareOptions(metric=metric))


def test_every_form_says_what_moved(tmp_path: Path) -> None:
    found = compared(tmp_path, [BEFORE], [AFTER])
    assert [bool(cell.moved_ms) for cell in found.cells] == [True, False]
    assert f"; the mean load spent {SAID}." in " ".join(render_text(found).split())
    assert SAID in render_text(found, 200).splitlines()[2]
    assert f"{SAID} |" in render_markdown(found)
    assert render_page(found).count(SAID) == 2
    moved = describe_comparison(found)["cells"][0]["moved_ms"]
    assert {owner: ms for owner, ms in moved.items() if ms} == {RECOVERY: 31.0, WINDOW: 7.0}


def test_what_moved_the_other_way_has_its_sign(tmp_path: Path) -> None:
    found = compared(tmp_path, [AFTER | {LINE: 420.0}], [BEFORE | {WINDOW: 620.0}])
    assert "spent -38 ms: -31 recovery, -20 line, +13 window." in " ".join(
        render_text(found).split()
    )


def test_only_the_seeds_that_both_have_are_compared(tmp_path: Path) -> None:
    found = compared(tmp_path, [BEFORE, {LINE: 5000.0}], [AFTER])
    assert SAID in render_text(found)


@pytest.mark.parametrize(("base", "new"), [([BEFORE], [{}]), ([{}], [AFTER])])
def test_without_both_accounts_nothing_is_said(
    tmp_path: Path, base: list[dict[str, float]], new: list[dict[str, float]]
) -> None:
    found = compared(tmp_path, base, [*new])
    assert not any(cell.moved_ms for cell in found.cells)
    assert "spent" not in render_text(found, 300).lower() + render_markdown(found).lower()


def test_an_account_is_of_the_load_time_alone(tmp_path: Path) -> None:
    found = compared(tmp_path, [BEFORE], [AFTER], MILESTONES[1])
    assert found.cells[0].direction == "slower"
    assert not any(cell.moved_ms for cell in found.cells)
