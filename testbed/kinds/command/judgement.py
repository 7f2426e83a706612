"""Judgement of a command in the lab: that it ran there, and what its capture proves.

What it was to show nobody here can know: its status and output are the answer.  What the lab is
held against a command's packets show as a page load's do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from testbed.capture.flows import first_packet_ns
from testbed.kinds.command.measurement import ERROR_FILE, OUTPUT_FILE, PEER_FILE, Executed
from testbed.kinds.command.spec import LabCommand
from testbed.kinds.judgement import Judgement
from testbed.mechanisms.checks import CHECKS
from testbed.model import Trial
from testbed.model.observation import Observation
from testbed.proof.check import check, find_problems
from testbed.proof.evidence import Evidence, LackingError
from testbed.proof.load_time import new_bytes
from testbed.proof.neighbours.flow import LoadWindow
from testbed.proof.summary import summarise


@dataclass(frozen=True, slots=True)
class CommandObservation(Observation):
    """What a command in the lab leaves.

    ``began_ns`` is when it began, by the clock of the captures.
    """

    executed: Executed | None = None
    began_ns: int = 0

    @property
    def measured(self) -> Executed | None:
        """What became of the command."""
        return self.executed


OBSERVATION = CommandObservation


@dataclass(frozen=True, eq=False)
class CommandEvidence(Evidence):
    """Evidence of a command."""

    @cached_property
    def executed(self) -> Executed:
        """What became of the command."""
        if not isinstance(self.observed, CommandObservation) or self.observed.executed is None:
            raise LackingError("the command did not end")
        return self.observed.executed

    def read_window(self) -> LoadWindow:
        """Return from when to when the command ran."""
        assert isinstance(self.observed, CommandObservation)  # noqa: S101  executed asks
        began_ns = self.observed.began_ns
        end_ns = began_ns + round(self.executed.duration_ms * 1e6)
        return LoadWindow(began_ns, end_ns, self.observed.load_ns)

    @property
    def client_counters(self) -> Mapping[str, int]:
        """The counters also count what a command said to itself, on loopback."""
        raise LackingError("a command's kernel counts more than what crossed the link")


def judge(trial: Trial, observed: CommandObservation, out: Path) -> Judgement:
    """Return how the command ended, whatever its status, and what is proven.

    Raises:
        OSError, ValueError, LookupError: the capture cannot be read.
    """
    seen = CommandEvidence(trial, observed, out, bounded=True)
    if not seen.has("counters") or not seen.has("capture"):
        return Judgement(observed.executed, None)
    problems = (*find_problems(seen, (*OWN_CHECKS, *CHECKS)), *observed.problems)
    found = () if seen.neighbour_account is None else seen.neighbour_account.flows
    return Judgement(observed.executed, replace(summarise(seen, problems), neighbours=found))


@check("output kept", "executed")
def check_files(seen: CommandEvidence) -> Iterator[str]:
    """What the command printed is what was kept of it."""
    executed = seen.executed
    for name, told in ((OUTPUT_FILE, executed.output_bytes), (ERROR_FILE, executed.error_bytes)):
        kept = (seen.out / name).stat().st_size if (seen.out / name).exists() else 0
        if kept != told:
            yield f"the command wrote {told} bytes to {name}, kept are {kept}"
    if executed.duration_ms < 0:
        yield f"the command took {executed.duration_ms:g} ms"


@check("command", "executed")
def check_ran(seen: CommandEvidence) -> Iterator[str]:
    """A command ran at the other end if one was asked for: there is what it said."""
    asked, there = seen.trial.condition_as(LabCommand).peer, (seen.out / PEER_FILE).exists()
    if bool(asked) != there:
        left = "something" if there else "nothing"
        yield f"peer = {asked}, but a command at the other end left {left}"


@check("duration", "executed", "virtual_time", "capture")
def check_duration(seen: CommandEvidence) -> Iterator[str]:
    """The command took no less than its packets did.

    It may do other things before and behind, and another end's command may have begun before.
    """
    if seen.trial.condition_as(LabCommand).peer:
        return
    began = first_packet_ns(seen.capture, seen.clients)
    ended = max((at_ns for flow in seen.flows.flows for at_ns in new_bytes(flow)), default=None)
    duration_ms = seen.executed.duration_ms
    if began is not None and ended is not None and duration_ms < (ended - began) / 1e6:
        yield (
            f"the command took {duration_ms:.3f} ms, and its packets {(ended - began) / 1e6:.3f} ms"
        )


OWN_CHECKS = (check_ran, check_files, check_duration)
"""The checks of what a command alone leaves."""
