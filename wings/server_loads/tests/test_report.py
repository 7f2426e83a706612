"""What a run of loads on a server leaves: the report, the table of a terminal, CSV, summary."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from analysis.records.cells import cells_of
from analysis.records.frame import trial_columns, trial_frame
from analysis.records.kind import find_metric, records_of
from analysis.records.results import judge, read_results
from analysis.report.document import write_reports
from analysis.report.terminal import render_table
from analysis.verdicts.compare.comparison import CompareOptions
from analysis.verdicts.compare.folders import compare_results
from testbed.base.errors import ConfigurationError
from testbed.model import Experiment, Record
from tests.analysis.sample import write_results
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.spec import ServerLoad
from wings.server_loads.tests.served import RATES, loads, served_record, write_served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_served(tmp_path / "run")
    write_reports(made)
    return made


def test_a_terminal_shows_throughput_response_times_and_failures(folder: Path) -> None:
    heading, _, first, *rest = render_table(folder, 120).splitlines()
    assert heading.split() == ["mechanism", "rate", "replies", "1/s", "response", "p50", "ms",
                               "mean", "ms", "p99", "ms", "failed", "%", "n", "proof"]  # fmt: skip
    assert first.split() == ["default", "600", "1/s", "600.0", "4.50", "5.00", "9.50", "0.0", "1/1",
                             "proven"]  # fmt: skip
    assert any(line.split()[:4] == ["default", "1400", "1/s", "900.0"] for line in rest)


def test_by_another_metric_the_others_follow(folder: Path) -> None:
    lines = render_table(folder, 120, metric=find_metric("response_p99_ms")).splitlines()
    assert "not throughput" in lines[0]
    assert lines[1].split()[2:6] == ["p99", "ms", "replies", "1/s"]


def test_a_page_load_s_metric_is_none_of_theirs(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="trials of the kind server_load are not measured"):
        render_table(folder, 120, metric=find_metric("fcp_ms"))


def test_the_table_as_csv(folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO((folder / "table.csv").read_text())))
    assert len(rows) == 2 * len(RATES)
    last = rows[-1]
    assert (last["mechanism"], last["rate_per_s"], last["replies_per_s"]) == (
        "abort", "1400", "1000",
    )  # fmt: skip
    assert float(last["failed_pct"]) == pytest.approx(28.5714)
    assert "plt_ms" not in last


def test_the_summary_has_every_count(folder: Path) -> None:
    cell = json.loads((folder / "summary.json").read_text())["cells"][0]
    assert cell["plt_ms"] is None
    assert cell["served"]["replies_per_s"]["median"] == 600.0
    assert cell["trials"][0]["served"]["answered"] == 6000


def test_the_report_draws_each_metric_and_speaks_of_no_page(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    for metric in records_of("server_load").metrics[:-1]:  # in virtual time no processor is busy
        assert f'<section id="{metric.name.replace("_", "-")}-lines">' in page
    assert "<svg" in page
    assert "In virtual time computing takes no time" in page
    for absent in ('id="waterfall"', 'id="replay"', "page load time", "Page load time"):
        assert absent not in page.replace("reproducible page-load testbed", "")


@pytest.mark.parametrize(("cool_down_s", "remedy"), [(0, "cool_down_s"), (10, "duration_s")])
def test_a_mean_that_has_not_settled_is_said(tmp_path: Path, cool_down_s: int, remedy: str) -> None:
    def moved(load: ServerLoad, *halves_ms: float) -> Record:
        arrivals = replace(load.arrivals, cool_down_s=cool_down_s)
        return served_record(replace(load, arrivals=arrivals), response_halves_ms=halves_ms)

    first, second, *_ = loads()
    records = [moved(first, 600.0, 1100.0), moved(second, 600.0, 610.0)]
    planned = tuple(record.trial.condition for record in records)
    plan = Experiment("overload", "A server under load", planned, kind="server_load")
    folder = write_results(tmp_path / "run", records, plan)
    said = " ".join(render_table(folder, 120).split())
    assert "Not settled: in 1 row the mean response moved by more than 20 %" in said
    assert f"(default, 600 1/s); set {'a longer ' * bool(cool_down_s)}{remedy}" in said
    frame = trial_frame(read_results(folder))
    assert dict(zip(frame["rate_per_s"], frame["settled"], strict=True)) == {600: 0, 800: 1}


def test_the_report_says_where_prices_are_from(folder: Path) -> None:
    assert "a price of 1 is about 20,000 connections a second" in _page(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["experiment"]["prices_from"] = "measured: on a <machine>, n = 8"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    write_reports(folder)
    assert "whose prices are measured: on a &lt;machine&gt;, n = 8" in _page(folder)
    assert "a price of 1" not in _page(folder)


def _page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_a_smaller_throughput_is_a_difference_and_a_larger_one_may_be_allowed(
    tmp_path: Path,
) -> None:
    base = write_served(tmp_path / "base")
    less, more = (
        write_served(tmp_path / name, replies_per_s=value)
        for name, value in (("less", 1.0), ("more", 9999.0))
    )
    options = CompareOptions(across=("all",), allow_faster=True)
    assert compare_results(base, base, options).verdict == "same"
    assert compare_results(base, less, options).verdict == "different"
    assert compare_results(base, more, options).verdict == "same"


def test_a_frame_has_a_row_for_each_trial(folder: Path) -> None:
    frame = trial_frame(read_results(folder))
    assert list(frame.columns) == list(trial_columns(records_of("server_load")))
    assert list(frame.loc[frame["mechanism"] == "abort", "replies_per_s"].sort_values()) == [
        600.0, 800.0, 1000.0, 1000.0, 1000.0,
    ]  # fmt: skip
    assert frame["server_cpu_pct"].isna().all()
    assert frame["timed_out"].max() == 5000


def test_seeds_make_intervals(tmp_path: Path) -> None:
    folder = write_served(tmp_path / "run", seeds=6)
    cell = cells_of(read_results(folder))[0]
    assert cell.varies and cell.sample is not None
    assert cell.sample.n == 6


def test_a_record_without_its_measurement_does_not_count() -> None:
    good = served_record(loads()[0])
    assert judge(good) == ("ok", None)
    assert judge(replace(good, measured=None)) == (
        "failed", "the record is ok but holds no counts of connections",
    )  # fmt: skip


def test_metrics_of_a_load_on_a_server_are_fields_of_it() -> None:
    served = records_of("server_load").metrics
    assert {metric.name for metric in served} <= {each.name for each in fields(ServedLoad)}
