"""From what a guest left behind to a record: every outcome, and observations that make no sense."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from testbed.kernel.run.interface import RawResult, Status
from testbed.kinds.page_load import judgement
from testbed.lab.calibration import expect
from testbed.lab.exactness import VIRTUAL
from testbed.mechanisms.checks import CHECKS
from testbed.mechanisms.queue.proof import check_queueing
from testbed.model import (
    Condition,
    Cost,
    LabReading,
    Measurement,
    PageLoad,
    Record,
    Replay,
    RequestTiming,
    Substitution,
    TcpSpec,
    Trial,
)
from testbed.proof.draws import check_start
from testbed.proof.line import check_line
from testbed.proof.load_time import check_load_time
from testbed.runner.judge import conclude
from testbed.runner.performed import expected_knobs
from tests.capture.packets import ACK, CLIENT, REQUEST, SERVER, Capture, Visit, write_frames
from tests.measured import load_of

COST = Cost(cpu_s=0.5, wall_s=0.75, virtual_s=31.0)
CONDITION = Condition("p", "graph", tcp=TcpSpec(tfo=True), dns="hosts")
TRIAL = Trial(CONDITION, 0, 7, "virtual", "7.3")


def knobs_of(trial: Trial) -> dict[str, str]:
    """What a lab reads back that is as ``trial`` asks."""
    return {
        **{name: value or "1" for name, value in expected_knobs(trial.linked)},
        **{f"{way}.loss_pct": "0" for way in ("down", "up")},
        **{f"{way}.calibration": "93 delivered, 12 dropped" for way in ("down", "up")},
    }


LAB = LabReading(expect(CONDITION.link, VIRTUAL), knobs_of(TRIAL), traffic={"down.delivered": 1})
REQUESTS = 2 * (RequestTiming("http://a/", 200, 0.0, 100.25, 300, "1"),)
LOAD = PageLoad("graph", "1", 123.456, REQUESTS)
REPLAY = Replay(1, (Substitution("GET http://a/x?1", "GET http://a/x?2"),), ("GET http://a/y",),
                most_per_connection=3, protocols={"http://a HTTP/1.1": 3})  # fmt: skip
COUNTERS = {
    "client": {"TcpActiveOpens": 1, "TcpExtTCPFastOpenActive": 1},
    "server": {"TcpExtTCPFastOpenPassive": 1},
}


def good() -> dict[str, Any]:
    """The observation of a trial that went well."""
    return {"lab": asdict(LAB), "load": asdict(LOAD), "replay": asdict(REPLAY),
            "counters": COUNTERS, "problems": [], "virtual_s": 31.0, "call_ns": 0}  # fmt: skip


@pytest.fixture(autouse=True)
def any_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The captures of these tests are of no link and no load."""
    without = (check_line, check_queueing, check_load_time, check_start)
    monkeypatch.setattr(judgement, "CHECKS", [each for each in CHECKS if each not in without])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder of a trial whose capture proves Fast Open."""
    capture = Capture()
    Visit(capture, 2000).open(REQUEST)
    capture.write(tmp_path / "client.pcap")
    write_frames(tmp_path / "server.pcap", ())
    return tmp_path


def judge(out: Path, observation: object, trial: Trial = TRIAL) -> Record:
    """The record of a guest that ended by itself and left ``observation``."""
    (out / "load.har").write_text('{"log": {"pages": [{}], "entries": []}}')
    path = out / "observation.json"
    if isinstance(observation, dict):
        plain = json.loads(json.dumps(asdict(trial)))
        observation = {"trial": plain, "archive": {"name": "p", "digest": "d"}} | observation
        if observation.get("lab") == asdict(LAB):
            observation["lab"] = asdict(replace(LAB, knobs=knobs_of(trial)))
    path.write_text(observation if isinstance(observation, str) else json.dumps(observation))
    return conclude(trial, RawResult("ended", "", "", COST, path), out, "env", 2)


def test_ok(out: Path) -> None:
    (out / "load.har").write_text('{"log": {"pages": [{}], "entries": []}}')
    record = judge(out, good())
    assert (record.outcome, record.reason) == ("ok", None)
    assert (record.trial_id, record.trial, record.attempt) == (TRIAL.id, TRIAL, 2)
    assert (record.lab, load_of(record), record.replay, record.cost) == (LAB, LOAD, REPLAY, COST)
    assert record.environment == "env"
    assert record.proof is not None
    assert (record.proof.connections, record.proof.syn_data_acked) == (1, 1)
    assert record.proof.client_counters == COUNTERS["client"]
    assert record.artefacts == {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in ("client.pcap", "server.pcap", "load.har", "observation.json")
    }


@pytest.mark.parametrize(
    ("status", "outcome"), [("timeout", "timeout"), ("panicked", "failed"), ("failed", "failed")]
)
def test_a_guest_that_did_not_end_well(out: Path, status: Status, outcome: str) -> None:
    raw = RawResult(status, "what happened", "last line\nof all", None, None)
    record = conclude(TRIAL, raw, out, "env", 1)
    assert (record.outcome, record.reason) == (outcome, "what happened\nlast line\nof all")
    assert (record.lab, record.measured, record.proof, record.cost) == (None, None, None, None)


def test_a_guest_that_said_nothing(out: Path) -> None:
    record = conclude(TRIAL, RawResult("failed", "no observation", "", None, None), out, "env", 1)
    assert (record.outcome, record.reason) == ("failed", "no observation")


def test_a_lab_out_of_tolerance(out: Path) -> None:
    lab = LabReading((Measurement("rtt", "ms", 21.0, 20.0, 0.1),), {}, ("a knob is wrong",))
    record = judge(out, {"lab": asdict(lab)})
    assert record.outcome == "lab_mismatch"
    assert record.reason is not None
    assert record.reason.startswith(
        "rtt: measured 21 ms, theory 20 ms (+5.000 %, tolerance 0.1 %); a knob is wrong"
    )
    assert record.lab == lab
    assert record.measured_as(PageLoad) is None


def test_another_trial_than_asked_leaves_no_number(out: Path) -> None:
    record = judge(out, good() | {"archive": {"name": "q"}})
    told = "page: performed was 'q', asked was 'p'"
    assert (record.outcome, record.reason) == ("lab_mismatch", told)
    assert record.measured == LOAD  # kept, and no result


def test_a_mismatch_is_told_before_an_error(out: Path) -> None:
    lab = LabReading((), {}, ("a knob is wrong",))
    record = judge(out, {"lab": asdict(lab), "error": "later"})
    assert record.reason is not None
    assert (record.outcome, record.reason[:16]) == ("lab_mismatch", "a knob is wrong;")


def test_an_error_keeps_what_was_measured(out: Path) -> None:
    record = judge(out, {**good(), "error": "2 requests failed: http://a/"})
    assert (record.outcome, record.reason) == ("failed", "2 requests failed: http://a/")
    assert (record.lab, load_of(record), record.replay) == (LAB, LOAD, REPLAY)


@pytest.mark.parametrize("lost", ["lab", "load", "replay"])
def test_half_a_measurement(out: Path, lost: str) -> None:
    record = judge(out, {key: value for key, value in good().items() if key != lost})
    assert (record.outcome, record.reason) == ("failed", "the trial left no measurement")


def test_what_the_machine_did_is_kept(out: Path) -> None:
    machine = {"steal_pct": 0.1, "others_pct": 3.0, "worst_lateness_ms": 4.9, "cpu_s": 0.5}
    record = judge(out, good() | {"machine": machine})
    assert (record.outcome, record.machine) == ("ok", machine)


def test_a_machine_that_was_disturbed(out: Path) -> None:
    record = judge(out, good() | {"machine": {"server_queued_pct": 5.5, "worst_lateness_ms": 7.25}})
    assert record.outcome == "lab_mismatch"
    assert record.reason == (
        "a packet left the link late by 7.25 ms (limit 5 ms); "
        "the server waited for a processor 5.5 % of the load (limit 5 % of the load)"
    )
    assert load_of(record) == LOAD


def test_time_that_others_took_is_kept_and_decides_nothing(out: Path) -> None:
    machine = {"steal_pct": 3.6, "others_pct": 90.0, "worst_lateness_ms": 0.4}
    machine |= {"client_queued_pct": 18.6, "server_queued_pct": 3.1}
    record = judge(out, good() | {"machine": machine})
    assert (record.outcome, record.machine) == ("ok", machine)
    (out / "observation.json").unlink()
    waited = judge(out, good() | {"machine": machine | {"client_queued_pct": 26.0}})
    assert waited.outcome == "lab_mismatch"
    assert waited.reason is not None and "waited for a processor 26 % of the load" in waited.reason


@pytest.mark.parametrize("gone", ["client.pcap", "server.pcap"])
def test_no_capture(out: Path, gone: str) -> None:
    (out / gone).unlink()
    record = judge(out, good())
    told = "there is no capture, or there are no counters"
    assert (record.outcome, record.reason) == ("unproven", told)
    assert gone not in record.artefacts


def test_no_counters(out: Path) -> None:
    record = judge(out, {**good(), "counters": None})
    assert (record.outcome, record.proof) == ("unproven", None)


def test_a_capture_that_proves_nothing(out: Path) -> None:
    Capture().write(out / "client.pcap")
    record = judge(out, good())
    assert record.outcome == "unproven"
    assert (record.reason or "").startswith("the capture shows no connection; the client's Tcp")
    assert load_of(record) == LOAD


@pytest.mark.parametrize("cut", [3, 50, 100])
def test_a_damaged_capture(out: Path, cut: int) -> None:
    path = out / "client.pcap"
    path.write_bytes(path.read_bytes()[:-cut])
    record = judge(out, good())
    assert record.outcome == "failed"
    assert "client.pcap" in (record.reason or "")


@pytest.mark.parametrize(
    "observation",
    [*("", "{", '"text"', "3", "null", "[]", '["lab"]'), {**good(), "lab": {}},
     {**good(), "load": {**asdict(LOAD), "plt_ms": "soon"}},
     {**good(), "replay": {"exact": "many"}}, {**good(), "problems": [3]},
     {**good(), "counters": {"client": {}}}, {**good(), "counters": {"client": 1, "server": 2}},
     {**good(), "error": 3}],
)  # fmt: skip
def test_an_observation_that_makes_no_sense(out: Path, observation: object) -> None:
    record = judge(out, observation)
    assert record.outcome == "failed"
    assert (record.reason or "").startswith("the observation cannot be read: ")


def test_an_observation_that_is_gone(out: Path) -> None:
    raw = RawResult("ended", "", "", COST, out / "observation.json")
    record = conclude(TRIAL, raw, out, "env", 1)
    assert record.outcome == "failed"
    assert "observation.json" in (record.reason or "")


@pytest.mark.parametrize("outcome", ["failed", "timeout", "unsupported"])
def test_an_error_keeps_the_outcome_that_the_trial_gave_it(out: Path, outcome: str) -> None:
    record = judge(out, {"lab": asdict(LAB), "error": "what went wrong", "outcome": outcome})
    assert (record.outcome, record.reason) == (outcome, "what went wrong")
    assert record.measured_as(PageLoad) is None


def test_what_a_trial_holds_against_its_own_proof(out: Path) -> None:
    told = "https://a: 3 requests came over HTTP/1.1"
    record = judge(out, {**good(), "problems": [told]})
    assert (record.outcome, record.reason) == ("unproven", told)


def test_the_server_saw_more_requests_on_a_connection_than_asked(out: Path) -> None:
    condition = replace(CONDITION, tcp=TcpSpec(tfo=True, requests_per_connection=2))
    record = judge(out, good(), replace(TRIAL, condition=condition))
    told = "a connection carried 3 requests, asked was 2 at the most"
    assert (record.outcome, record.reason) == ("unproven", told)


def test_what_was_asked_of_the_server_explains_a_load_without_an_end(out: Path) -> None:
    said = {"lab": asdict(LAB), "replay": asdict(REPLAY), "error": "slow", "outcome": "timeout"}
    record = judge(out, said)
    assert (record.outcome, record.measured, record.replay) == ("timeout", None, REPLAY)


def test_what_the_server_complained_about_is_kept(out: Path) -> None:
    (out / "nginx-error.log").write_text("[crit] no room")
    record = judge(out, good())
    assert set(record.artefacts) == {
        *("client.pcap", "server.pcap", "load.har", "nginx-error.log", "observation.json")
    }


def test_what_changed_during_the_load_leaves_no_number(out: Path) -> None:
    change = "server: MTU of s0 was '1500' before the load, and is '1400' after it"
    lab = replace(LAB, changes=(change,), traffic={"down.lost": 3})
    record = judge(out, {**good(), "lab": asdict(lab)})
    assert (record.outcome, record.reason) == ("lab_mismatch", change)
    assert record.lab == lab
    assert record.proof is not None and record.proof.proven


@pytest.mark.parametrize("tfo", [False, True])
def test_a_capture_whose_frames_were_cut(out: Path, tfo: bool) -> None:
    capture = Capture(snap=120)
    visit = Visit(capture, 2000)
    visit.open(REQUEST if tfo else b"")
    visit.answer(bytes(1000))
    record = judge_fast_open(out, capture, tfo, {}, {})
    told = "1 frames were captured with less than 256 bytes"
    assert (record.outcome, record.reason) == ("unproven", told)


def judge_fast_open(
    out: Path, capture: Capture, tfo: bool, client: dict[str, int], server: dict[str, int]
) -> Record:
    """The record of a load by one connection, with further counters of both ends."""
    capture.write(out / "client.pcap")
    opened = {"TcpActiveOpens": 1, "TcpExtTCPFastOpenActive": int(tfo)}
    counters = {
        "client": opened | client,
        "server": {"TcpExtTCPFastOpenPassive": int(tfo)} | server,
    }
    trial = replace(TRIAL, condition=replace(CONDITION, tcp=TcpSpec(tfo=tfo)))
    return judge(out, {**good(), "counters": counters}, trial)


@pytest.mark.parametrize("tfo", [False, True])
def test_an_answer_that_came_another_way(out: Path, tfo: bool) -> None:
    capture = Capture()
    visit = Visit(capture, 2000)
    visit.open(REQUEST if tfo else b"")
    ends = ((CLIENT, 2000), (SERVER, 80))
    capture.add(*ends, ACK, visit.isn + 1, visit.server_isn + 1001, b"", b"")
    record = judge_fast_open(out, capture, tfo, {"TcpInSegs": 2}, {"TcpRetransSegs": 4})
    told = ("1 of 1 connections: 1000 bytes of the server were acknowledged, and are not in the "
            "capture; the client's kernel took 2 segments, the capture shows 1")  # fmt: skip
    assert (record.outcome, record.reason) == ("unproven", told)
    assert record.proof is not None
    assert (record.proof.retransmits, record.proof.server_retransmits) == (0, 4)
