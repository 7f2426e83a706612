"""Where a notebook's results come from, and in which forms its charts are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from analysis import plot
from analysis.plot.chart import MIME
from testbed.base.errors import ConfigurationError
from testbed.experiment.lanes import write_lanes
from testbed.results.manifest import MANIFEST_FILE
from wings.papers.notebooks import show
from wings.papers.notebooks.show import VARIABLE, open_results


@pytest.fixture(autouse=True)
def nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def samples(sample: Path, tmp_path: Path) -> Path:
    """A folder of samples with one, of Table 1."""
    folder = tmp_path / "samples"
    folder.mkdir()
    (folder / "paper-table1").symlink_to(sample)
    return folder


@pytest.fixture
def another(sample: Path, tmp_path: Path) -> Path:
    """The results of another experiment."""
    folder = tmp_path / "another"
    folder.mkdir()
    manifest = json.loads((sample / MANIFEST_FILE).read_text())
    manifest["experiment"]["name"] = "quick"
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest))
    (folder / "records.jsonl").write_text("")
    return folder


def test_the_newest_results_come_before_the_sample(
    sample: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = open_results("paper-table1", sample, [samples])
    assert results.folder == sample
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"paper-table1: {sample} (results/latest)"
    assert said[1].startswith("virtual kernel 7.3, client chromium HeadlessChrome/")
    assert said[2] == "116 of 120 loads proven in 24 cells, n = 4 to 5 in each"


def test_the_sample_serves_where_the_newest_results_are_of_something_else(
    another: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert open_results("paper-table1", another, [samples]).folder == samples / "paper-table1"
    assert "(the repository's own; results/latest holds quick)" in capsys.readouterr().out


def test_the_sample_serves_where_nothing_was_run(
    tmp_path: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_results("paper-table1", tmp_path / "none", [samples])
    assert "results/latest holds nothing" in capsys.readouterr().out


def test_results_of_several_kernels_are_never_taken_for_one(
    tmp_path: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lanes(tmp_path, ["6.1", "7.3"])
    open_results("paper-table1", tmp_path, [samples])
    assert "results/latest holds several kernels' results" in capsys.readouterr().out


def test_a_named_folder_comes_first(
    sample: Path, another: Path, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(sample))
    assert open_results("paper-table1", another, [samples]).folder == sample


def test_a_named_folder_may_hold_a_folder_of_each_experiment(
    another: Path, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(samples))
    found = open_results("paper-table1", another, [another])
    assert found.folder == samples / "paper-table1"


def test_where_a_named_folder_is_of_something_else_the_committed_ones_serve(
    another: Path,
    samples: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for named, holding in ((another, "quick"), (another.parent, "another")):
        monkeypatch.setenv(VARIABLE, str(named))
        found = open_results("paper-table1", samples / "paper-table1", [samples])
        assert found.folder == samples / "paper-table1"
        said = capsys.readouterr().out
        assert f"(the repository's own; {VARIABLE} names {named}, which holds {holding})" in said


def test_a_named_folder_without_any_results_is_refused(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "misspelt"))
    with pytest.raises(ConfigurationError, match=r"misspelt, which holds no results: name a"):
        open_results("paper-table1", samples / "paper-table1", [samples])


def test_baselines_come_before_samples(sample: Path, another: Path, tmp_path: Path) -> None:
    baselines = tmp_path / "baselines"
    (baselines / "paper-table1").mkdir(parents=True)
    for file in sample.iterdir():
        (baselines / "paper-table1" / file.name).symlink_to(file)
    committed = (baselines, tmp_path / "samples")
    assert open_results("paper-table1", another, committed).folder.parent == baselines
    assert show.COMMITTED == (show.BASELINES, show.SAMPLES)


def test_an_experiment_without_results_and_sample_is_refused_with_the_way_to_make_some(
    another: Path, samples: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"committed are paper-table1; \./run\.sh run"):
        open_results("tum-website", another, [samples])


def test_a_chart_is_shown_without_a_network_and_for_pages_that_draw_nothing() -> None:
    chart = plot.lines(
        pd.DataFrame({"rtt_ms": [20, 100], "plt_ms": [3.0, 4.0]}), "rtt_ms", "plt_ms"
    )
    shown = chart._repr_mimebundle_()
    assert set(shown) == {MIME, "image/svg+xml", "text/plain"}
    # The version that the MIME type names is the one that the chart says.
    assert shown[MIME]["$schema"].endswith("/vega-lite/v5.json")
    assert shown["image/svg+xml"].startswith("<svg")
    assert shown["text/plain"] == "Page load time (ms) over RTT (ms); 2 points"
