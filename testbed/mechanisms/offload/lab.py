"""Segmentation offloads of client and server, on where asked for (ethtool(8)).

With GSO the stack cuts before the device, so that a packet is what the wire has.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.lab.acting import Acting, Reading
from testbed.lab.offloads import read_offloads, switch_offload
from testbed.lab.readback import State
from testbed.lab.topology import SENDERS, Topology
from testbed.model import Linked


class Offload(Acting):
    """Switches offloads on; the plain lab has none."""

    def act(self, topology: Topology, condition: Linked) -> None:
        """Switch on, at the devices of client and server."""
        for role, device in SENDERS:
            for name in _wanted(condition):
                switch_offload(topology.role(role), device, name, on=True)

    def read(self, topology: Topology, state: State, condition: Linked) -> Reading:
        """What everyone who sends has on."""
        values: dict[str, str] = {}
        errors: list[str] = []
        for role, device in topology.plan.senders:
            on = " ".join(read_offloads(topology.role(role), device)) or "none"
            wanted = _wanted(condition) if (role, device) in SENDERS else ()
            asked = " ".join(wanted) or "none"
            values[f"{role}.offloads"] = on
            if on != asked:
                errors.append(f"{role}: offloads of {device} are {on}, asked was {asked}")
        return values, tuple(errors)

    def expect(self, condition: Linked) -> Iterator[tuple[str, str | None]]:
        """What client and server have on."""
        for role, _ in SENDERS:
            yield f"{role}.offloads", " ".join(_wanted(condition)) or "none"


def _wanted(condition: Linked) -> tuple[str, ...]:
    return tuple(name for name in ("gso", "gro") if getattr(condition.link, name))


OFFLOAD = Offload()
