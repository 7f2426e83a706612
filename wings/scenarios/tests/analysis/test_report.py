"""What a run of scenarios leaves: report, terminal, CSV, summary, frame, and a page of kernels."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from analysis.records.cells import cells_of
from analysis.records.frame import trial_columns, trial_frame
from analysis.records.kind import records_of
from analysis.records.results import read_results
from analysis.report.document import write_reports
from analysis.report.terminal import render_table
from analysis.tables.rows import table_rows
from analysis.tables.table import make_table
from wings.scenarios.analysis.page import render_promises_page
from wings.scenarios.analysis.promises import read_promises
from wings.scenarios.analysis.tables import COLUMNS
from wings.scenarios.tests.promised import write_promises


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_promises(tmp_path / "run")
    write_reports(made)
    return made


def test_the_report_has_each_promise_its_ladder_its_script_and_its_verdict(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    for name in ("kept", "broken", "changed", "lacking", "stuck"):
        assert f'<section class="promise" id="{name}">' in page
    assert page.count('aria-label="A promise &amp; a &lt;title&gt;. Ladder diagram of 3') == 3
    assert "A promise &amp; a &lt;title&gt;" in page and "<title>.</" not in page
    assert "What is learnt." in page
    assert "sendto a server" in page
    assert "middlebox strip fastopen client &gt; server" in page
    assert "since Linux 4.1: It does something else." in page
    for verdict in ("✓ kept", "✗ broken", "△ changed", "○ unsupported", "✗ timeout"):
        assert verdict in page


def test_the_report_speaks_of_no_load(folder: Path) -> None:
    page = (folder / "report.html").read_text().replace("reproducible page-load testbed", "")
    shown = re.sub(r"<(style|script)[^>]*>.*?</\1>", "", page, flags=re.DOTALL)
    for absent in ('id="waterfall"', 'id="replay"', 'id="link"', "page load", "Waterfall"):
        assert absent not in shown
    assert not re.search(r"\bloads?\b", re.sub(r"load_|is loaded by", "", shown))
    assert (
        "3 of 5 scenarios are recorded as verified by packet capture; the other 2 give no verdict"
        in shown
    )


def test_a_missing_capture_leaves_the_rest_of_the_report(folder: Path) -> None:
    (next(iter(sorted((folder / "trials").iterdir()))) / "server.pcap").unlink()
    write_reports(folder)
    page = (folder / "report.html").read_text()
    assert "No ladder: " in page and "holds no server.pcap" in page


def test_a_terminal_shows_the_table_of_promises(folder: Path) -> None:
    text = render_table(folder, 100)
    assert text.splitlines()[0].split() == ["scenario", "promise", "source", "virtual", "7.3"]
    assert "broken: broken: line 3: it has no data" in text
    assert text.splitlines()[-1].startswith("Kernel: virtual 7.3; environment ")


def test_the_table_as_csv(folder: Path) -> None:
    found = {
        row["scenario"]: row
        for row in csv.DictReader(io.StringIO((folder / "table.csv").read_text()))
    }
    assert [found[name]["verdict"] for name in ("kept", "broken", "changed", "stuck")] == [
        "kept", "broken", "changed", "",
    ]  # fmt: skip
    assert [found[name]["failed_checks"] for name in ("kept", "broken", "changed")] == [
        "0", "2", "0",
    ]  # fmt: skip
    assert found["broken"]["first_difference"].startswith("line 3: it has no data")
    assert "plt_ms" not in found["kept"]


def test_every_column_is_described(folder: Path) -> None:
    table = make_table(cells_of(read_results(folder)), None)
    assert list(table_rows(table)[0]) == ["scenario", *COLUMNS]


def test_the_summary_has_verdicts_and_no_moment(folder: Path) -> None:
    text = (folder / "summary.json").read_text()
    cells = {cell["condition"]["scenario"]: cell for cell in json.loads(text)["cells"]}
    assert cells["broken"]["verdict"] == "broken"
    assert cells["stuck"]["verdict"] is None
    assert cells["broken"]["trials"][0]["scenario"]["failed_checks"] == 2
    assert "scenario" not in cells["stuck"]["trials"][0]
    assert "1700000000" not in text


def test_the_frame_has_a_row_for_each(folder: Path) -> None:
    frame = trial_frame(read_results(folder))
    assert tuple(frame.columns) == trial_columns(records_of("scenario"))
    found = {row["scenario"]: row for row in frame.to_dict("records")}
    broken = [found["broken"][name] for name in ("verdict", "failed_checks", "packets", "lost")]
    assert broken == ["broken", 2, 3, 0]
    assert pd.isna(found["stuck"]["verdict"]) and pd.isna(found["stuck"]["packets"])


def test_the_page_of_several_kernels(tmp_path: Path, folder: Path) -> None:
    older = write_promises(tmp_path / "older", "6.1")
    page = render_promises_page(read_promises([folder, older]))
    assert "Kernel virtual 6.1, environment" in page
    assert page.count("✗ broken") == 4  # in the table and with the promise, of both
    assert page.count("<svg") == 3  # where both came to the same, that of the first
    assert "<script" not in page and "http:" not in re.sub(r'xmlns="[^"]*"', "", page)
