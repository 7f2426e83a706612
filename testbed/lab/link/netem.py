"""The link by the kernel's own disciplines: per direction a tbf, then a netem.

Downlink: ``far`` holds the buffer (tbf), ``near`` serialises and delays (netem); uplink the other
way round.  tbf lets a lone packet pass at once and paces a train; netem serialises every packet.
Together: one FIFO with a byte limit, exact serialisation, exact delay (tc-tbf(8), tc-netem(8)).
Another queue takes the place of the FIFO inside tbf (``testbed.lab.link.queue``).  Where a
direction has a trace, packets leave the buffer at its opportunities, and netem only delays.

The netem draws losses, bursts, jitter, copies and damage.  As it has a rate, packets keep their
order whatever the jitter.  What is to come late, another netem inside it holds back: without a
rate, so that others overtake it.

netem and tbf on veth count the 14 bytes of an Ethernet header with each packet; dummynet, the
paper's emulator, counted IP bytes.  ``stab overhead`` and ``packetoverhead`` take them off.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache

from testbed.base.errors import MissingError
from testbed.base.seeding import seed_of
from testbed.lab.interfaces import cut_segments
from testbed.lab.link.bundled import TRACES, read_trace
from testbed.lab.link.discipline import (
    NONE,
    Discipline,
    Disciplines,
    as_told,
    by_trace,
    netem,
    read_disciplines,
    set_discipline,
    tbf,
    without_draws,
)
from testbed.lab.link.protocol import (
    COMMON_KNOBS,
    TRACE_KNOBS,
    Link,
    LinkReport,
    Traffic,
)
from testbed.lab.link.queue import CLASS, read_queue, set_queue
from testbed.lab.link.scratch import find_unloaded, scratch_namespace
from testbed.lab.link.statistics import count_marks
from testbed.lab.link.tables import make_delay_table, make_late_table
from testbed.lab.rtnetlink import open_control
from testbed.lab.topology import MiddleWire, Topology
from testbed.model import FIFO, LinkSpec
from testbed.model.impairments import is_drawn, ways, without_chance
from testbed.model.line import burst_bytes
from testbed.model.trace import ETHERNET_BYTES, held_bytes, hops, room_bytes, trace_of, traced

NETEM_LIMIT_PACKETS = 100_000
PROBES = (netem(125, 1_000_000, 1000, 0, 0.0), tbf(1000, 1540, 9000, 0))
MODULES = ("veth", "sch_netem", "sch_tbf")
DEVICES = ("n0", "n1", "f0", "f1")
INSIDE = "10001"
"""The class of a netem, which holds another."""
HOPS = {"hop_down": ("near", f"n0 {INSIDE}"), "hop_up": ("client", "c0")}
"""Where packets wait for the last hop: behind their delay, and at the client itself."""
KNOBS = frozenset({
    "qdisc", "qdisc_down", "qdisc_up", "delay_up_ms", "loss_up_pct", "loss_down_pct", "loss_bursts",
    "delay_jitter_ms", "delay_distribution", "reorder_pct", "reorder_ms", "duplicate_pct",
    "corrupt_pct", "changes", "path_mtu_bytes", "path_mtu_discovery", "gso", "gro", "ip",
    "hop_down", "hop_up",
})  # fmt: skip


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


def wanted_disciplines(spec: LinkSpec, seed: int = 0) -> Disciplines:
    """The disciplines that emulate ``spec``, two in each direction; a buffer before its delay.

    A third, inside the delay, holds back what is to be reordered.  What is drawn is by ``seed``.
    """
    wanted: Disciplines = {}
    for each in directions(spec):
        wanted[each.buffer_role, each.buffer_device] = _wanted_buffer(spec, each)
        wanted |= _wanted_netems(spec, each, seed)
    return wanted


def _wanted_buffer(spec: LinkSpec, each: Direction) -> Discipline:
    overhead = spec.framing_bytes - ETHERNET_BYTES
    if trace_of(spec, each.name):
        return _wanted_trace(spec, each.name)
    return tbf(each.rate_kbit, burst_bytes(spec), spec.buffer_bytes, overhead)


def describe_room(spec: LinkSpec, way: str) -> tuple[int, int, int | None]:
    """What waits for opportunities at most, what one lets through, and the overhead, in bytes."""
    overhead = None if way in hops(spec) else spec.framing_bytes - ETHERNET_BYTES
    return held_bytes(spec, way), room_bytes(spec, way), overhead


def _wanted_trace(spec: LinkSpec, way: str) -> Discipline:
    return _traced_buffer(traced(spec)[way], *describe_room(spec, way))


@cache  # its check sum takes a while, and there may be thousands of changes
def _traced_buffer(trace: str, held: int, room: int, overhead: int | None) -> Discipline:
    return by_trace(read_trace(trace), held, room, overhead)


def _wanted_netems(spec: LinkSpec, each: Direction, seed: int) -> Disciplines:
    """What delays and draws, for which nobody needs to have the traces."""
    way = ways(spec)[each.name]
    rate_kbit = 0 if trace_of(spec, each.name) else each.rate_kbit
    overhead = spec.framing_bytes - ETHERNET_BYTES
    chances = {
        "jitter_ns": _to_ns(way.jitter_ms),
        "duplicate_pct": way.duplicate_pct,
        "corrupt_pct": way.corrupt_pct,
    }
    if way.bursts is not None:
        chances |= {
            "to_bad_pct": way.bursts.to_bad_pct,
            "to_good_pct": way.bursts.to_good_pct,
            "bad_kept_pct": 100.0 - way.bursts.bad_loss_pct,
            "good_loss_pct": way.bursts.good_loss_pct,
        }
    delay = netem(
        rate_kbit, _to_ns(way.delay_ms), NETEM_LIMIT_PACKETS, overhead, way.loss_pct, **chances
    )
    if is_drawn(spec):
        table = make_delay_table(way.distribution) if way.jitter_ms else b""
        delay = replace(delay, drawn=_seed_of(seed, each.name), table=table)
    wanted = {(each.delay_role, each.delay_device): delay}
    if way.reorder_pct:
        wanted[each.delay_role, f"{each.delay_device} {INSIDE}"] = replace(
            netem(0, 0, NETEM_LIMIT_PACKETS, 0, 0.0, jitter_ns=_to_ns(way.reorder_ms)),
            drawn=_seed_of(seed, f"{each.name} late"),
            table=make_late_table(way.reorder_pct),
        )
    return wanted


def describe_drawn(spec: LinkSpec, seed: int) -> dict[str, str]:
    """What the kernel says of the netems of each direction, as it has to: ``down.netem``, ..."""
    return {
        f"{each.name}.netem": "; ".join(
            as_told(replace(discipline, table=b"")).text
            for discipline in _wanted_netems(spec, each, seed).values()
        )
        for each in directions(spec)
    }


def _seed_of(seed: int, name: str) -> str:
    return struct.pack("=Q", seed_of(seed, name)).hex()


def _to_ns(ms: float) -> int:
    return round(ms * 1000) * 1000


@dataclass(frozen=True, slots=True)
class NetemLink:
    """Disciplines on four devices; ``queues`` are inside them, with what tc says of each.

    ``begun`` is when the trace of each direction begins, once a load has: until then its time 0 is
    that of CLOCK_REALTIME, and it comes again and again.
    """

    topology: Topology
    spec: LinkSpec
    seed: int = 0
    queues: Disciplines = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)

    def shape(self) -> None:
        """Set the disciplines, without anything that is drawn.

        Raises:
            MissingError: the kernel has no tbf or no netem.
        """
        wanted = wanted_disciplines(without_chance(self.spec))
        for each in directions(self.spec):
            place = each.buffer_role, each.buffer_device
            if trace := trace_of(self.spec, each.name):
                wanted[place] = replace(wanted[place], file=str(TRACES / trace))
        self._set(wanted)

    def complete(self) -> None:
        """Add what the link was measured without: all that is drawn, and another queue.

        Raises:
            MissingError: the kernel does not have the queue, or does not count what it draws.
        """
        self._refuse_uncounted()
        self.draw_anew()
        if self.spec.hop_up:
            with self.topology.client.entered(), open_control() as control:
                cut_segments(control, HOPS["hop_up"][1])
        for way, trace in hops(self.spec).items():
            path = TRACES / trace
            self._set({HOPS[way]: replace(_wanted_trace(self.spec, way), file=str(path))})
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

    def begin(self, origins_ns: Mapping[str, int]) -> tuple[str, ...]:
        """Have traces begin at a moment of CLOCK_REALTIME, by direction; return where they are."""
        self.begun.update(origins_ns)
        wanted = self.wanted_disciplines()
        own = {place: wanted[place] for place in self._places().values()}
        self._set(own)
        return tuple(role for role, _ in own)

    def draw_anew(self) -> None:
        """Begin with the draws of the seed; what is on its way stays there."""
        self._set(self._drawing())

    def draw_nothing(self) -> None:
        """Lose, delay, double and damage nothing at random until ``draw_anew``."""
        self._set({place: without_draws(each) for place, each in self._drawing().items()})

    def _drawing(self) -> Disciplines:
        wanted = wanted_disciplines(self.spec, self.seed) if is_drawn(self.spec) else {}
        return {place: each for place, each in wanted.items() if each.kind == "netem"}

    def _refuse_uncounted(self) -> None:
        """See that copies and damage are counted: nobody can tell them from a fault otherwise."""
        if not (self.spec.duplicate_pct or self.spec.corrupt_pct):
            return
        disciplines = self._read()
        for each in directions(self.spec):
            if disciplines[each.delay_device].duplicated is None:
                raise MissingError(
                    "link.duplicate_pct, link.corrupt_pct: the netem of this kernel does not count "
                    "what it doubles and damages; leave them at 0, or take kernel 7.3"
                )

    def forget(self) -> None:
        """Take the disciplines off, with all that they hold, and shape the link anew."""
        outer = [place for place in wanted_disciplines(self.spec) if " " not in place[1]]
        self._set(dict.fromkeys(outer, Discipline(NONE)))
        self.shape()

    def _set(self, wanted: Disciplines) -> None:
        for (role, device), discipline in wanted.items():
            with self.topology.role(role).entered(), open_control() as control:
                try:
                    set_discipline(control, device, discipline)
                except FileNotFoundError as error:
                    raise MissingError(
                        f"this kernel cannot emulate the link, it has no {discipline.kind}: "
                        "CONFIG_NET_SCH_TBF, CONFIG_NET_SCH_NETEM, and for a trace our patch; "
                        "run on the virtual kernel (--kernel virtual)"
                    ) from error

    def wanted_disciplines(self) -> Disciplines:
        """Those of each direction, with all that is drawn, and queues as they were set."""
        wanted = wanted_disciplines(self.spec, self.seed)
        places = self._places()
        wanted |= {places[way]: _wanted_trace(self.spec, way) for way in hops(self.spec)}
        for way, origin_ns in self.begun.items():
            wanted[places[way]] = replace(
                wanted[places[way]], origin_ns=origin_ns, once=self.spec.trace_end == "once"
            )
        return wanted | self.queues

    def _places(self) -> dict[str, tuple[str, str]]:
        """Where the traces of the link are, by direction, and of the last hop."""
        lines = {each.name: (each.buffer_role, each.buffer_device)
                 for each in directions(self.spec)}  # fmt: skip
        return {way: (lines | HOPS)[way] for way in traced(self.spec)}

    def read_knobs(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """The random loss of both directions in percent, and queues, as the kernel has them."""
        disciplines = self._read()
        losses = {
            each.name: disciplines[each.delay_device].settings.get("loss_pct", 0.0)
            for each in directions(self.spec)
        }
        told = {f"{name}.loss_pct": f"{loss:.6g}" for name, loss in losses.items()} | self.told
        if is_drawn(self.spec) or self.spec.delay_up_ms is not None:
            for each in directions(self.spec):
                places = (each.delay_device, f"{each.delay_device} {INSIDE}")
                here = (disciplines[place] for place in places if place in disciplines)
                told[f"{each.name}.netem"] = "; ".join(
                    one.text if is_drawn(self.spec) else replace(one, drawn="").text
                    for one in here
                    if one.kind == "netem"
                )
        for way, (_, place) in self._places().items():
            read = disciplines.get(place, Discipline(NONE))
            told[f"{way}.trace"] = read.text
            if way in self.begun:
                told[f"{way}.trace_origin_ns"] = str(read.origin_ns)
                told[f"{way}.trace_end"] = "once" if read.once else "loop"
        return told, ()

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
                duplicated=disciplines[each.delay_device].duplicated or 0,
                corrupted=disciplines[each.delay_device].corrupted or 0,
            )
            for each in directions(self.spec)
        )
        # What is inside another is counted by that.
        waiting = sum(disciplines[device].queued for device in DEVICES)
        dropped = down.dropped + up.dropped
        return LinkReport(NETEM.name, down, up, dropped, waiting_packets=waiting)

    def _read(self) -> dict[str, Discipline]:
        """What there is on the devices of the link, by device; where it has gone, nothing.

        Of what is inside another there are queues, and what holds packets back.
        """
        queues = (each.queue_place for each in directions(self.spec))
        disciplines = {device: Discipline(NONE) for device in (*DEVICES, *queues)}
        here = {*DEVICES, *(place for _, place in self._places().values())}
        for role in ("near", "far", *(("client",) if self.spec.hop_up else ())):
            with self.topology.role(role).entered(), open_control() as control:
                devices = {index: name for index, name in socket.if_nameindex() if name in here}
                present = read_disciplines(control, devices)
                late = {f"{name} {INSIDE}" for name in ("n0", "f1")}
                known = (disciplines.keys() | late | here) & present.keys()
                disciplines |= {name: present[name] for name in known}
        return disciplines


@dataclass(frozen=True, slots=True)
class Netem:
    """The backend for kernels that have netem and tbf."""

    name: str = "netem"
    knobs: frozenset[str] = COMMON_KNOBS | TRACE_KNOBS | KNOBS
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
        """Shape the wires; devices take all with them.

        Before Linux 6.6 a netem has no seed and draws from the kernel's random numbers, which a
        guest's begin anew with each trial's seed.

        Raises:
            MissingError: the kernel has no tbf or no netem.
        """
        link = NetemLink(topology, spec, seed)
        link.shape()
        yield link


NETEM = Netem()
