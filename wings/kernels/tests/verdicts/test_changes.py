"""Changes that were tried: what is kept of a run, and what the committed sets say."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.verdicts import CHANGES, LEAST_PCT, MOST_FALSE
from firstflight.cli.reports import Reports
from testbed.base.places import ROOT
from tests.analysis.verdicts.compare.test_attribution import AGAIN, LOAD, shifted
from wings.kernels.tests.verdicts.test_table import BASE, SLOWER, run_of
from wings.kernels.verdicts.change_tables import (
    list_public,
    list_set,
    read_public,
)
from wings.kernels.verdicts.changes import KEPT, condense, read_kept, write_kept

COMMITTED = ROOT / KEPT
HISTORY = ROOT / "kernels" / "history"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = run_of(tmp_path / "run", {
        "7.3": (BASE, LOAD), "set-same": (BASE, shifted(0, 256)), "set-slow": (SLOWER, AGAIN),
    })  # fmt: skip
    Reports().compare_lanes(folder, ["7.3", "set-same", "set-slow"])
    return folder


def test_of_a_run_a_few_lines_a_kernel_are_kept(run: Path, tmp_path: Path) -> None:
    kept = condense(run)
    assert (kept.kernel, kept.loads) == ("7.3", 9)
    same, slow = kept.changes
    assert (same.counts, same.moved, same.found, same.extreme_pct) == (
        {"phase only": 3}, 0, False, 0.0,
    )  # fmt: skip
    assert (slow.counts, slow.moved, slow.found) == ({"slower": 1, "other packets": 2}, 1, True)
    assert (slow.extreme_pct, slow.extreme_cell) == (5.0, "page=wsj rtt_ms=20 tfo=false")
    assert [line.split()[0] for line in slow.differs] == ["new"]
    write_kept(kept, "set", tmp_path)
    assert read_kept("set", tmp_path) == kept


def test_tables_are_made_of_what_is_kept(run: Path, tmp_path: Path) -> None:
    kept = condense(run)
    write_kept(kept, "public-7.3", tmp_path)
    (tmp_path / "public.toml").write_text(
        '[[change]]\nname = "slow"\ncommit = "0123456789ab"\nsubject = "tcp: be *slow*"\n'
        'claims = "less work"\nwords = "--reverse"\n'
        '[[change]]\nname = "old"\ncommit = ""\nsubject = "tcp: be old"\nclaims = ""\n'
        'why = "it needs 5.4"\n'
    )
    table = list_public(tmp_path)
    assert ("| 0123456789ab tcp: be \\*slow\\* | less work | `--reverse` "
            "| 2 other packets, 1 slower | +5.00 % | ") in table  # fmt: skip
    assert "| slower by" in table
    assert "says why): tcp: be old.\n" in table
    assert "2 kernels beside 7.3 with `paper-table1.toml`: 9 loads" in table
    rows = list_set("public-7.3", tmp_path).splitlines()
    assert "| same | 3 phase only | none |" in rows
    assert "| slow | 2 other packets, 1 slower | +5.00 % |" in rows
    answered = list_set("public-7.3", tmp_path, answers=True).splitlines()
    assert "| slow | 2 other packets, 1 slower | +5.00 % | slower by" in "\n".join(answered)


def test_a_change_that_moved_no_cell_has_a_line_and_others_alike_one_row(tmp_path: Path) -> None:
    kept = read_kept("noops", COMMITTED)
    names = [each.name.partition("-")[2] for each in kept.changes]
    write_kept(kept, "public-7.3", tmp_path)
    (tmp_path / "public.toml").write_text("".join(
        f'[[change]]\nname = "{name}"\ncommit = ""\nsubject = "{name}"\nclaims = "x"\n'
        for name in names
    ))  # fmt: skip
    lines = list_public(tmp_path).splitlines()
    assert "- clock-read-in-sendmsg: 3 other packets, 45 phase only" in lines
    assert [f"- {name}" in lines for name in names].count(True) == len(names) - 1
    rows = [line for line in list_set("public-7.3", tmp_path).splitlines() if "no effect" in line]
    assert len(rows) == 1
    assert rows[0].count("; ") == len(names) - 2


@pytest.mark.parametrize(
    ("kind", "patches"),
    [("noops", CHANGES / "noops"), ("plants", CHANGES / "plants"),
     ("history", HISTORY), ("history-with-loss", HISTORY)],
)  # fmt: skip
def test_each_patch_has_its_line(kind: str, patches: Path) -> None:
    kept = read_kept(kind, COMMITTED)
    assert [each.name.partition("-")[2] for each in kept.changes] == [
        path.stem for path in sorted(patches.glob("*.patch"))
    ]


def test_the_committed_verdicts_raise_no_false_alarm_and_miss_nothing() -> None:
    noops, plants = (read_kept(kind, COMMITTED).changes for kind in ("noops", "plants"))
    assert sum(each.found for each in noops) <= MOST_FALSE
    assert all(sum(each.counts.values()) == 48 for each in (*noops, *plants))
    large = [each for each in plants if abs(each.extreme_pct) >= LEAST_PCT]
    assert large and all(each.found for each in large)


def test_every_public_change_is_tried_or_says_why_not() -> None:
    kept = [each for path in COMMITTED.glob("public-*.json")
            for each in read_kept(path.stem, COMMITTED).changes]  # fmt: skip
    tried = sorted(each.name.partition("-")[2] for each in kept)
    assert tried == sorted(change.name for change in read_public(COMMITTED) if not change.why)
    assert len(tried) >= 20
