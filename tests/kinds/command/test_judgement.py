"""Judgement of a command in the lab: its end, and a capture that is whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.kinds.command import judgement
from testbed.kinds.command.judgement import CommandObservation, judge
from testbed.kinds.command.measurement import Executed
from testbed.kinds.command.spec import LabCommand
from testbed.mechanisms.checks import CHECKS
from testbed.model import TcpSpec, Trial
from testbed.proof import evidence
from testbed.proof.line import check_line
from tests.proof.test_captures import exchange

TRIAL = Trial(LabCommand("p", "command", tcp=TcpSpec(tfo=True)), 0, 0, "virtual", "7.3")
SEEN = CommandObservation(
    executed=Executed(1, 5.0, 0, 0), counters={"client": {"TcpInSegs": 999}, "server": {}}
)


@pytest.fixture(autouse=True)
def any_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The captures of these tests are of no link."""
    monkeypatch.setattr(judgement, "CHECKS", [each for each in CHECKS if each is not check_line])


def capture(folder: Path, **missing: str) -> None:
    """Leave a capture of one exchange."""
    exchange(**missing).flows(folder)
    (written,) = folder.glob("*.pcap")
    written.rename(folder / "client.pcap")


def test_a_status_is_no_failure(tmp_path: Path) -> None:
    assert judge(TRIAL, SEEN, tmp_path).measured
    assert not judge(TRIAL, CommandObservation(), tmp_path).measured


def test_its_packets_are_not_judged_by_the_mechanism(tmp_path: Path) -> None:
    capture(tmp_path)
    proof = judge(TRIAL, SEEN, tmp_path).proof
    assert proof is not None and proof.proven
    assert (proof.connections, proof.syns_with_payload) == (1, 0)


def test_what_was_acknowledged_must_be_captured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture(tmp_path, without="answer 0")
    proof = judge(TRIAL, SEEN, tmp_path).proof
    assert proof is not None
    assert "1448 bytes of the server were acknowledged" in proof.problems[0]
    monkeypatch.setattr(evidence, "CAPTURED_MOST", 1)  # of a bounded one the rest is not there
    bounded = judge(TRIAL, SEEN, tmp_path).proof
    assert bounded is not None and bounded.proven


@pytest.mark.parametrize("name", ["command.out", "command.err"])
def test_what_it_printed_is_what_was_kept(tmp_path: Path, name: str) -> None:
    capture(tmp_path)
    (tmp_path / name).write_bytes(b"printed")
    proof = judge(TRIAL, SEEN, tmp_path).proof
    assert proof is not None
    assert f"the command wrote 0 bytes to {name}, kept are 7" in proof.problems


def test_no_command_takes_less_time_than_none(tmp_path: Path) -> None:
    capture(tmp_path)
    proof = judge(TRIAL, replace(SEEN, executed=Executed(1, -1.0, 0, 0)), tmp_path).proof
    assert proof is not None and "the command took -1 ms" in proof.problems


def test_frames_that_are_cut(tmp_path: Path) -> None:
    replace(exchange(), snap=120).write(tmp_path / "client.pcap")
    proof = judge(TRIAL, SEEN, tmp_path).proof
    assert proof is not None
    assert "3 frames were captured with less than 256 bytes" in proof.problems


def test_without_a_capture_there_is_no_proof(tmp_path: Path) -> None:
    assert judge(TRIAL, SEEN, tmp_path).proof is None
    capture(tmp_path)
    assert judge(TRIAL, CommandObservation(executed=SEEN.executed), tmp_path).proof is None
