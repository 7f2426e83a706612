"""Measurement of a scenario: what was seen of it, and how it came out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["kept", "broken", "changed"]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A packet that was delivered: to which host, as which packet of its capture, when."""

    host: str
    """The host."""
    number: int
    """The packet's place in the capture `HOST.pcap`, from 0."""
    at_ns: int
    """The time in ns, on the clock of the trial's kernel."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A packet on its way: who sent it when, and where it was delivered."""

    sender: str
    """The host that sent it, or `attacker`."""
    number: int
    """The packet's place in the capture `SENDER.pcap`, from 0."""
    at_ns: int
    """The time in ns, on the clock of the trial's kernel."""
    arrivals: list[Arrival] = field(default_factory=list)
    """Its deliveries: none if it was lost, two if it was repeated."""


@dataclass(frozen=True, slots=True)
class Call:
    """A line of the script that was performed, and what the application saw."""

    line: int
    """The line of the script, from 1."""
    actor: str
    """The host, `middlebox`, `attacker` or `wait`."""
    text: str
    """The line."""
    at_ns: int
    """The start of the call in ns, on the clock of the trial's kernel."""
    ended_ns: int
    """The end of the call."""
    result: str
    """The result as a script has it: `ok`, a number, data, `eof`, `nothing` or an error's name."""


@dataclass(frozen=True, slots=True)
class Performance:
    """What happened when a scenario was performed."""

    calls: tuple[Call, ...]
    """The calls, in order."""
    passages: tuple[Passage, ...]
    """The packets, in the order of sending."""


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """How a scenario came out, and what happened."""

    verdict: Verdict
    """`kept`; `broken`; or `changed`: broken as it was promised, and as the scenario says that
    kernels do it now."""
    differences: tuple[str, ...] = ()
    """A sentence for each call and packet that is not as promised."""
    failed_checks: int = 0
    """How many calls and packets are not as promised, where the promise is not known to have
    changed."""
    performance: Performance = Performance((), ())
    """What happened."""
