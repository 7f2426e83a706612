"""Comparison of scenarios: what became of promises, and their captures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.results import read_results
from analysis.verdicts.baseline import draft_baseline
from analysis.verdicts.compare.comparison import CompareOptions, Comparison
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import render_text
from testbed.base.errors import ConfigurationError
from testbed.capture.packets import ACK, SYN
from testbed.model import Experiment, Record
from tests.analysis.sample import write_records, write_results
from wings.scenarios.spec import Scenario
from wings.scenarios.tests.promised import HANDSHAKE, Sent, scenario_record, write_promises

ALL = CompareOptions(across=("all",))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_promises(tmp_path / "base")


def changed(folder: Path, change: Callable[[Record], Record], version: str = "7.3") -> Path:
    made = write_promises(folder, version)
    write_records(made, [change(record) for record in read_results(made).records])
    return made


def finding(comparison: Comparison, name: str) -> tuple[str, str]:
    cell = next(cell for cell in comparison.cells if cell.axes["scenario"] == name)
    return cell.verdict, cell.reason


def test_equal_runs_are_the_same_to_the_bit(tmp_path: Path, base: Path) -> None:
    compared = compare_results(base, write_promises(tmp_path / "new"))
    for name in ("kept", "broken", "changed"):
        assert finding(compared, name) == (
            "same", f"{name} in both, and the captures are the same to the bit",
        )  # fmt: skip


@pytest.mark.parametrize(("before", "verdict"), [("kept", "broken"), ("kept", "changed")])
def test_a_verdict_that_changed_is_found(
    tmp_path: Path, base: Path, before: str, verdict: str
) -> None:
    new = tmp_path / "new"

    def change(record: Record) -> Record:
        if record.trial.condition_as(Scenario).scenario != before:
            return record
        return scenario_record(new, before, verdict, "line 3: lost")  # type: ignore[arg-type]

    compared = compare_results(base, changed(new, change))
    word, reason = finding(compared, before)
    assert word == "different"
    assert reason == f"the promise was kept in BASE and is {verdict} in NEW: line 3: lost"
    assert compared.exit_code == 1


def other_packets(folder: Path, version: str = "7.3") -> Callable[[Record], Record]:
    sent = (HANDSHAKE[0], Sent("server", 60, SYN | ACK, seq=900, ack=106), HANDSHAKE[2])

    def change(record: Record) -> Record:
        if record.trial.condition_as(Scenario).scenario != "kept":
            return record
        return scenario_record(folder, "kept", sent=sent, version=version)

    return change


def test_other_packets_in_an_equal_environment_are_a_broken_determinism(
    tmp_path: Path, base: Path
) -> None:
    new = tmp_path / "new"
    compared = compare_results(base, changed(new, other_packets(new)))
    word, reason = finding(compared, "kept")
    assert word == "different"
    assert reason == (
        "the same environment gave other packets: determinism is broken: "
        "client.pcap, server.pcap differ"
    )
    cell = next(cell for cell in compared.cells if cell.axes["scenario"] == "kept")
    assert cell.packets is not None


def test_other_packets_of_another_kernel_are_named_and_no_difference(
    tmp_path: Path, base: Path
) -> None:
    new = tmp_path / "new"
    compared = compare_results(base, changed(new, other_packets(new, "6.1"), "6.1"), ALL)
    assert finding(compared, "kept") == (
        "same", "kept in both, by other packets: client.pcap, server.pcap differ",
    )  # fmt: skip
    assert "Scenarios: same is what became of the same promise." in render_text(compared, 200)


def test_the_first_packet_is_of_the_capture_that_differs(tmp_path: Path, base: Path) -> None:
    def change(record: Record) -> Record:
        if record.trial.condition_as(Scenario).scenario != "kept":
            return record
        return replace(record, artefacts={**record.artefacts, "server.pcap": "0" * 64})

    compared = compare_results(base, changed(tmp_path / "new", change))
    cell = next(cell for cell in compared.cells if cell.axes["scenario"] == "kept")
    assert cell.packets_note is not None
    assert cell.packets_note.endswith("server.pcap is not the file that its record names")


def test_a_scenario_that_ended_without_a_verdict_is_none(tmp_path: Path, base: Path) -> None:
    compared = compare_results(base, write_promises(tmp_path / "new"))
    assert finding(compared, "stuck")[0] == "inconclusive"


def test_captures_of_scenarios_are_kept(tmp_path: Path) -> None:
    one = scenario_record(tmp_path, "kept")
    asked = Experiment("scenarios", "Promises", (one.trial.condition,), kind="scenario")
    folder = write_results(tmp_path, [one], asked)
    draft = draft_baseline(folder, tmp_path / "baseline")
    assert sorted(draft.captures) == [
        f"trials/{one.trial_id}/{host}.pcap" for host in ("attacker", "client", "server")
    ]
    (tmp_path / "trials" / one.trial_id / "server.pcap").unlink()
    with pytest.raises(ConfigurationError, match=r"holds no server\.pcap"):
        draft_baseline(folder, tmp_path / "baseline")
