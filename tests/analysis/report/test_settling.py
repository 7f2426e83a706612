"""Many repetitions as the table, the report and the stopping rule see them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from analysis.records.cells import cells_of
from analysis.records.results import read_results
from analysis.report.document import write_reports
from analysis.report.settling import list_unsettled
from analysis.report.terminal import render_table
from analysis.report.verdict import findings
from analysis.tables.table import ResultTable, make_table
from testbed.model import Condition, Experiment, LinkSpec, Record
from tests.analysis.sample import broken, conditions, experiment, record, write_results
from tests.measured import load_of

OFF, ON = conditions(["amazon"], [100.0])


def times(seed: int, n: int, scale: float = 30.0) -> list[float]:
    """Skewed load times in ms."""
    chance = numpy.random.default_rng(seed)
    return [float(2000.0 + scale * value) for value in chance.lognormal(0.0, 1.0, n)]


def loads(condition: Condition, plts: list[float]) -> list[Record]:
    return [record(condition, seed, plt) for seed, plt in enumerate(plts)]


def copies(condition: Condition, n: int) -> list[Record]:
    """Loads as virtual time gives them where seeds decide nothing: system calls apart."""
    first = record(condition, 0, 2000.0)
    made = []
    for seed in range(n):
        load = replace(load_of(first), plt_ms=2000.0 + 0.000256 * (seed % 3))
        made.append(replace(record(condition, seed, 2000.0), measured=load))
    return made


def warmed(one: Record) -> Record:
    trial = replace(one.trial, warm_up=True)
    return replace(one, trial=trial, trial_id=trial.id)


def sampling(asked: tuple[Condition, ...], pct: float = 1.0) -> Experiment:
    return experiment(10, conditions=asked, until_ci_pct=pct, reference=None)


def table_of(folder: Path, records: list[Record], asked: tuple[Condition, ...]) -> ResultTable:
    n = 1 + max(r.trial.repetition for r in records)
    write_results(folder, records, experiment(n, conditions=asked))
    return make_table(cells_of(read_results(folder)), None)


def test_a_run_with_equal_arms_shows_no_difference(tmp_path: Path) -> None:
    records = [*loads(OFF, times(1, 20)), *loads(ON, times(2, 20))]
    table = table_of(tmp_path, records, (OFF, ON))
    said = " ".join(findings(table))
    assert "No difference between the arms is shown in 1 of 1 row" in said
    assert "faster" not in said
    assert "changed" not in said
    assert table.pairs[0].shift is not None
    assert table.pairs[0].shift.shown is False


def test_a_real_difference_is_shown_beside_rows_without_one(tmp_path: Path) -> None:
    asked = conditions(["amazon", "wsj"], [100.0])
    arms = [times(1, 12), [t - 200.0 for t in times(2, 12)], times(3, 12), times(4, 12)]
    records = [r for c, plts in zip(asked, arms, strict=True) for r in loads(c, plts)]
    said = findings(table_of(tmp_path, records, asked))
    assert any(s.startswith("In 1 of 2 rows Fast Open changed the page load time") for s in said)
    assert any(s.startswith("No difference between the arms is shown in 1 of 2") for s in said)


def test_few_repetitions_promise_less_and_say_so(tmp_path: Path) -> None:
    records = [*loads(OFF, times(1, 5)), *loads(ON, times(2, 5))]
    said = " ".join(findings(table_of(tmp_path, records, (OFF, ON))))
    assert "5 seeds are too few for intervals of 95 %: a range of the loads contains" in said
    assert "No difference" not in said


def test_the_cell_with_the_fewest_loads_decides_what_is_promised(tmp_path: Path) -> None:
    records = [*loads(OFF, times(1, 12)), *loads(ON, times(2, 5))]
    said = " ".join(findings(table_of(tmp_path, records, (OFF, ON))))
    assert "5 seeds are too few for intervals of 95 %" in said


def test_csv_summary_and_report_hold_the_same_intervals(tmp_path: Path) -> None:
    records = [*loads(OFF, times(1, 12)), *loads(ON, [t - 50.0 for t in times(1, 12)])]
    table_of(tmp_path, [replace(r, position=3) for r in records], (OFF, ON))
    write_reports(tmp_path)
    (row,) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [row[f"saved{part}_ms"] for part in ("", "_ci_low", "_ci_high")] == ["50", "50", "50"]
    assert float(row["plt_off_ci_low_ms"]) < float(row["plt_off_ms"])
    assert (row["ci_level_pct"], row["n"]) == ("95", "12")
    interval = summary["cells"][0]["sample_ms"]["median"]["interval"]
    assert interval["low"] == pytest.approx(float(row["plt_off_ci_low_ms"]))
    assert summary["cells"][0]["trials"][0]["position"] == 3
    html = (tmp_path / "report.html").read_text()
    assert 'id="statistics"' in html
    assert "50.0 to 50.0" in html
    low, high = (float(row[f"saved_ci_{end}_pct"]) for end in ("low", "high"))
    assert f" {low:.1f}..{high:.1f} " in render_table(tmp_path, 120)


def test_one_repetition_shows_no_interval(tmp_path: Path) -> None:
    table_of(tmp_path, [record(OFF, 0, 2000.0), record(ON, 0, 1500.0)], (OFF, ON))
    write_reports(tmp_path)
    (row,) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert (row["saved_ms"], row["plt_off_mean_ms"]) == ("500", "2000")
    assert {value for name, value in row.items() if "_ci_" in name or name == "ci_level_pct"} == {
        ""
    }
    assert 'id="statistics"' not in (tmp_path / "report.html").read_text()
    assert "interval" not in render_table(tmp_path, 160)


def test_warm_ups_are_in_no_number_and_are_counted(tmp_path: Path) -> None:
    cold = [warmed(record(c, 0, 9000.0)) for c in (OFF, ON)]
    records = [*cold, *loads(OFF, times(1, 8)), *loads(ON, times(2, 8))]
    table = table_of(tmp_path, records, (OFF, ON))
    assert [cell.planned for cell in table.cells] == [8, 8]
    assert all(cell.spread is not None and cell.spread.high < 9000.0 for cell in table.cells)
    write_reports(tmp_path)
    assert json.loads((tmp_path / "summary.json").read_text())["warm_ups"] == 2
    assert "2 loads only warmed the machine up" in (tmp_path / "report.html").read_text()


def test_wide_intervals_are_named_and_narrow_ones_are_not() -> None:
    noisy = [*loads(OFF, times(1, 10, 300.0)), *loads(ON, times(2, 10, 300.0))]
    named = list_unsettled(sampling((OFF, ON)), noisy)
    assert [name.rpartition(" (")[0] for name in named] == [
        "amazon, 100 ms, Fast Open off", "amazon, 100 ms, Fast Open on",
        "amazon, 100 ms, time saved",
    ]  # fmt: skip
    assert list_unsettled(sampling((OFF, ON), pct=50.0), noisy) == ()
    assert list_unsettled(replace(sampling((OFF, ON)), until_ci_pct=None), noisy) == ()


def test_settled_is_as_narrow_as_asked() -> None:
    noisy = loads(OFF, times(1, 10, 300.0))
    (named,) = list_unsettled(sampling((OFF,)), noisy)
    width = float(named.partition("(+-")[2].removesuffix(" %)"))
    assert len(list_unsettled(sampling((OFF,), pct=width * 0.9), noisy)) == 1
    assert list_unsettled(sampling((OFF,), pct=width * 1.1), noisy) == ()


def test_a_narrow_range_of_few_loads_has_not_settled() -> None:
    few = [*loads(OFF, times(1, 5, 0.1)), *loads(ON, times(2, 5, 0.1))]
    assert [name.rpartition(" (")[2] for name in list_unsettled(sampling((OFF, ON)), few)] == [
        "too few loads)"
    ] * 3


def test_the_report_names_what_has_not_settled(tmp_path: Path) -> None:
    records = [*loads(OFF, times(1, 10, 300.0)), *loads(ON, [2000.0] * 10)]
    for pct, said in ((1.0, "inconclusive: amazon, 100 ms, Fast Open off (+-"), (90.0, "All are")):
        write_results(tmp_path, records, sampling((OFF, ON), pct))
        write_reports(tmp_path)
        html = (tmp_path / "report.html").read_text()
        assert said in html
        assert f"every interval within ±{pct:g} %" in html


def test_virtual_time_settles_at_once() -> None:
    same = [*loads(OFF, [2000.0] * 10), *loads(ON, [1500.0] * 10)]
    assert list_unsettled(sampling((OFF, ON), pct=0.001), same) == ()


def test_copies_have_no_interval_and_are_said_to_be_copies(tmp_path: Path) -> None:
    records = [*copies(OFF, 10), *copies(ON, 10)]
    table = table_of(tmp_path, records, (OFF, ON))
    assert not table.repeated
    said = " ".join(findings(table))
    assert "Nothing varies between seeds here, so there is no interval: " in said
    assert "think_spread_pct" in said and "start_spread_ms" in said and "loss_pct" in said
    assert "outlier" not in said and "Fast Open made no measured page load faster" in said
    shown = render_table(tmp_path, 200)
    assert "interval " not in shown and "0.0..0.0" not in shown
    write_reports(tmp_path)
    html = (tmp_path / "report.html").read_text()
    assert "Nothing varies between seeds here" in html
    assert 'href="#statistics"' not in html
    (row,) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert {row[name] for name in row if "_ci_" in name} == {""}


def test_one_arm_that_varies_keeps_its_interval(tmp_path: Path) -> None:
    records = [*copies(OFF, 10), *loads(ON, times(2, 10))]
    table = table_of(tmp_path, records, (OFF, ON))
    off, on = table.cells
    assert off.sample is not None and on.sample is not None
    assert off.sample.median.interval is None
    assert on.sample.median.interval is not None
    shift = table.pairs[0].shift
    assert shift is not None and shift.ms.interval is not None
    said = " ".join(findings(table))
    assert "Nothing varies between seeds in 1 of 2 cells, so there is no interval: " in said
    assert "Each interval contains the true median with at least 95 %" in said
    assert [name for name in list_unsettled(sampling((OFF, ON)), records) if " off" in name] == []


def test_equal_load_times_of_unequal_loads_have_no_interval_either(tmp_path: Path) -> None:
    """A browser's requests may move without moving its load event."""
    table = table_of(tmp_path, loads(OFF, [2000.0] * 10), (OFF,))
    assert table.cells[0].sample is not None
    assert table.cells[0].sample.median.interval is None
    assert "Nothing varies" not in " ".join(findings(table))
    assert "2000.0  10/10" in render_table(tmp_path, 200)


def test_cells_without_arms_settle_by_their_medians() -> None:
    asked = tuple(Condition("amazon", "graph", LinkSpec(rtt)) for rtt in (20.0, 100.0))
    records = [*loads(asked[0], times(1, 10, 1.0)), *loads(asked[1], times(2, 10, 900.0))]
    (named,) = list_unsettled(sampling(asked), records)
    assert named.startswith("amazon, 100 ms (+-")


def test_too_few_proven_loads_do_not_settle_and_none_at_all_is_not_waited_for() -> None:
    off = loads(OFF, [2000.0] * 10)
    some = [broken(r, "timeout") if i > 4 else r for i, r in enumerate(loads(ON, [1500.0] * 10))]
    assert list_unsettled(sampling((OFF, ON)), [*off, *some]) == (
        "amazon, 100 ms, Fast Open on (too few loads)",
        "amazon, 100 ms, time saved (too few loads)",
    )
    none = [broken(r, "timeout") for r in some]
    assert list_unsettled(sampling((OFF, ON)), [*off, *none]) == ()
