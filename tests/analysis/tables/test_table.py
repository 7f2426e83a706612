from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.cells import Cell, cells_of, flatten, varying_axes
from analysis.records.results import read_results
from analysis.report.publications import find_publication
from analysis.tables.rows import render_csv, trimmed
from analysis.tables.table import ResultTable, make_table
from testbed.model import Condition, LinkSpec, Record, TcpSpec
from tests.analysis.sample import broken, conditions, experiment, record, write_results
from tests.measured import load_of

OFF, ON = conditions(["amazon"], [100.0])


def table_of(
    folder: Path, records: list[Record], asked: tuple[Condition, ...], n: int
) -> ResultTable:
    results = read_results(write_results(folder, records, experiment(n, conditions=asked)))
    return make_table(cells_of(results), find_publication(results))


def rows_of(table: ResultTable) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv(table))))


def test_numbers_of_one_seed(tmp_path: Path) -> None:
    records = [record(OFF, 0, 2000.0000004), record(ON, 0, 1500.250004)]
    (row,) = rows_of(table_of(tmp_path, records, (OFF, ON), 1))
    assert list(row)[:8] == ["page", "rtt_ms", "plt_off_ms", "plt_on_ms", "improvement_pct",
                             "paper_plt_off_s", "paper_plt_on_s",
                             "paper_improvement_pct"]  # fmt: skip
    assert list(row.values())[:8] == ["amazon", "100", "2000", "1500.250004", "24.9875", "2.6",
                                      "2.34", "10"]  # fmt: skip
    assert (row["n"], row["status"], row["problems"]) == ("1", "proven", "")


def test_median_and_spread_over_seeds(tmp_path: Path) -> None:
    off, on = (1000.0, 1100.0, 1600.0), (900.0, 880.0, 800.0)
    records = [record(OFF, s, plt) for s, plt in enumerate(off)]
    records += [record(ON, s, plt) for s, plt in enumerate(on)]
    (row,) = rows_of(table_of(tmp_path, records, (OFF, ON), 3))
    assert (row["plt_off_ms"], row["plt_off_min_ms"], row["plt_off_max_ms"]) == (
        "1100", "1000", "1600",
    )  # fmt: skip
    assert (row["plt_on_ms"], row["plt_on_min_ms"], row["plt_on_max_ms"]) == ("880", "800", "900")
    assert (row["improvement_pct"], row["improvement_min_pct"], row["improvement_max_pct"]) == (
        "20", "10", "50",
    )  # fmt: skip


@pytest.mark.parametrize(("n", "level"), [(1, ""), (5, "93.75"), (6, "95")])
def test_the_level_of_the_intervals(tmp_path: Path, n: int, level: str) -> None:
    records = [record(c, s, 1000.0 + 7.0 * s * s) for c in (OFF, ON) for s in range(n)]
    (row,) = rows_of(table_of(tmp_path, records, (OFF, ON), n))
    assert row["ci_level_pct"] == level


def test_even_number_of_seeds(tmp_path: Path) -> None:
    records = [record(OFF, s, plt) for s, plt in enumerate((1000.0, 1001.0))]
    (pair,) = table_of(tmp_path, records, (OFF, ON), 2).pairs
    assert pair.spread_off is not None
    assert pair.spread_off.median == 1000.5


@pytest.mark.parametrize("outcome", ["unproven", "timeout", "lab_mismatch"])
def test_an_unproven_cell_has_no_number(tmp_path: Path, outcome: str) -> None:
    records = [record(OFF, 0, 2000.0), broken(record(ON, 0, 1.0), outcome)]
    (row,) = rows_of(table_of(tmp_path, records, (OFF, ON), 1))
    assert row["plt_off_ms"] == "2000"
    assert row["plt_on_ms"] == row["plt_on_min_ms"] == row["improvement_pct"] == ""
    assert row["status"] == f"on: {outcome}"
    assert (row["n"], row["planned_on"], row["proven_on"]) == ("0", "1", "0")


def test_the_wire_says_why_but_the_console_does_not(tmp_path: Path) -> None:
    records = [broken(record(OFF, 0, 2000.0), "timeout"), broken(record(ON, 0, 1.0), "unproven")]
    (row,) = rows_of(table_of(tmp_path, records, (OFF, ON), 1))
    assert row["problems"].startswith("on: 3 of 20 SYNs carry no request")
    assert "wall time" not in render_csv(table_of(tmp_path, records, (OFF, ON), 1))


def test_an_unproven_seed_is_never_averaged_and_arms_share_their_seeds(tmp_path: Path) -> None:
    records = [record(OFF, s, plt) for s, plt in enumerate((1000.0, 2000.0, 1200.0))]
    records += [record(ON, 0, 900.0), broken(record(ON, 1, 5.0), "unproven"), record(ON, 2, 1080.0)]
    (row,) = rows_of(table_of(tmp_path, records, (OFF, ON), 3))
    assert (row["plt_off_ms"], row["plt_off_max_ms"]) == ("1100", "1200")
    assert (row["plt_on_ms"], row["plt_on_min_ms"]) == ("990", "900")
    assert row["improvement_pct"] == "10"
    assert (row["n"], row["proven_off"], row["proven_on"]) == ("2", "3", "2")
    assert row["status"] == "on: 2 of 3 count, 1 unproven"


def test_what_did_not_run_is_a_row(tmp_path: Path) -> None:
    (row,) = rows_of(table_of(tmp_path, [], (OFF, ON), 2))
    assert row["status"] == "off: not run; on: not run"
    assert row["plt_off_ms"] == row["plt_on_ms"] == ""


def test_rows_keep_the_order_asked(tmp_path: Path) -> None:
    asked = conditions(["wsj", "amazon"], [200.0, 20.0])
    table = table_of(tmp_path, [record(c) for c in reversed(asked)], asked, 1)
    assert [(p.axes["page"], p.axes["rtt_ms"]) for p in table.pairs] == [
        ("wsj", 200.0), ("wsj", 20.0), ("amazon", 200.0), ("amazon", 20.0),
    ]  # fmt: skip


def test_other_sweeps_have_a_row_per_condition(tmp_path: Path) -> None:
    asked = tuple(
        Condition("amazon", client, LinkSpec(100.0), TcpSpec(initcwnd_segments=window))
        for client in ("graph", "wget2")
        for window in (3, 10)
    )
    table = table_of(tmp_path, [record(c, 0, 1000.0) for c in asked[:-1]], asked, 1)
    rows = rows_of(table)
    assert not table.paired
    assert list(rows[0])[:5] == ["page", "rtt_ms", "client", "initcwnd_segments", "plt_ms"]
    assert [r["plt_ms"] for r in rows] == ["1000", "1000", "1000", ""]
    assert rows[-1]["status"] == "not run"


def test_pairs_with_a_further_axis_are_not_pooled(tmp_path: Path) -> None:
    asked = tuple(
        replace(c, tcp=replace(c.tcp, initcwnd_segments=w)) for w in (3, 10) for c in (OFF, ON)
    )
    records = [record(c, 0, 1000.0 - 10 * i) for i, c in enumerate(asked)]
    rows = rows_of(table_of(tmp_path, records, asked, 1))
    assert [(r["initcwnd_segments"], r["plt_off_ms"], r["plt_on_ms"]) for r in rows] == [
        ("3", "1000", "990"),
        ("10", "980", "970"),
    ]


def test_axes_by_leaf_name() -> None:
    axes = flatten(ON)
    assert axes["rtt_ms"] == 100.0
    assert axes["tfo"] is True
    cells = [Cell(flatten(c), (), 1) for c in (OFF, ON)]
    assert varying_axes(cells) == ("tfo",)


def test_decimals() -> None:
    assert [trimmed(v, 6) for v in (20.0, 1.5, 1 / 3, -0.0, 1e-9, 1200.0)] == [
        "20", "1.5", "0.333333", "0", "0", "1200",
    ]  # fmt: skip


def test_first_visits_have_columns_where_a_page_is_visited_again(tmp_path: Path) -> None:
    once, again = record(OFF, 0, 2000.0), record(OFF, 0, 1500.0)
    (row,) = rows_of(table_of(tmp_path / "once", [once], (OFF,), 1))
    assert not any(name.startswith("first_") for name in row)
    load = load_of(again)
    visits = replace(again, measured=replace(load, earlier=(replace(load, plt_ms=1900.0),)))
    (row,) = rows_of(table_of(tmp_path / "again", [visits], (OFF,), 1))
    assert (row["plt_ms"], row["first_plt_ms"]) == ("1500", "1900")
    assert "first_fcp_ms" not in row


def test_rows_are_pairs_where_at_least_half_of_the_conditions_have_both_arms(
    tmp_path: Path,
) -> None:
    pages = [conditions([page], [100.0]) for page in ("amazon", "wsj", "nytimes")]
    half = (*pages[0], pages[1][0])
    assert table_of(tmp_path / "half", [record(one) for one in half], half, 1).paired
    third = (*half, pages[2][0])
    table = table_of(tmp_path / "third", [record(one) for one in third], third, 1)
    assert (table.paired, table.axes) == (False, ("page", "rtt_ms", "tfo"))
    assert [row["tfo"] for row in rows_of(table)] == ["false", "true", "false", "false"]
