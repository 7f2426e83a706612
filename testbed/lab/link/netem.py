"""The link by the kernel's own disciplines: per direction a tbf, then a netem.

Downlink: ``far`` holds the buffer (tbf), ``near`` serialises and delays (netem); uplink the other
way round.  tbf lets a lone packet pass at once and paces a train; netem serialises every packet.
Together: one FIFO with a byte limit, exact serialisation, exact delay (tc-tbf(8), tc-netem(8)).

netem and tbf on veth count the 14 bytes of an Ethernet header with each packet; dummynet, the
paper's emulator, counted IP bytes.  ``stab overhead`` and ``packetoverhead`` take them off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from testbed import proc
from testbed.errors import MissingError
from testbed.lab.link.protocol import (
    ETHERNET_HEADER_BYTES,
    Link,
    LinkReport,
    Traffic,
    burst_bytes,
)
from testbed.lab.link.scratch import find_unloaded, scratch_namespace
from testbed.lab.topology import MiddleWire, Topology
from testbed.model import LinkSpec

NETEM_LIMIT_PACKETS = 100_000
LOSS_RESOLUTION_PCT = 1e-4
PROBES = (
    ("netem", "delay", "1ms"),
    ("tbf", "rate", "1mbit", "burst", "1540", "limit", "9000"),
)
MODULES = ("veth", "sch_netem", "sch_tbf")


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of the link: who buffers and paces, who serialises and delays."""

    name: str
    rate_kbit: int
    buffer_role: str
    buffer_device: str
    delay_role: str
    delay_device: str


def directions(spec: LinkSpec) -> tuple[Direction, Direction]:
    """The downlink (server to client) and the uplink of ``spec``."""
    return (
        Direction("down", spec.down_kbit, "far", "f0", "near", "n0"),
        Direction("up", spec.up_kbit, "near", "n1", "far", "f1"),
    )


def buffer_argv(direction: Direction, spec: LinkSpec, namespace: str) -> tuple[str, ...]:
    """Command that sets the byte-limited drop-tail buffer of one direction."""
    return (
        *("tc", "-n", namespace, "qdisc", "replace", "dev", direction.buffer_device, "root"),
        *("stab", "overhead", str(spec.framing_bytes - ETHERNET_HEADER_BYTES)),
        *("linklayer", "ethernet", "tbf", "rate", f"{direction.rate_kbit}kbit"),
        *("burst", str(burst_bytes(spec)), "limit", str(spec.buffer_bytes)),
    )


def delay_argv(
    direction: Direction, spec: LinkSpec, namespace: str, loss_pct: float
) -> tuple[str, ...]:
    """Command that sets serialisation, one-way delay and random loss of one direction."""
    loss = ("loss", f"{loss_pct}%") if loss_pct else ()
    return (
        *("tc", "-n", namespace, "qdisc", "replace", "dev", direction.delay_device, "root"),
        *("netem", "limit", str(NETEM_LIMIT_PACKETS)),
        *("delay", f"{round(spec.rtt_ms * 500)}us", *loss),
        *("rate", f"{direction.rate_kbit}kbit"),
        str(spec.framing_bytes - ETHERNET_HEADER_BYTES),
    )


@dataclass(frozen=True, slots=True)
class NetemLink:
    """Disciplines on four devices."""

    topology: Topology
    spec: LinkSpec

    def shape(self) -> None:
        """Set the disciplines, without loss.

        Raises:
            MissingError: the kernel has no tbf or no netem.
        """
        for direction in directions(self.spec):
            buffer_in = self.topology.role(direction.buffer_role).name
            delay_in = self.topology.role(direction.delay_role).name
            _apply(buffer_argv(direction, self.spec, buffer_in))
            _apply(delay_argv(direction, self.spec, delay_in, loss_pct=0.0))

    def add_loss(self) -> None:
        """Switch the random loss on, after the link was measured without it."""
        for direction in directions(self.spec):
            delay_in = self.topology.role(direction.delay_role).name
            proc.run(delay_argv(direction, self.spec, delay_in, loss_pct=self.spec.loss_pct))

    def forget(self) -> None:
        """Take the disciplines off, with all that they hold, and put new ones on."""
        for direction in directions(self.spec):
            for role, device in (
                (direction.buffer_role, direction.buffer_device),
                (direction.delay_role, direction.delay_device),
            ):
                name = self.topology.role(role).name
                proc.run(("tc", "-n", name, "qdisc", "delete", "dev", device, "root"))
        self.shape()

    def read_knobs(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """The random loss of both directions in percent, as the kernel has it."""
        values: dict[str, str] = {}
        errors: list[str] = []
        for direction in directions(self.spec):
            found_pct = parse_loss(self._show(direction.delay_role, direction.delay_device))
            values[f"{direction.name}.loss_pct"] = f"{found_pct:g}"
            # The kernel keeps a probability in 32 bits.
            if abs(found_pct - self.spec.loss_pct) > LOSS_RESOLUTION_PCT:
                errors.append(
                    f"{direction.name}: loss is {found_pct:g} %, asked was {self.spec.loss_pct} %"
                )
        return values, tuple(errors)

    def read_report(self) -> LinkReport:
        """Packets as the disciplines count them."""
        down, up = (
            parse_traffic(
                self._show(direction.buffer_role, direction.buffer_device),
                self._show(direction.delay_role, direction.delay_device),
            )
            for direction in directions(self.spec)
        )
        return LinkReport(NETEM.name, down, up, down.dropped + up.dropped)

    def _show(self, role: str, device: str) -> str:
        name = self.topology.role(role).name
        argv = ("tc", "-s", "-j", "-n", name, "qdisc", "show", "dev", device, "root")
        return proc.run(argv).stdout


def parse_loss(text: str) -> float:
    """Random loss in percent from ``tc -j qdisc show``; 0 where netem has none."""
    options = _discipline(text, "netem").get("options", {})
    return float(options.get("loss-random", {}).get("loss", 0.0)) * 100.0


def parse_traffic(buffer: str, delay: str) -> Traffic:
    """One direction's packets from ``tc -s -j qdisc show`` of its tbf and its netem."""
    tbf, netem = _discipline(buffer, "tbf"), _discipline(delay, "netem")
    return Traffic(netem.get("packets", 0), tbf.get("drops", 0), netem.get("drops", 0))


def _discipline(text: str, kind: str) -> dict[str, Any]:
    for discipline in json.loads(text or "[]"):
        if discipline.get("kind") == kind:
            found: dict[str, Any] = discipline
            return found
    return {}


@dataclass(frozen=True, slots=True)
class Netem:
    """The backend for kernels that have netem and tbf."""

    name: str = "netem"
    wire: MiddleWire = "veth"

    def find_problem(self) -> str | None:
        """Why this kernel cannot do it, found out in a scratch namespace; None: it can."""
        problem = find_unloaded(MODULES)
        if problem is not None:
            return problem
        with scratch_namespace() as scratch:
            for kind in PROBES:
                argv = ("tc", "-n", scratch.name, "qdisc", "replace", "dev", "lo", "root", *kind)
                done = proc.run(argv, check=False)
                if done.returncode != 0:
                    return f"`{' '.join(argv)}` failed: {done.stderr.strip()}"
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


def _apply(argv: tuple[str, ...]) -> None:
    try:
        proc.run(argv)
    except proc.CommandError as error:
        if "qdisc kind is unknown" not in str(error):
            raise
        raise MissingError(
            f"this kernel cannot emulate the link, it has no tbf or no netem (`{' '.join(argv)}`): "
            "CONFIG_NET_SCH_TBF, CONFIG_NET_SCH_NETEM; "
            "run on the virtual kernel (--kernel virtual)"
        ) from error
