"""A results folder of scenarios, performed on no kernel: records and captures that are written."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from socket import inet_aton
from typing import Any

from testbed.capture.packets import ACK, FAST_OPEN, SYN
from testbed.capture.segments import make_segment, make_unreachable
from testbed.model import Cost, Experiment, LabReading, Outcome, Proof, Record, Trial
from tests.analysis.sample import ENVIRONMENT, write_results
from tests.measured import measured_as
from wings.scenarios.measurement import (
    Arrival,
    Call,
    Passage,
    Performance,
    ScenarioResult,
    Verdict,
)
from wings.scenarios.spec import Scenario
from wings.scenarios.words import ADDRESSES, NAT_ADDRESS

BEGAN_NS = 1_700_000_000_000_000_000
WAY_NS = 50_000_000
TEXT = '''
title = "A promise & a <title>"
source = "RFC 7413, section 3"
promise = "What is promised."
lesson = "What is learnt."
fault = "middlebox strip fastopen client > server"
steps = """
server listen s fastopen=16
client sendto a server "again" -> 5
client > server [S] data=5 cookie=cached
"""
'''
CHANGED = (
    TEXT
    + '''
[changed]
since = "Linux 4.1"
says = "It does something else."
steps = """
server listen s fastopen=16
client sendto a server "again" -> 5
"""
'''
)


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet of a made-up capture; ``arrives`` is when, after its way: none is a loss.

    If it is ``refused``, its sender gets a message instead.
    """

    sender: str
    at_ms: float
    flags: int
    seq: int = 0
    ack: int = 0
    payload: bytes = b""
    cookie: bytes | None = None
    arrives: tuple[float, ...] = (0.0,)
    arriving: bytes | None = None
    port: int = 40_000
    receiver: str = ""
    refused: bool = False

    def packet(self, cookie: bytes | None) -> bytes:
        """The IPv4 packet, with another cookie if it is given."""
        to_server = self.sender != "server"
        source = (inet_aton(ADDRESSES["client" if to_server else "server"]),
                  self.port if to_server else 80)  # fmt: skip
        target = (inet_aton(ADDRESSES["server" if to_server else "client"]),
                  80 if to_server else self.port)  # fmt: skip
        options = [] if cookie is None else [(FAST_OPEN, cookie)]
        return make_segment(source, target, self.flags, seq=self.seq, ack=self.ack, options=options,
                            payload=self.payload)  # fmt: skip


COOKIE = bytes.fromhex("0123456789abcdef")
HANDSHAKE = (Sent("client", 0, SYN, seq=100, payload=b"again", cookie=COOKIE),
             Sent("server", 50, SYN | ACK, seq=900, ack=106),
             Sent("client", 100, ACK, seq=106, ack=901))  # fmt: skip
"""A connection with data in its SYN."""


def perform(
    folder: Path, sent: Sequence[Sent], calls: Sequence[Call] = ()
) -> tuple[Performance, dict[str, str]]:
    """Write the captures of ``sent`` and return what was performed, and the captures' digests."""
    files: dict[str, list[tuple[int, bytes]]] = {"client": [], "server": [], "attacker": []}
    events: list[tuple[int, int, bool, int]] = []
    for place, segment in enumerate(sent):
        at_ns = BEGAN_NS + round(segment.at_ms * 1e6)
        events.append((at_ns, place, True, 0))
        for copy, later_ms in enumerate(segment.arrives):
            events.append((at_ns + WAY_NS + round(later_ms * 1e6), place, False, copy))
    passages: dict[int, Passage] = {}
    for at_ns, place, leaving, _ in sorted(events):
        segment = sent[place]
        if leaving:
            host, data = segment.sender, segment.packet(segment.cookie)
        else:
            host = segment.receiver or ("client" if segment.sender == "server" else "server")
            data = segment.packet(
                segment.cookie if segment.arriving is None else segment.arriving or None
            )
            if segment.refused:
                host, data = segment.sender, make_unreachable(data, inet_aton(NAT_ADDRESS))
        number = len(files[host])
        files[host].append((at_ns, bytes(12) + b"\x08\x00" + data))
        if leaving:
            passages[place] = Passage(host, number, at_ns)
        else:
            passages[place].arrivals.append(Arrival(host, number, at_ns))
    digests = {}
    folder.mkdir(parents=True, exist_ok=True)
    for host, frames in files.items():
        content = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1)
        for at_ns, frame in frames:
            seconds, rest = divmod(at_ns, 1_000_000_000)
            content += struct.pack("<IIII", seconds, rest, len(frame), len(frame)) + frame
        (folder / f"{host}.pcap").write_bytes(content)
        digests[f"{host}.pcap"] = hashlib.sha256(content).hexdigest()
    ordered = tuple(passages[place] for place in sorted(passages))
    return Performance(tuple(calls), ordered), digests


def call(line: int, text: str, result: str, at_ms: float, ended_ms: float | None = None) -> Call:
    """A call of a script."""
    start, end = (
        BEGAN_NS + round(ms * 1e6) for ms in (at_ms, at_ms if ended_ms is None else ended_ms)
    )
    return Call(line, text.split()[0], text, start, end, result)


CALLS = (
    call(1, "server listen s fastopen=16", "ok", -1),
    call(2, 'client sendto a server "again" -> 5', "5", 0),
)


def scenario_record(
    folder: Path, name: str, verdict: Verdict = "kept", *differences: str, text: str = TEXT,
    outcome: Outcome = "ok", reason: str | None = None, sent: Sequence[Sent] = HANDSHAKE,
    version: str = "7.3",
) -> Record:  # fmt: skip
    """A record of a scenario, its captures in ``folder``; proven unless ``outcome`` says more."""
    trial = Trial(Scenario(name, text), 0, 0, "virtual", version)
    if outcome not in ("ok", "unproven"):
        return Record(trial.id, trial, outcome, ENVIRONMENT.id, reason=reason, cost=Cost(1, 2, 3))
    performed, digests = perform(folder / "trials" / trial.id, sent, CALLS)
    failed = len(differences) if verdict == "broken" else 0
    problems = (reason,) if reason else ()
    return Record(trial.id, trial, outcome, ENVIRONMENT.id, reason=reason, lab=LabReading((), {}),
                  measured=ScenarioResult(verdict, differences, failed, performed),
                  proof=Proof(1, 1, 1, 5, 0, 1, 0, {}, {}, problems=problems),
                  cost=Cost(0.5, 1.5, 9.0), artefacts=digests)  # fmt: skip


def write_promises(folder: Path, version: str = "7.3", **changes: Any) -> Path:
    """A run of five scenarios, each of which came to something else."""
    records = [
        scenario_record(folder, "kept", version=version),
        scenario_record(folder, "broken", "broken", "line 3: it has no data\x1b", "line 4: more",
                        version=version),
        scenario_record(folder, "changed", "changed", "line 3: other", text=CHANGED,
                        version=version),
        scenario_record(folder, "lacking", outcome="unsupported", reason="no MD5 here",
                        version=version),
        scenario_record(folder, "stuck", outcome="timeout", reason="no end after 120 s",
                        version=version),
    ]  # fmt: skip
    records = [replace(record, **changes) for record in records]
    plan = Experiment("scenarios", "What is promised",
                      tuple(record.trial.condition for record in records), kind="scenario",
                      kernel_version=version)  # fmt: skip
    return write_results(folder, records, plan)


def result_of(record: Record) -> ScenarioResult:
    """How a scenario came out."""
    return measured_as(record, ScenarioResult)
