"""The link by the kernel's own disciplines: per direction a tbf, then a netem.

Downlink: ``far`` holds the buffer (tbf), ``near`` serialises and delays (netem); uplink the other
way round.  tbf lets a lone packet pass at once and paces a train; netem serialises every packet.
Together: one FIFO with a byte limit, exact serialisation, exact delay (tc-tbf(8), tc-netem(8)).
Another queue takes the place of the FIFO inside tbf (``testbed.lab.link.queue``).

netem and tbf on veth count the 14 bytes of an Ethernet header with each packet; dummynet, the
paper's emulator, counted IP bytes.  ``stab overhead`` and ``packetoverhead`` take them off.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from testbed.base.errors import MissingError
from testbed.lab.link.discipline import (
    NONE,
    Discipline,
    Disciplines,
    netem,
    read_disciplines,
    set_discipline,
    tbf,
)
from testbed.lab.link.protocol import COMMON_KNOBS, ETHERNET_HEADER_BYTES, Link, LinkReport, Traffic
from testbed.lab.link.queue import CLASS, read_queue, set_queue
from testbed.lab.link.scratch import find_unloaded, scratch_namespace
from testbed.lab.link.statistics import count_marks
from testbed.lab.rtnetlink import open_control
from testbed.lab.topology import MiddleWire, Topology
from testbed.model import FIFO, LinkSpec
from testbed.model.line import burst_bytes

NETEM_LIMIT_PACKETS = 100_000
PROBES = (netem(125, 1_000_000, 1000, 0, 0.0), tbf(1000, 1540, 9000, 0))
MODULES = ("veth", "sch_netem", "sch_tbf")
DEVICES = ("n0", "n1", "f0", "f1")


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of the link: who buffers and paces, who serialises and delays."""

    name: str
    rate_kbit: int
    buffer_role: str
    buffer_device: str
    delay_role: str
    delay_device: str

    @property
    def queue_place(self) -> str:
        """Where a queue of the user's choice is: inside the shaper."""
        return f"{self.buffer_device} {CLASS}"


def directions(spec: LinkSpec) -> tuple[Direction, Direction]:
    """The downlink (server to client) and the uplink of ``spec``."""
    return (
        Direction("down", spec.down_kbit, "far", "f0", "near", "n0"),
        Direction("up", spec.up_kbit, "near", "n1", "far", "f1"),
    )


def wanted_disciplines(spec: LinkSpec) -> Disciplines:
    """The disciplines that emulate ``spec``, two in each direction; a buffer before its delay."""
    overhead = spec.framing_bytes - ETHERNET_HEADER_BYTES
    delay_ns = round(spec.rtt_ms * 500) * 1000
    wanted: Disciplines = {}
    for each in directions(spec):
        wanted[each.buffer_role, each.buffer_device] = tbf(
            each.rate_kbit, burst_bytes(spec), spec.buffer_bytes, overhead
        )
        wanted[each.delay_role, each.delay_device] = netem(
            each.rate_kbit, delay_ns, NETEM_LIMIT_PACKETS, overhead, spec.loss_pct
        )
    return wanted


@dataclass(frozen=True, slots=True)
class NetemLink:
    """Disciplines on four devices; ``queues`` are inside them, with what tc says of each."""

    topology: Topology
    spec: LinkSpec
    queues: Disciplines = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    def shape(self) -> None:
        """Set the disciplines, without loss.

        Raises:
            MissingError: the kernel has no tbf or no netem.
        """
        self._set(wanted_disciplines(replace(self.spec, loss_pct=0.0)))

    def complete(self) -> None:
        """Add what the link was measured without: random loss, and a queue that is no plain FIFO.

        Raises:
            MissingError: the kernel does not have the queue.
        """
        if self.spec.loss_pct:
            wanted = wanted_disciplines(self.spec)
            self._set({place: wanted[place] for place in wanted if wanted[place].kind == "netem"})
        for each in directions(self.spec):
            text = self.spec.queues[each.name]
            if text == FIFO:
                continue
            knob = "qdisc" if text == self.spec.qdisc else f"qdisc_{each.name}"
            namespace = self.topology.role(each.buffer_role)
            set_queue(namespace, each.buffer_device, text, knob)
            inside, said = read_queue(namespace, each.buffer_device)
            self.queues.update({(each.buffer_role, name): inside[name] for name in inside})
            self.told[f"{each.name}.qdisc"] = said

    def forget(self) -> None:
        """Take the disciplines off, with all that they hold, and shape the link anew."""
        self._set(dict.fromkeys(wanted_disciplines(self.spec), Discipline(NONE)))
        self.shape()

    def _set(self, wanted: Disciplines) -> None:
        for (role, device), discipline in wanted.items():
            with self.topology.role(role).entered(), open_control() as control:
                try:
                    set_discipline(control, device, discipline)
                except FileNotFoundError as error:
                    raise MissingError(
                        f"this kernel cannot emulate the link, it has no {discipline.kind}: "
                        "CONFIG_NET_SCH_TBF, CONFIG_NET_SCH_NETEM; "
                        "run on the virtual kernel (--kernel virtual)"
                    ) from error

    def wanted_disciplines(self) -> Disciplines:
        """Two in each direction, with the random loss, and queues as they were set."""
        return wanted_disciplines(self.spec) | self.queues

    def read_knobs(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """The random loss of both directions in percent, and queues, as the kernel has them."""
        disciplines = self._read()
        losses = {
            each.name: disciplines[each.delay_device].settings.get("loss_pct", 0.0)
            for each in directions(self.spec)
        }
        return {f"{name}.loss_pct": f"{loss:.6g}" for name, loss in losses.items()} | self.told, ()

    def read_report(self) -> LinkReport:
        """Packets as the disciplines count them."""
        disciplines = self._read()
        down, up = (
            Traffic(
                delivered=disciplines[each.delay_device].packets,
                dropped=disciplines[each.buffer_device].dropped,
                lost=disciplines[each.delay_device].dropped,
                marked=count_marks(disciplines[each.queue_place].statistics),
                queue=disciplines[each.queue_place].statistics,
            )
            for each in directions(self.spec)
        )
        # What is inside another is counted by that.
        waiting = sum(disciplines[device].queued for device in DEVICES)
        dropped = down.dropped + up.dropped
        return LinkReport(NETEM.name, down, up, dropped, waiting_packets=waiting)

    def _read(self) -> dict[str, Discipline]:
        """What there is on the devices of the link, by device; where it has gone, nothing."""
        queues = (each.queue_place for each in directions(self.spec))
        disciplines = {device: Discipline(NONE) for device in (*DEVICES, *queues)}
        for role in ("near", "far"):
            with self.topology.role(role).entered(), open_control() as control:
                devices = {index: name for index, name in socket.if_nameindex() if name in DEVICES}
                present = read_disciplines(control, devices)
                disciplines |= {name: present[name] for name in disciplines.keys() & present.keys()}
        return disciplines


@dataclass(frozen=True, slots=True)
class Netem:
    """The backend for kernels that have netem and tbf."""

    name: str = "netem"
    knobs: frozenset[str] = COMMON_KNOBS | {"qdisc", "qdisc_down", "qdisc_up"}
    wire: MiddleWire = "veth"

    def find_problem(self) -> str | None:
        """Why this kernel cannot do it, found out in a scratch namespace; None: it can."""
        problem = find_unloaded(MODULES)
        if problem is not None:
            return problem
        with scratch_namespace() as scratch:
            for probe in PROBES:
                with scratch.entered(), open_control() as control:
                    try:
                        set_discipline(control, "lo", probe)
                    except OSError as error:
                        return f"it does not take {probe.text!r}: {error.strerror}"
        return None

    @contextmanager
    def open(self, topology: Topology, spec: LinkSpec, seed: int) -> Iterator[Link]:
        """Shape the wires; the kernel seeds the loss itself, and devices take all with them.

        Raises:
            MissingError: the kernel has no tbf or no netem.
        """
        link = NetemLink(topology, spec)
        link.shape()
        yield link


NETEM = Netem()
