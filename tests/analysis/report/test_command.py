"""What a run of commands in the lab leaves: the report, the table of a terminal, CSV, frames."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.frame import trial_columns, trial_frame
from analysis.records.kind import records_of
from analysis.records.results import judge, read_results
from analysis.report.document import write_reports
from analysis.report.terminal import render_table
from testbed.kinds.command.measurement import Executed
from testbed.kinds.command.spec import LabCommand
from testbed.model import Experiment, LabReading, LinkSpec, Measurement, Proof, Record, Trial
from tests.analysis.sample import ENVIRONMENT, write_results

COMMANDS = tuple(
    LabCommand("wikipedia", "command", LinkSpec(rtt_ms=rtt_ms), command="curl <{url}>")
    for rtt_ms in (20.0, 100.0)
)


def executed_record(spec: LabCommand, exit_status: int = 0) -> Record:
    """A proven record of ``spec``."""
    trial = Trial(spec, 0, 0, "virtual", "7.3")
    return Record(trial_id=trial.id, trial=trial, outcome="ok", environment=ENVIRONMENT.id,
                  lab=LabReading((Measurement("rtt", "ms", 2.001, 2.0, 0.1),), {}),
                  measured=Executed(exit_status, 5 * spec.link.rtt_ms, 10, 0),
                  proof=Proof(1, 1, 0, 0, 0, 0, 0, {}, {}),
                  artefacts={"client.pcap": "0" * 64, "command.out": "1" * 64})  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    asked = Experiment("fetches", "Fetches in the lab", COMMANDS, kind="command")
    records = [executed_record(spec, status) for spec, status in zip(COMMANDS, (0, 7), strict=True)]
    made = write_results(tmp_path / "run", records, asked)
    write_reports(made)
    return made


def test_a_terminal_shows_duration_and_status(folder: Path) -> None:
    heading, _, first, second, *_ = render_table(folder, 120).splitlines()
    assert heading.split()[:4] == ["command", "RTT", "duration", "ms"]
    assert first.split() == ["curl", "<{url}>", "20", "ms", "100.0", "0", "1/1", "proven"]
    assert second.split()[4:6] == ["500.0", "7"]


def test_the_table_as_csv(folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO((folder / "table.csv").read_text())))
    assert [(row["command"], row["exit_status"], row["status"]) for row in rows] == [
        ("curl <{url}>", "0", "proven"), ("curl <{url}>", "7", "proven"),
    ]  # fmt: skip


def test_the_summary_has_what_became_of_each(folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    trials = [trial for cell in summary["cells"] for trial in cell["trials"]]
    assert [trial["executed"]["exit_status"] for trial in trials] == [0, 7]


def test_the_report_says_what_it_is_and_shows_text_as_text(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert "What does a command do over this link?" in page
    assert "curl &lt;{url}&gt;" in page
    assert "curl <{url}>" not in page


def test_a_frame_has_a_row_for_each(folder: Path) -> None:
    frame = trial_frame(read_results(folder))
    assert tuple(frame.columns) == trial_columns(records_of("command"))
    assert sorted(frame["duration_ms"]) == [100.0, 500.0]


def test_a_record_without_its_end_is_not_ok() -> None:
    record = replace(executed_record(COMMANDS[0]), measured=None)
    assert judge(record) == ("failed", "the record is ok but holds no end of its command")
