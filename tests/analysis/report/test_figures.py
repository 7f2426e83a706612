"""Figures of a report as files: what the page draws, each as SVG and as PDF of one page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.records.results import Results, read_results
from analysis.report.document import write_reports
from analysis.report.figures import write_figures
from testbed.base.errors import MissingError, StorageError
from tests.analysis.sample import conditions, experiment, record, write_results


def results_of(folder: Path) -> Results:
    asked = conditions(["amazon"], [20.0, 100.0])
    records = [record(one, seed) for one in asked for seed in range(2)]
    return read_results(write_results(folder, records, experiment(2, conditions=asked)))


@pytest.mark.browser
def test_each_figure_of_the_page_is_a_drawing_and_a_print_of_its_size(tmp_path: Path) -> None:
    results, figures = results_of(tmp_path / "run"), tmp_path / "new" / "figures"
    names = write_figures(results, figures)
    write_reports(results.folder)
    page = (results.folder / "report.html").read_text()
    assert len(names) == len(set(names)) == page.count('<div class="plot"')
    assert {path.name for path in figures.iterdir()} == {
        f"{name}.{kind}" for name in names for kind in ("svg", "pdf")
    }
    for name in names:
        svg, pdf = (figures / f"{name}.{kind}" for kind in ("svg", "pdf"))
        size_px = re.findall(r' (?:width|height)="([0-9.]+)"', svg.read_text())[:2]
        (size_pt,) = re.findall(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", pdf.read_bytes())
        # One page, of which 72 points are the 96 px of the drawing.
        assert [float(pt) / 72.0 for pt in size_pt] == pytest.approx(
            [float(px) / 96.0 for px in size_px], abs=0.02
        )


def test_without_a_chromium_the_drawings_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = results_of(tmp_path / "run")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match=r"no Chromium to print .*\.pdf with: install"):
        write_figures(results, tmp_path / "figures")
    kinds = {path.suffix for path in (tmp_path / "figures").iterdir()}
    assert kinds == {".svg"}


def test_a_place_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "figures").write_text("")
    with pytest.raises(StorageError, match="cannot make"):
        write_figures(results_of(tmp_path / "run"), tmp_path / "figures")
