"""Cells: their numbers are of one metric, and who does not have it is named."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from analysis.records.cells import Cell, cells_of, describe_absence, further_metrics
from analysis.records.kind import find_metric
from analysis.records.metric import PLT, Metric
from analysis.records.results import gather_results
from testbed.model import Record
from tests.analysis.sample import broken, conditions, experiment, record, with_milestones

OFF, ON = conditions(["amazon"], [100.0])
FCP, LCP = find_metric("fcp_ms"), find_metric("lcp_ms")


def cells(*records: Record, metric: Metric = PLT) -> tuple[Cell, ...]:
    asked = asdict(
        experiment(1, conditions=tuple(dict.fromkeys(r.trial.condition for r in records)))
    )
    return cells_of(gather_results(Path("x"), records, {"experiment": asked}), metric)


def painted(seed: int, fcp_ms: float | None, plt_ms: float = 1000.0) -> Record:
    return with_milestones(record(OFF, seed, plt_ms), fcp_ms=fcp_ms)


def test_numbers_are_load_times_unless_another_metric_is_named() -> None:
    loads = painted(0, 300.0), painted(1, 400.0, 1100.0)
    (cell,) = cells(*loads)
    assert list(cell.by_seed.values()) == [1000.0, 1100.0]
    (cell,) = cells(*loads, metric=FCP)
    assert list(cell.by_seed.values()) == [300.0, 400.0]
    assert cell.spread is not None and cell.spread.median == 350.0
    assert cell.sample is not None and cell.sample.median.value == 350.0
    assert cell.by(PLT) == cells(*loads)[0]


def test_a_load_without_the_metric_counts_and_has_no_number() -> None:
    (cell,) = cells(painted(0, 300.0), painted(1, None), metric=FCP)
    assert cell.by_seed == {(0, 0): 300.0}
    assert len(cell.proven) == 2
    (cell,) = cells(record(OFF), metric=FCP)
    assert (cell.by_seed, cell.spread, cell.sample) == ({}, None, None)
    assert cell.status == "proven"


@pytest.mark.parametrize(("apart_ms", "varies"), [(0.0, False), (4.0, False), (8.0, True)])
def test_paints_within_their_grain_do_not_vary(apart_ms: float, varies: bool) -> None:
    (cell,) = cells(painted(0, 300.0), painted(1, 300.0 + apart_ms), metric=FCP)
    assert cell.varies is varies


def test_milestones_are_those_that_a_proven_load_has() -> None:
    assert (
        further_metrics(cells(record(OFF), broken(with_milestones(record(ON)), "unproven"))) == ()
    )
    found = further_metrics(cells(record(OFF), with_milestones(record(ON), lcp_ms=None)))
    assert [metric.name for metric in found] == ["ttfb_ms", "fp_ms", "fcp_ms", "cls"]


def test_who_does_not_give_a_metric_is_named() -> None:
    graph = record(replace(OFF, client="graph"))
    assert describe_absence(cells(graph)) == []
    assert describe_absence(cells(painted(0, 300.0), metric=FCP)) == []
    assert describe_absence(cells(painted(0, 300.0), graph, metric=FCP)) == [
        "Client graph gives no first contentful paint (fcp_ms)."
    ]
    some = with_milestones(record(OFF), lcp_ms=None), with_milestones(record(ON))
    assert describe_absence(cells(*some, metric=LCP)) == [
        "1 of 2 loads by client chromium have a largest contentful paint (lcp_ms); in the others "
        "the page painted neither text nor a picture that counts."
    ]
    assert describe_absence(cells(broken(record(OFF), "timeout"), metric=FCP)) == []


@pytest.mark.parametrize(("counted", "lost", "safe", "status"), [
    (6, 0, None, "proven"),
    (6, 1, True, "6 of 7 count, 1 unproven"),
    (6, 4, True, "6 of 10 count, 4 unproven"),
    (6, 5, True, "6 of 11 count, 5 unproven"),
    (6, 6, False, "6 of 12 count, 6 unproven, median not safe"),
    (20, 8, True, "20 of 28 count, 8 unproven"),
    (20, 9, True, "20 of 29 count, 9 unproven"),
    (20, 10, False, "20 of 30 count, 10 unproven, median not safe"),
])  # fmt: skip
def test_draws_that_were_lost(counted: int, lost: int, safe: bool | None, status: str) -> None:
    """They may all have been slow: the median of all of them is then none that was measured."""
    (condition,) = conditions(["amazon"], [20.0], [False])
    loads = [record(condition, seed, 1000.0 + seed) for seed in range(counted)]
    loads += [broken(record(condition, counted + i), "unproven") for i in range(lost)]
    (cell,) = (c for c in cells(*loads) if c.records)
    assert (cell.lost, cell.is_safe, cell.status) == (lost, safe, status)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["had they been faster", "had they been slower"])
def test_lost_draws_on_one_side_move_a_median_out(sign: float) -> None:
    """Six of the values are one, so that on its side the median stays in the interval."""
    (condition,) = conditions(["amazon"], [20.0], [False])
    loads = [record(condition, seed, 1000.0 + sign * min(seed, 14)) for seed in range(20)]
    loads += [broken(record(condition, 20 + i), "unproven") for i in range(12)]
    (cell,) = (c for c in cells(*loads) if c.records)
    assert (cell.lost, cell.is_safe) == (12, False)


def test_loads_that_were_not_run_are_no_lost_draws() -> None:
    (condition,) = conditions(["amazon"], [20.0], [False])
    cell = Cell({}, (record(condition, 0, 1000.0), record(condition, 1, 1001.0)), 6)
    assert (cell.lost, cell.is_safe, cell.status) == (0, None, "2 of 6 count, 4 not run")


def test_a_cell_that_is_loaded_once_is_whole() -> None:
    """As `kernel try` plans it: a load of graph that draws nothing is a copy with any seed."""
    exact, _ = (replace(each, client="graph") for each in (OFF, ON))
    lossy = replace(exact, link=replace(exact.link, loss_pct=0.3))
    asked = asdict(experiment(2, conditions=(exact, lossy)))
    records = [record(exact, 0, 1000.0), record(lossy, 0, 1000.0), record(lossy, 1, 1100.0)]
    for once, planned, status in (
        ([], [2, 2], ["1 of 2 count, 1 not run", "proven"]), (["graph"], [1, 2], ["proven"] * 2),
    ):  # fmt: skip
        manifest = {"experiment": asked, "once": once}
        found = cells_of(gather_results(Path("x"), records, manifest))
        assert [cell.planned for cell in found] == planned
        assert [cell.status for cell in found] == status
