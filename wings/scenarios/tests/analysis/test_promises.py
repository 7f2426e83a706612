"""The table of promises, and its texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.results import read_results
from testbed.base.errors import ConfigurationError
from testbed.experiment.lanes import write_lanes
from testbed.results.folder import read_records
from tests.analysis.sample import write_records, write_sample
from wings.scenarios.analysis.promises import key_of, make_promises, read_promises
from wings.scenarios.analysis.terminal import render_markdown, render_promises
from wings.scenarios.spec import Scenario
from wings.scenarios.tests.promised import scenario_record, write_promises


@pytest.fixture
def lanes(tmp_path: Path) -> Path:
    """A run on two kernels; on the older one nothing else came of it, but for one promise."""
    write_promises(tmp_path / "7.3", "7.3")
    older = write_promises(tmp_path / "6.1", "6.1")
    records = read_results(older).records
    other = scenario_record(older, "kept", "broken", "line 3: lost", version="6.1")
    write_records(older, [other if r.trial_id == other.trial_id else r for r in records])
    write_lanes(tmp_path, ["7.3", "6.1"])
    return tmp_path


def test_every_promise_is_a_row_with_what_each_kernel_made_of_it(lanes: Path) -> None:
    table = read_promises([lanes])
    assert [lane.name for lane in table.lanes] == ["virtual 7.3", "virtual 6.1"]
    assert [(row.name, *(one.state for one in row.findings)) for row in table.rows] == [
        ("kept", "kept", "broken"), ("broken", "broken", "broken"),
        ("changed", "changed", "changed"), ("lacking", "unsupported", "unsupported"),
        ("stuck", "timeout", "timeout"),
    ]  # fmt: skip
    assert table.counts[1] == {"broken": 2, "timeout": 1, "unsupported": 1, "changed": 1}
    assert table.title == "What is promised"


def test_several_folders_are_lanes_as_well(lanes: Path) -> None:
    assert read_promises([lanes / "7.3", lanes / "6.1"]).counts == read_promises([lanes]).counts


def test_broken_counts_most_and_no_answer_is_incomplete(tmp_path: Path) -> None:
    folder = write_promises(tmp_path)
    results = read_results(folder)

    def code(*names: str) -> int:
        own = [r for r in results.records if r.trial.condition_as(Scenario).scenario in names]
        conditions = [
            c for c in results.manifest["experiment"]["conditions"] if c["scenario"] in names
        ]
        manifest = {"experiment": {**results.manifest["experiment"], "conditions": conditions}}
        return make_promises([replace(results, records=tuple(own), manifest=manifest)]).exit_code

    assert code("kept", "changed", "lacking") == 0
    assert code("kept", "broken", "stuck") == 1
    assert code("kept", "stuck") == 4


def test_what_was_planned_and_not_run_has_no_answer(tmp_path: Path) -> None:
    folder = write_promises(tmp_path)
    write_records(folder, [])
    table = read_promises([folder])
    assert {row.findings[0].state for row in table.rows} == {"not run"}
    assert table.exit_code == 4


def test_without_its_proof_a_verdict_is_none(tmp_path: Path) -> None:
    folder = write_promises(tmp_path)
    problem = "the server's TcpOutSegs grew by 1, captured: 2"
    one = scenario_record(folder, "kept", outcome="unproven", reason=problem)
    write_records(folder, [one])
    found = read_promises([folder]).rows[0].findings[0]
    assert (found.state, found.evidence) == ("unproven", (problem,))


def test_other_kinds_of_trial_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no scenarios, but trials of the kind page"):
        read_promises([write_sample(tmp_path / "loads")])


def test_a_terminal_shows_verdicts_and_why_they_are_not_kept(lanes: Path) -> None:
    text = render_promises(read_promises([lanes]), 120)
    heading, _, first, *_ = text.splitlines()
    assert heading.split() == ["scenario", "promise", "source", "virtual", "7.3", "virtual",
                               "6.1"]  # fmt: skip
    assert first.split("  ")[0] == "kept" and first.split()[-2:] == ["kept", "broken"]
    assert "kept on virtual 6.1: broken: line 3: lost" in text
    assert "broken on virtual 7.3 and virtual 6.1: broken: line 3: it has no data" in text
    assert "since Linux 4.1: It does something else." in text
    assert "lacking on virtual 7.3 and virtual 6.1: unsupported: no MD5 here" in text
    assert "Kernel virtual 7.3: of 5 promises 1 kept, 1 changed, 1 unsupported, 1 timeout" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_where_room_is_short_sources_go_first(tmp_path: Path) -> None:
    table = read_promises([write_promises(tmp_path)])
    narrow = render_promises(table, 50).splitlines()
    assert "source" not in narrow[0] and "virtual 7.3" in narrow[0]


def test_markdown_holds_no_markup_of_a_title(lanes: Path) -> None:
    text = render_markdown(read_promises([lanes]))
    assert "| Scenario | Promise | Source | virtual 7.3 | virtual 6.1 |" in text
    row = "| `kept` | A promise &amp; a &lt;title&gt; | RFC 7413, section 3 | kept | **broken** |"
    assert row in text
    assert "| *changed* | *changed* |" in text
    assert "- changed on virtual 7.3 and virtual 6.1: changed: since Linux 4.1:" in text


def warn(folder: Path, function: str) -> None:
    """Have the kernel warn in the trial of the scenario that is kept."""
    (record,) = (record for record in read_records(folder) if key_of(record)[0] == "kept")
    trial = folder / "trials" / record.trial_id
    trial.mkdir(parents=True, exist_ok=True)
    said = f"[    1.000000] WARNING: net/ipv4/tcp.c:7 at {function}+0x1/0x2, CPU#0: a/1\n"
    (trial / "console.log").write_text(said)


def test_a_kernel_that_warns_breaks_the_promise_unless_the_first_warns_alike(
    tmp_path: Path,
) -> None:
    first, second = (write_promises(tmp_path / version, version) for version in ("7.3", "6.1"))

    def states() -> list[str]:
        return [finding.state for finding in read_promises([first, second]).rows[0].findings]

    assert states() == ["kept", "kept"]
    warn(second, "tcp_x")
    assert states() == ["kept", "broken"]
    row = read_promises([first, second]).rows[0]
    assert row.says(row.findings[1]).startswith("the kernel says: WARNING: net/ipv4/tcp.c:7 at")
    warn(first, "tcp_y")
    assert states() == ["broken", "broken"]
    warn(first, "tcp_x")
    assert states() == ["broken", "kept"]
