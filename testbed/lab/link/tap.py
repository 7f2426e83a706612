"""The link by a program of ours between two TAPs, for kernels without netem (native/link.c)."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.base import proc
from testbed.base.errors import LabError
from testbed.base.namespace import NETNS_DIRECTORY, Namespace
from testbed.lab.interfaces import add_tap, wait_until_running
from testbed.lab.link.bundled import TRACES
from testbed.lab.link.discipline import NONE, Discipline, Disciplines, set_discipline
from testbed.lab.link.protocol import (
    COMMON_KNOBS,
    TRACE_KNOBS,
    WAYS,
    Link,
    LinkReport,
    Traffic,
)
from testbed.lab.link.scratch import find_unloaded, scratch_namespace
from testbed.lab.offloads import clear_offloads, read_offloads
from testbed.lab.path import read_unsent
from testbed.lab.rtnetlink import open_control
from testbed.lab.topology import MIDDLE, WIRES, MiddleWire, Topology
from testbed.model import LinkSpec
from testbed.model.line import burst_bytes
from testbed.model.trace import ETHERNET_BYTES, traced

PROGRAM = Path(__file__).resolve().parents[3] / "native" / "link"
"""Where a bundle has the program, beside the package."""
MODULES = ("veth", "tun")
MINIMUM_MTU_BYTES = 68  # RFC 791
ANSWER_S = 10.0


def link_argv(
    program: Path, near: str, far: str, spec: LinkSpec, seed: int, spin_us: int
) -> tuple[str, ...]:
    """Command of the link between namespaces ``near`` and ``far``; loss waits for its order."""
    wire = WIRES[MIDDLE]
    words = {
        "near-namespace": NETNS_DIRECTORY / near,
        "near-device": wire.left_device,
        "far-namespace": NETNS_DIRECTORY / far,
        "far-device": wire.right_device,
        "down-kbit": spec.down_kbit,
        "up-kbit": spec.up_kbit,
        "delay-ns": round(spec.rtt_ms * 500_000),
        "buffer-bytes": spec.buffer_bytes,
        "burst-bytes": burst_bytes(spec),
        "mtu-bytes": spec.mtu_bytes,
        "framing-bytes": spec.framing_bytes,
        "loss-ppb": round(spec.loss_pct * 1e7),
        "seed": seed,
        "spin-ns": spin_us * 1000,
    }
    words |= {f"{way}-trace": TRACES / name for way, name in traced(spec).items()}
    return (str(program), *(f"{name}={value}" for name, value in words.items()))


@dataclass(slots=True)
class TapLink:
    """The running program: one byte is an order, one line its answer.

    ``begun`` is when the trace of each direction begins, once a load has.
    """

    topology: Topology
    spec: LinkSpec
    orders: int
    answers: int
    claims: dict[str, bool]
    lossy: bool = False
    unsent: int = 0
    begun: dict[str, int] = field(default_factory=dict)

    def complete(self) -> None:
        """Add the random loss that the link was measured without."""
        self.draw_anew()

    def begin(self, origins_ns: Mapping[str, int]) -> tuple[str, ...]:
        """Have traces begin at a moment of CLOCK_REALTIME, by direction; no device has them."""
        self.begun.update(origins_ns)
        moments = (origins_ns.get(way, 0) for way in WAYS)
        self._order(b"b" + struct.pack("=qqq", *moments, self.spec.trace_end == "once"))
        return ()

    def draw_anew(self) -> None:
        """Lose at random: draws go on where they were."""
        if self.spec.loss_pct:
            self._order(b"l")
            self.lossy = True

    def draw_nothing(self) -> None:
        """Lose nothing at random until ``draw_anew``."""
        self._order(b"q")
        self.lossy = False

    def forget(self) -> None:
        """Throw every packet away that is on its way, and all counts."""
        self._order(b"f")
        self.unsent = read_unsent(self.topology)

    def wanted_disciplines(self) -> Disciplines:
        """None: its devices hand packets over at once."""
        return {}

    def read_knobs(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Loss in percent, the program's scheduling, and offloads of its devices."""
        loss_pct = self.spec.loss_pct if self.lossy else 0.0
        values = {f"{way}.loss_pct": f"{loss_pct:g}" for way in ("down", "up")}
        values["link.scheduler"] = "fifo" if self.claims["fifo"] else "normal"
        values["link.memory"] = "locked" if self.claims["locked"] else "pageable"
        told = json.loads(self._order(b"r")) if traced(self.spec) else {}
        overhead = float(self.spec.framing_bytes - ETHERNET_BYTES)
        for way in traced(self.spec):
            settings = {name: float(value) for name, value in told[way]["trace"].items()}
            read = Discipline("trace", settings | {"overhead_bytes": overhead})
            values[f"{way}.trace"] = read.text
            if way in self.begun:
                values[f"{way}.trace_origin_ns"] = str(self.begun[way])
                values[f"{way}.trace_end"] = "once" if told[way]["once"] else "loop"
        errors = []
        if loss_pct != self.spec.loss_pct:
            errors.append(f"loss is {loss_pct:g} %, asked was {self.spec.loss_pct} %")
        for namespace, device in _devices(self.topology):
            on = read_offloads(namespace, device)
            values[f"link.{device}.offloads"] = " ".join(on) or "none"
            if on:
                errors.append(f"{device}: {', '.join(on)} did not go off")
        return values, tuple(errors)

    def read_report(self) -> LinkReport:
        """What the program counted, and what its devices could not give to it."""
        unsent = read_unsent(self.topology) - self.unsent
        return parse_report(self._order(b"r"), unsent)

    def _order(self, order: bytes) -> str:
        try:
            os.write(self.orders, order)
        except BrokenPipeError:
            raise LabError("the link between the TAPs has ended") from None
        return read_answer(self.answers)


def read_answer(answers: int) -> str:
    """The next line of the program.

    Raises:
        LabError: it has ended or does not answer; with what it said.
    """
    said = b""
    deadline = time.monotonic() + ANSWER_S
    while not said.endswith(b"\n"):
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([answers], [], [], left_s)[0]:
            raise LabError(f"the link between the TAPs does not answer: {said!r}")
        piece = os.read(answers, 65536)
        if not piece:
            raise LabError(f"the link between the TAPs has ended: {said.decode(errors='replace')}")
        said += piece
    return said.decode()


def parse_report(text: str, unsent_packets: int) -> LinkReport:
    """The program's report; what it had no room for counts as stray, as ``unsent_packets`` do."""
    told: dict[str, Any] = json.loads(text)
    ways = [told["down"], told["up"]]
    down, up = (Traffic(way["packets"], way["dropped"], way["lost"]) for way in ways)
    packets = down.delivered + up.delivered
    late_ns = sum(way["late_sum_ns"] for way in ways)
    return LinkReport(
        backend="tap",
        down=down,
        up=up,
        dropped_packets=down.dropped + up.dropped,
        stray_packets=unsent_packets + sum(way["overrun"] + way["failed"] for way in ways),
        waiting_packets=sum(way["waiting"] for way in ways),
        untimed_packets=sum(way["untimed"] for way in ways),
        worst_lateness_ms=max(way["late_worst_ns"] for way in ways) / 1e6,
        mean_lateness_ms=late_ns / packets / 1e6 if packets else 0.0,
        late_packets={name: sum(way["late"][name] for way in ways) for name in ways[0]["late"]},
        link_cpu_s=told["cpu_us"] / 1e6,
    )


@dataclass(frozen=True, slots=True)
class Tap:
    """The backend for kernels that have TAPs.

    ``program`` is the compiled ``native/link``.  For the last ``spin_us`` before a packet is due it
    does not sleep: that is about what a virtual machine needs to wake up.
    """

    program: Path = PROGRAM
    spin_us: int = 50
    name: str = "tap"
    knobs: frozenset[str] = COMMON_KNOBS | TRACE_KNOBS
    wire: MiddleWire = "taps"

    def find_problem(self) -> str | None:
        """Why this kernel cannot do it, found out in a scratch namespace; None: it can."""
        if not os.access(self.program, os.X_OK):
            return f"{self.program} is not built; run ./run.sh or make setup"
        problem = find_unloaded(MODULES)
        if problem is not None:
            return problem
        with scratch_namespace() as scratch, scratch.entered(), open_control() as control:
            try:
                add_tap(control, "t0", "02:00:00:00:00:01", MINIMUM_MTU_BYTES, 1)
            except OSError as error:
                return f"this kernel makes no TAP: {error.strerror}"
        return None

    @contextmanager
    def open(self, topology: Topology, spec: LinkSpec, seed: int) -> Iterator[Link]:
        """Start the program; its undo ends it, and it ends by itself when this process does.

        Raises:
            MissingError: the program cannot be started.
            LabError: it did not come to life.
        """
        near, far = topology.near.name, topology.far.name
        argv = link_argv(self.program, near, far, spec, seed, self.spin_us)
        orders_in, orders = os.pipe()
        answers, answers_out = os.pipe()
        try:
            with proc.started(argv, stdin=orders_in, stdout=answers_out, stderr=answers_out):
                os.close(orders_in)
                os.close(answers_out)
                orders_in = answers_out = -1
                link = TapLink(topology, spec, orders, answers, parse_claims(read_answer(answers)))
                for namespace, device in _devices(topology):
                    _prepare(namespace, device)
                yield link
        finally:
            for descriptor in (orders_in, orders, answers, answers_out):
                if descriptor >= 0:
                    os.close(descriptor)


def parse_claims(text: str) -> dict[str, bool]:
    """The program's first line: whether it has ``fifo`` scheduling and ``locked`` memory.

    Raises:
        LabError: it is something else, a complaint.
    """
    try:
        claims = json.loads(text)
        return {name: bool(claims[name]) for name in ("fifo", "locked")}
    except (ValueError, KeyError, TypeError):
        raise LabError(f"the link between the TAPs did not start: {text.strip()}") from None


def _devices(topology: Topology) -> tuple[tuple[Namespace, str], tuple[Namespace, str]]:
    wire = WIRES[MIDDLE]
    return (
        (topology.role(wire.left), wire.left_device),
        (topology.role(wire.right), wire.right_device),
    )


def _prepare(namespace: Namespace, device: str) -> None:
    """Nothing may queue or merge packets before the program sees them; wait for the carrier."""
    with namespace.entered(), open_control() as control:
        set_discipline(control, device, Discipline(NONE))
    clear_offloads(namespace, device)
    wait_until_running(namespace, device)
