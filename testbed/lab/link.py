"""The access link: per direction a byte-sized drop-tail buffer, then rate and delay.

Downlink: ``far`` holds the buffer (tbf), ``near`` serialises and delays (netem); uplink the other
way round.  tbf lets a lone packet pass at once and paces a train; netem serialises every packet.
Together: one FIFO with a byte limit, exact serialisation, exact delay (tc-tbf(8), tc-netem(8)).

netem and tbf on veth count the 14 bytes of an Ethernet header with each packet; dummynet, the
paper's emulator, counted IP bytes.  ``stab overhead`` and ``packetoverhead`` take them off.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from testbed import proc
from testbed.errors import MissingError
from testbed.lab.topology import Topology
from testbed.model import LinkSpec

ETHERNET_HEADER_BYTES = 14
NETEM_LIMIT_PACKETS = 100_000
LOSS_RESOLUTION_PCT = 1e-4


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
    # One packet's worth of bucket: the smallest that tbf can work with.
    burst = spec.mtu_bytes + 40
    return (
        *("tc", "-n", namespace, "qdisc", "replace", "dev", direction.buffer_device, "root"),
        *("stab", "overhead", str(spec.framing_bytes - ETHERNET_HEADER_BYTES)),
        *("linklayer", "ethernet", "tbf", "rate", f"{direction.rate_kbit}kbit"),
        *("burst", str(burst), "limit", str(spec.buffer_bytes)),
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


def shape(topology: Topology, spec: LinkSpec) -> None:
    """Put the link between client and server, without loss (calibration comes first).

    Raises:
        MissingError: the kernel has no tbf or no netem.
    """
    for direction in directions(spec):
        buffer_in = topology.role(direction.buffer_role).name
        delay_in = topology.role(direction.delay_role).name
        _apply(buffer_argv(direction, spec, buffer_in))
        _apply(delay_argv(direction, spec, delay_in, loss_pct=0.0))


def add_loss(topology: Topology, spec: LinkSpec) -> None:
    """Switch the random loss on, after the link was measured without it."""
    for direction in directions(spec):
        delay_in = topology.role(direction.delay_role).name
        proc.run(delay_argv(direction, spec, delay_in, loss_pct=spec.loss_pct))


def read_loss(topology: Topology, spec: LinkSpec) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read the random loss of both directions back from the kernel.

    Returns:
        The values in percent by name, and a sentence for each that is not as asked.
    """
    values: dict[str, str] = {}
    errors: list[str] = []
    for direction in directions(spec):
        namespace = topology.role(direction.delay_role).name
        argv = ("tc", "-j", "-n", namespace, "qdisc", "show", "dev", direction.delay_device, "root")
        found_pct = parse_loss(proc.run(argv).stdout)
        values[f"{direction.name}.loss_pct"] = f"{found_pct:g}"
        # The kernel keeps a probability in 32 bits.
        if abs(found_pct - spec.loss_pct) > LOSS_RESOLUTION_PCT:
            errors.append(f"{direction.name}: loss is {found_pct:g} %, asked was {spec.loss_pct} %")
    return values, tuple(errors)


def parse_loss(text: str) -> float:
    """Random loss in percent from ``tc -j qdisc show``; 0 where netem has none."""
    for discipline in json.loads(text or "[]"):
        if discipline.get("kind") == "netem":
            return float(discipline["options"].get("loss-random", {}).get("loss", 0.0)) * 100.0
    return 0.0


def _apply(argv: tuple[str, ...]) -> None:
    try:
        proc.run(argv)
    except proc.CommandError as error:
        if "qdisc kind is unknown" not in str(error):
            raise
        raise MissingError(
            f"this kernel cannot emulate the link, it has no tbf or no netem (`{' '.join(argv)}`); "
            "run on the virtual kernel (--kernel virtual)"
        ) from error


def serialisation_ms(ip_bytes: int, rate_kbit: float, framing_bytes: int) -> float:
    """Time that one packet of ``ip_bytes`` occupies the link, in ms."""
    return (ip_bytes + framing_bytes) * 8 / rate_kbit
