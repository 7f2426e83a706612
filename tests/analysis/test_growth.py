"""Reports and comparisons of many loads: their work grows as the loads do, and pages do not."""

from __future__ import annotations

import cProfile
import json
import pstats
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from analysis.kinds.page_load import conditions
from analysis.records import results
from analysis.report import rendering
from analysis.report.document import write_reports
from analysis.tables import summary
from analysis.verdicts.compare.folders import compare_results
from bench.many_records import sweep, write_many
from testbed.model import Record
from testbed.results import lazy
from testbed.results.records import parse_record
from tests import memory

SIZES = (40, 80, 160)
"""Conditions, of which each has SEEDS loads."""
SEEDS = 3


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take these results for large ones: their records are lazy, and their pages bounded."""
    monkeypatch.setattr(results, "read_lazy_records", partial(lazy.read_lazy_records, small=0))
    monkeypatch.setattr(rendering, "MOST_ROWS", 10)
    monkeypatch.setattr(summary, "MOST_TRIALS", 10)
    monkeypatch.setattr(conditions, "MAX_LOOKED_AT", 10)
    rendering.open_templates.cache_clear()
    yield
    rendering.open_templates.cache_clear()


def count_calls(act: Callable[[], object]) -> int:
    profile = cProfile.Profile()
    profile.runcall(act)
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return calls


def assert_linear(counts: list[int]) -> None:
    """Twice as much more must not take far more than twice as many calls more."""
    first, second = (after - before for before, after in pairwise(counts))
    assert second < 2.3 * first, counts


def test_a_report_makes_as_many_calls_as_there_are_loads(tmp_path: Path) -> None:
    folders = [write_many(tmp_path / str(cells), sweep(cells, SEEDS)) for cells in SIZES]
    write_reports(folders[0])  # what is imported and worked out once
    assert_linear([count_calls(partial(write_reports, folder)) for folder in folders])
    pages = [len((folder / "report.html").read_text()) for folder in folders]
    assert pages[2] < 1.2 * pages[1]


@pytest.mark.nightly(but="^other$")
@pytest.mark.parametrize("another", ["", "other"])
def test_so_does_a_comparison(tmp_path: Path, another: str) -> None:
    pairs = [
        (
            write_many(tmp_path / f"{cells}", sweep(cells, SEEDS)),
            write_many(tmp_path / f"{cells}-new", sweep(cells, SEEDS), another),
        )
        for cells in SIZES
    ]
    compare_results(*pairs[0])
    assert_linear([count_calls(partial(compare_results, *pair)) for pair in pairs])


def test_a_report_reads_the_requests_of_few_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    def count(line: bytes) -> Record:
        read.append(line)
        return parse_record(line)

    monkeypatch.setattr(lazy, "parse_record", count)
    counts = []
    for cells in SIZES[1:]:
        write_reports(write_many(tmp_path / str(cells), sweep(cells, SEEDS)))
        counts.append(len(read))
        read.clear()
    assert 0 < counts[1] <= counts[0] < SIZES[1] * SEEDS


@pytest.mark.nightly
def test_twice_the_loads_of_a_condition_take_a_little_more_memory(tmp_path: Path) -> None:
    folders = [write_many(tmp_path / str(seeds), sweep(20, seeds)) for seeds in (10, 20)]
    write_reports(folders[0])  # what is imported and worked out once
    small, large = (memory.trace(partial(write_reports, folder))[1] for folder in folders)
    assert (large - small) / 200 < 16_000, (small, large)


def test_what_a_page_and_a_summary_leave_out_is_said(tmp_path: Path) -> None:
    folder = write_many(tmp_path / "many", sweep(40, SEEDS))
    write_reports(folder)
    page = (folder / "report.html").read_text()
    assert "Of 20 rows the first 10 are in this page." in page
    assert "Of 120 rows the first 10 are in this page." in page
    assert "SHA-256 of every packet capture of the first 10 loads" in page
    assert page.count('scope="row" class="fixed" title="trial ') == 10
    document = json.loads((folder / "summary.json").read_text())
    assert document["counts"] == {"ok": 120}
    assert len(document["table"]) == 20
    assert [len(cell["trials"]) for cell in document["cells"]] == [0] * 40
    assert len((folder / "table.csv").read_text().splitlines()) == 21
