"""Results as the frames and tables that notebooks end their cells with."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.results import Results, gather_results, read_results
from analysis.report.publications import Grid, Rebuilt, StatedCheck
from testbed.base.errors import ConfigurationError
from tests.analysis.sample import conditions, record, with_milestones
from wings.papers.notebooks import show
from wings.scenarios.tests.promised import write_promises


@pytest.fixture(scope="module")
def results(sample: Path) -> Results:
    return read_results(sample)


def without_reference(results: Results) -> Results:
    experiment = {**results.manifest["experiment"], "reference": None}
    return replace(results, manifest={**results.manifest, "experiment": experiment})


def test_savings_stand_beside_the_published_ones(results: Results) -> None:
    savings = show.savings(results)
    assert len(savings) == 12
    row = savings.query("page == 'amazon' and rtt_ms == 100").iloc[0]
    assert row["improvement_pct"] == pytest.approx(
        (row["plt_off_s"] - row["plt_on_s"]) / row["plt_off_s"] * 100, rel=0.05
    )
    assert (row["paper_plt_off_s"], row["paper_plt_on_s"]) == (2.60, 2.34)
    assert row["paper_improvement_pct"] == 10
    assert row["n"] <= 5


def test_gains_are_of_each_metric_that_is_asked_for() -> None:
    off, on = conditions(["amazon"], [100.0])
    trials = [with_milestones(record(off, 0, 2000.0), fcp_ms=500.0),
              with_milestones(record(on, 0, 1500.0), fcp_ms=400.0)]  # fmt: skip
    results = gather_results(Path("x"), trials, {"experiment": {"name": "paper-table1"}})
    (row,) = show.gains(results, "plt_ms", "fcp_ms").to_dict("records")
    assert row == {"page": "amazon", "rtt_ms": 100.0, "plt_off_ms": 2000.0, "plt_on_ms": 1500.0,
                   "plt_improvement_pct": 25.0, "fcp_off_ms": 500.0, "fcp_on_ms": 400.0,
                   "fcp_improvement_pct": 20.0}  # fmt: skip


def test_gains_by_what_no_load_has_are_refused(results: Results) -> None:
    assert list(show.gains(results, "plt_ms")["plt_off_ms"])
    with pytest.raises(ConfigurationError, match="chromium gives no first contentful paint"):
        show.gains(results, "fcp_ms")
    with pytest.raises(ConfigurationError, match="did you mean 'fcp_ms'"):
        show.gains(results, "fcp")


def test_what_was_not_published_is_nan(results: Results) -> None:
    savings = show.savings(without_reference(results))
    assert all(math.isnan(value) for value in savings["paper_improvement_pct"])
    assert not savings["improvement_pct"].isna().all()


def test_proofs_say_where_data_rode_in_syns(results: Results) -> None:
    sums = show.proofs(results).query("outcome == 'ok'").groupby("tfo")["syns_with_payload"].sum()
    assert sums[False] == 0
    assert sums[True] > 0


def test_calibration_holds_theory_and_measured_of_each_link() -> None:
    trials = [record(one) for one in conditions(pages=("amazon",))]
    results = gather_results(Path("x"), trials, {"experiment": {"name": "paper-table1"}})
    frame = show.calibration(results)
    row = frame.query("rtt_ms == 20 and property == 'rtt'").iloc[0]
    assert (row["theory"], row["measured"]) == pytest.approx((21.0035, 21.0037))
    assert row["unit"] == "ms"
    assert len(frame) == 3 * 4


def test_a_figure_is_found_by_its_name_and_others_are_listed(results: Results) -> None:
    found = show.rebuilt(results)
    assert show.figure(found, "table1-improvement") is found.figures[0].chart
    with pytest.raises(ConfigurationError, match=r"no figure 'other'.*table1-improvement"):
        show.figure(found, "other")


def test_without_a_publication_there_is_nothing_to_rebuild(results: Results) -> None:
    with pytest.raises(ConfigurationError, match="rebuilds no publication"):
        show.rebuilt(without_reference(results))
    with pytest.raises(ConfigurationError, match="refers to no publication"):
        show.differences(without_reference(results))


def test_differences_are_those_of_the_reference(results: Results) -> None:
    html = show.differences(results).to_html()
    assert "The pages are those of 2013" in html
    assert "CoNEXT 2011" in html


def test_a_grid_shows_its_values_and_a_dash_for_none() -> None:
    html = show.grid(Grid("<Title>", ("Page", "PLT (s)"), (("a<b", 1.25), ("c", None)))).to_html()
    assert ">a&lt;b<" in html
    assert ">1.25<" in html
    assert ">\u2013<" in html


def test_checks_say_what_was_stated_and_what_we_have() -> None:
    check = StatedCheck("Table 1", "improvement", "10 %", "8 %", "differs", "Because.")
    html = show.checks(Rebuilt("Title", checks=(check,))).to_html()
    assert all(f">{text}<" in html for text in ("Table 1", "10 %", "8 %", "differs", "Because."))


def test_results_of_another_kernel_stand_beside_those_of_one() -> None:
    name = "overload-establishment"
    one = read_results(show.SAMPLES / name)
    alone = show.side_by_side(one)
    assert [len(alone.figures), len(alone.tables)] == [3, 1]
    both = show.side_by_side(one, show.SAMPLES / name)
    assert len(both.checks) == 2 * len(alone.checks)
    assert "Lane" in show.checks(both).to_html()
    with pytest.raises(ConfigurationError, match="several experiments"):
        show.side_by_side(one, show.SAMPLES / "overload-termination")


def test_a_scenario_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    results = read_results(write_promises(tmp_path))
    with pytest.raises(ConfigurationError, match=r"no scenario 'other' in .*; it holds: .*kept"):
        show.scenario(results, "other")


def test_a_scenario_s_script_and_packets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = read_results(write_promises(tmp_path))
    show.script(results, "kept")
    assert capsys.readouterr().out.splitlines()[0] == "server listen s fastopen=16"
    packets = show.packets(results, "kept")
    assert packets["label"].tolist() == ["SYN, cookie 0123…, data 5", "SYN-ACK 6", "ACK 1"]
    assert packets["arrived_ms"].tolist() == [50.0, 100.0, 150.0]


def test_the_table_of_promises_says_why_one_is_not_kept(tmp_path: Path) -> None:
    shown = show.promises(read_results(write_promises(tmp_path))).to_html()
    assert "A promise &amp; a &lt;title&gt;" in shown
    assert "since Linux 4.1: It does something else." in shown
    assert all(f">{word}</td>" in shown for word in ("kept", "broken", "changed", "timeout"))
