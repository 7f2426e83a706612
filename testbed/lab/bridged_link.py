"""Access link as one wire: the lab's link between two bridges, measured, for hosts of others.

The same devices, buffers and delays as in the lab, but frames are bridged and not routed, so that
whoever gets the two ends sees one Ethernet link (Mininet: ``firstflight.mininet``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testbed.base.errors import LabError
from testbed.lab.exactness import HOST
from testbed.lab.interfaces import (
    add_address,
    add_bridge,
    add_neighbour,
    set_up,
)
from testbed.lab.link.protocol import Link, LinkBackend, require_emulated
from testbed.lab.real_time_calibration import calibrate_bounded
from testbed.lab.rtnetlink import open_control
from testbed.lab.topology import (
    CLIENT_ADDRESS,
    SERVER_ADDRESS,
    WIRES,
    MiddleWire,
    Topology,
    lay_wires,
    mac_of,
    settle_wires,
)
from testbed.model import LinkSpec, Measurement

PREFIX_BITS = 16
"""Of the network that both ends are in, as long as they are measured."""
BRIDGE = "bridge"
TRIES = 3
"""How often a link is measured before it is refused: another program may have had the processor."""
_TAG = re.compile(r"[A-Za-z0-9_-]{1,16}")


@dataclass(frozen=True, slots=True)
class SingleLink:
    """A running link from ``c0`` in the client's namespace to ``s0`` in the server's.

    The downlink is from the server to the client.
    """

    topology: Topology
    link: Link
    measurements: tuple[Measurement, ...]


@contextmanager
def open_wire(
    spec: LinkSpec, tag: str, backend: LinkBackend, seed: int = 0
) -> Iterator[SingleLink]:
    """Build, shape and measure a link; the undo takes it down again.

    Args:
        spec: what is asked.
        tag: begins the names of its namespaces.
        backend: what emulates it.
        seed: of its random loss.

    Raises:
        LabError: it is not what was asked, by what was measured.
        MissingError: the kernel does not have what is asked.
        OSError: this process may not make namespaces.
    """
    if not _TAG.fullmatch(tag):
        raise ValueError(f"{tag!r} cannot begin the name of a namespace")
    require_emulated(backend, spec)
    with (
        _bridged(tag, spec.mtu_bytes, backend.wire) as topology,
        backend.open(topology, spec, seed) as link,
    ):
        measurements = _measure(topology, spec, link)
        link.complete()
        yield SingleLink(topology, link, measurements)


def _measure(topology: Topology, spec: LinkSpec, link: Link) -> tuple[Measurement, ...]:
    for _ in range(TRIES):
        measurements = calibrate_bounded(topology, spec, link, HOST)
        if all(measurement.within for measurement in measurements):
            return measurements
    wrong = "; ".join(
        f"{measurement.name}: measured {measurement.measured:.6g} {measurement.unit}, "
        f"asked {measurement.theory:.6g} {measurement.unit} (tolerance {measurement.bound})"
        for measurement in measurements
        if not measurement.within
    )
    raise LabError(
        f"the link is not what was asked, {TRIES} times: {wrong}; is the machine busy, or the rate "
        "too high for it?"
    )


@contextmanager
def _bridged(tag: str, mtu_bytes: int, middle: MiddleWire) -> Iterator[Topology]:
    """Build two ends with a bridge before each, and nothing between the bridges yet."""
    with lay_wires(tag, mtu_bytes, middle) as topology:
        for role, ports in (("near", ("n0", "n1")), ("far", ("f0", "f1"))):
            with topology.role(role).entered(), open_control() as control:
                add_bridge(control, BRIDGE, ports)
                for device in ("lo", *ports, BRIDGE):
                    set_up(control, device)
        ends = (
            ("client", "c0", CLIENT_ADDRESS, SERVER_ADDRESS, mac_of(len(WIRES) - 1, 2)),
            ("server", "s0", SERVER_ADDRESS, CLIENT_ADDRESS, mac_of(0, 1)),
        )
        for role, device, address, peer, peer_mac in ends:
            with topology.role(role).entered(), open_control() as control:
                add_address(control, device, f"{address}/{PREFIX_BITS}")
                set_up(control, "lo")
                set_up(control, device)
                add_neighbour(control, device, peer, peer_mac)
        settle_wires(topology, middle)
        yield topology
