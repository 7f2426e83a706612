"""What the lab asks of whatever emulates the access link.

Downlink is from ``far`` to ``near``, uplink the other way round.  In each direction a packet waits
in a drop-tail buffer counted in bytes, occupies the line for its serialisation, may be lost, and
is delayed by its share of the round trip.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from testbed.base.errors import MissingError
from testbed.lab.link.discipline import Disciplines
from testbed.lab.topology import MiddleWire, Topology
from testbed.model import LinkSpec
from testbed.model.knob import changed

WAYS = ("down", "up")
COMMON_KNOBS = frozenset({
    "rtt_ms", "down_kbit", "up_kbit", "buffer_bytes", "mtu_bytes", "framing_bytes", "loss_pct",
    "profile",  # a name of values that are in the others
})  # fmt: skip
"""What every backend emulates."""
TRACE_KNOBS = frozenset({"trace_down", "trace_up", "trace_end", "trace_phase"})


@dataclass(frozen=True, slots=True)
class Traffic:
    """Packets of one direction: delivered, dropped by the queue, lost at random, marked by ECN.

    ``queue`` is what a queue that is no plain FIFO counts of itself, by the kernel's names.  Of
    those delivered so many are copies, and so many damaged.
    """

    delivered: int
    dropped: int
    lost: int
    marked: int = 0
    queue: Mapping[str, int] = field(default_factory=dict)
    duplicated: int = 0
    corrupted: int = 0


@dataclass(frozen=True, slots=True)
class LinkReport:
    """What the link did since it was told to forget, or since it was opened.

    ``dropped_packets`` counts both full buffers.  Lateness is by how much packets left the link
    after they were due; a kernel's own discipline does not tell (``None``).  ``late_packets``
    counts packets by lateness class, worst last.  ``stray_packets`` reached the client or the
    server around the link, or vanished beside it: with any, the trial is worth nothing.
    ``waiting_packets`` are inside still.
    ``untimed_packets`` had no time of arrival from the kernel, so that the link's own had to do.
    ``link_cpu_s`` is what the link has used since it was opened.
    """

    backend: str
    down: Traffic
    up: Traffic
    dropped_packets: int = 0
    stray_packets: int = 0
    waiting_packets: int = 0
    untimed_packets: int = 0
    worst_lateness_ms: float | None = None
    mean_lateness_ms: float | None = None
    late_packets: dict[str, int] = field(default_factory=dict)
    link_cpu_s: float | None = None


class Link(Protocol):
    """A running link."""

    def complete(self) -> None:
        """Add what the link was measured without: all that is drawn, and another queue.

        Raises:
            MissingError: the kernel does not have it.
        """
        ...

    def begin(self, origins_ns: Mapping[str, int]) -> tuple[str, ...]:
        """Have traces begin at a moment of CLOCK_REALTIME, by direction; return where they are."""
        ...

    def draw_anew(self) -> None:
        """Begin again with what the seed draws."""
        ...

    def draw_nothing(self) -> None:
        """Lose, delay, double and damage nothing at random until ``draw_anew``."""
        ...

    def forget(self) -> None:
        """Throw every packet away that is on its way, and all counts."""
        ...

    def wanted_disciplines(self) -> Disciplines:
        """The queueing disciplines that it has put on devices of the lab, as they must be."""
        ...

    def read_knobs(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """What else the link says of itself, and a sentence for each thing that is not as asked."""
        ...

    def read_report(self) -> LinkReport:
        """What happened on the link.

        Raises:
            LabError: the link has ended.
        """
        ...


class LinkBackend(Protocol):
    """One way to emulate the access link."""

    @property
    def name(self) -> str:
        """As it stands in records."""
        ...

    @property
    def knobs(self) -> frozenset[str]:
        """The knobs of a LinkSpec that it emulates; it has the others at their defaults only."""
        ...

    @property
    def wire(self) -> MiddleWire:
        """Which devices it needs between ``near`` and ``far``."""
        ...

    def find_problem(self) -> str | None:
        """Why this kernel cannot do it, found out in a scratch namespace; None: it can."""
        ...

    def open(self, topology: Topology, spec: LinkSpec, seed: int) -> AbstractContextManager[Link]:
        """Put the link between client and server, without loss (calibration comes first).

        Raises:
            MissingError: the kernel cannot do it.
            LabError: the link did not start.
        """
        ...


def require_emulated(backend: LinkBackend, spec: LinkSpec) -> None:
    """See that ``backend`` emulates all that ``spec`` asks for.

    Raises:
        MissingError: it does not; the message names the knobs.
    """
    beyond = [
        f"link.{each.name} = {value}"
        for each, value in changed(spec)
        if each.name not in backend.knobs
    ]
    if beyond:
        raise MissingError(
            f"the {backend.name} link cannot emulate {', '.join(beyond)}; leave it at its default, "
            "or take the virtual kernel: --kernel virtual"
        )
