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
from testbed.lab.neighbour_hosts import ADDRESSES, MACS
from testbed.lab.topology import CLIENT_ENDS, CLIENT_MAC
from testbed.model import CAPTURE_FILE, Proof, Trial, in_real_time
from testbed.model.traffic import ToldConnection, parse_traffic
from testbed.wire.both_ways import check_both_ways, check_whole
from testbed.wire.capture import CAPTURED_MOST
from testbed.wire.damage import split_damaged
from testbed.wire.flows import read_flows
from testbed.wire.ip_version import check_ip
from testbed.wire.line import check_line
from testbed.wire.load_time import check_duration
from testbed.wire.neighbour_flow import LoadWindow
from testbed.wire.neighbours import read_company
from testbed.wire.packets import read_capture
from testbed.wire.proof import prove as prove_flows


@dataclass(frozen=True, slots=True)
class CommandObservation(Observation):
    """What a command in the lab leaves.

    ``neighbours`` is what the kernel told of their connections, ``load_ns`` when these expected
    the command, and ``began_ns`` when it began, by the clock of the captures.
    """

    executed: Executed | None = None
    began_ns: int = 0
    load_ns: int = 0
    neighbours: tuple[ToldConnection, ...] = ()

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
    ran, company = observed.executed, None
    neighbours = parse_traffic(spec.traffic)
    if neighbours and ran is not None:
        end_ns = observed.began_ns + round(ran.duration_ms * 1e6)
        window = LoadWindow(observed.began_ns, end_ns, observed.load_ns)
        company = read_company(
            *(out, neighbours, trial.seed, observed.neighbours, window, ADDRESSES),
            macs=MACS if spec.link.corrupt_pct else (),
        )
        flows = replace(flows, arrivals=company.with_arrivals(flows.arrivals))
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
            check_line(
                *(flows, spec.link, (), observed.running_traces(spec.link)),
                shared=company is not None,
            )
            if not in_real_time(trial.kernel)
            else ()
        ),
        *(() if company is None else company.problems),
        *observed.problems,
    )
    proof = prove_flows(flows, observed.counters, spec.tcp, whole=False)
    found = () if company is None else company.flows
    return replace(proof, problems=problems, neighbours=found)


def check_files(executed: Executed, out: Path) -> Iterator[str]:
    """Yield a sentence where what a command printed is not what was kept of it."""
    for name, told in ((OUTPUT_FILE, executed.output_bytes), (ERROR_FILE, executed.error_bytes)):
        kept = (out / name).stat().st_size if (out / name).exists() else 0
        if kept != told:
            yield f"the command wrote {told} bytes to {name}, kept are {kept}"
    if executed.duration_ms < 0:
        yield f"the command took {executed.duration_ms:g} ms"
