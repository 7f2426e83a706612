"""Judgement of a command in the lab: that it ran there, and that its capture is whole.

What it was to show nobody here can know: its status and output are the answer, and the mechanisms
are not looked for in its packets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.kinds.command.measurement import ERROR_FILE, OUTPUT_FILE, Executed
from testbed.kinds.command.spec import LabCommand
from testbed.kinds.judgement import Judgement
from testbed.kinds.observation import Observation
from testbed.lab.topology import CLIENT_ENDS, CLIENT_MAC
from testbed.model import CAPTURE_FILE, Proof, Trial, in_real_time
from testbed.wire.both_ways import check_both_ways, check_whole
from testbed.wire.capture import CAPTURED_MOST
from testbed.wire.damage import split_damaged
from testbed.wire.flows import read_flows
from testbed.wire.ip_version import check_ip
from testbed.wire.line import check_line
from testbed.wire.load_time import check_duration
from testbed.wire.packets import read_capture
from testbed.wire.proof import prove as prove_flows


@dataclass(frozen=True, slots=True)
class CommandObservation(Observation):
    """What a command in the lab leaves."""

    executed: Executed | None = None

    @property
    def measured(self) -> Executed | None:
        """What became of the command."""
        return self.executed


OBSERVATION = CommandObservation


def judge(trial: Trial, observed: CommandObservation, out: Path) -> Judgement:
    """Return how the command ended, whatever its status, and what is proven.

    Problems are frames that are cut, and bytes that one end acknowledged and that are not in a
    capture which was not bounded, and a command that took less time than its packets.

    Raises:
        OSError, ValueError, LookupError: the capture cannot be read.
    """
    return Judgement(observed.executed, _prove(trial, observed, out))


def _prove(trial: Trial, observed: CommandObservation, out: Path) -> Proof | None:
    pcap = out / CAPTURE_FILE
    if observed.counters is None or not pcap.exists():
        return None
    capture = read_capture(pcap)
    whole = len(capture.packets) < CAPTURED_MOST
    # The counters also count what a command said to itself, on loopback.
    spec = trial.condition_as(LabCommand)
    if spec.link.corrupt_pct:
        capture, _ = split_damaged(capture, CLIENT_ENDS, CLIENT_MAC)
    flows = read_flows(capture, CLIENT_ENDS)
    ran = observed.executed
    problems = (
        *(check_files(ran, out) if ran is not None else ()),
        # The other end's command may have begun before.
        *(
            check_duration(capture, flows, CLIENT_ENDS, ran.duration_ms)
            if ran is not None and not spec.peer and not in_real_time(trial.kernel)
            else ()
        ),
        *check_whole(capture),
        *check_ip(capture, flows, spec.link.ip, whole=False),
        *(check_both_ways(flows, {}) if whole else ()),
        *(
            check_line(flows, spec.link, (), observed.running_traces(spec.link))
            if not in_real_time(trial.kernel)
            else ()
        ),
    )
    proof = prove_flows(flows, observed.counters, spec.tcp, whole=False)
    return replace(proof, problems=problems)


def check_files(executed: Executed, out: Path) -> Iterator[str]:
    """Yield a sentence where what a command printed is not what was kept of it."""
    for name, told in ((OUTPUT_FILE, executed.output_bytes), (ERROR_FILE, executed.error_bytes)):
        kept = (out / name).stat().st_size if (out / name).exists() else 0
        if kept != told:
            yield f"the command wrote {told} bytes to {name}, kept are {kept}"
    if executed.duration_ms < 0:
        yield f"the command took {executed.duration_ms:g} ms"
