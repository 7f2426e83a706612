"""Path MTU of the access line: its two devices take shorter packets than those of the ends.

The routers before the line are the kernel's own: what is too long and must not be cut they throw
away, and tell its sender how much would pass (RFC 1191).  A black hole is a router whose own
packets, ICMP alone, go nowhere (ip-rule(8)).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping

from testbed.lab.acting import Acting, Reading
from testbed.lab.interfaces import set_mtu
from testbed.lab.path import read_ip
from testbed.lab.readback import State
from testbed.lab.routes import describe_rule
from testbed.lab.rtnetlink import CREATE, NEWRULE, attribute, open_control, order
from testbed.lab.topology import MIDDLE, WIRES, Topology
from testbed.model import Linked

ROUTERS = {"up": ("near", WIRES[MIDDLE].left_device), "down": ("far", WIRES[MIDDLE].right_device)}
"""Who is before the line in each direction, and its device there."""
_PRIORITY, _INPUT, _BLACK_HOLE = 6, 3, 6  # FRA_PRIORITY, FRA_IIFNAME, FR_ACT_BLACKHOLE
_RULE = b"".join((
    struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 0, 0, 0, _BLACK_HOLE, 0),
    attribute(_PRIORITY, struct.pack("=I", 1)),
    attribute(_INPUT, b"lo\0"),
))  # fmt: skip
"""What the host itself sends is thrown away, before any table is asked."""


class PathMtu(Acting):
    """Gives the line its MTU, and has the routers before it say nothing, if they shall not."""

    def act(self, topology: Topology, condition: Linked) -> None:
        """Do so at both routers."""
        spec = condition.link
        if spec.path_mtu_bytes is None:
            return
        for role, device in ROUTERS.values():
            with topology.role(role).entered(), open_control() as control:
                set_mtu(control, device, spec.path_mtu_bytes)
                if spec.path_mtu_discovery == "black-hole":
                    order(control, NEWRULE, _RULE, CREATE)

    def lines(self, condition: Linked) -> dict[str, str]:
        """The MTU of the routers' devices, and their rule."""
        spec = condition.link
        if spec.path_mtu_bytes is None:
            return {}
        lines = {
            f"{role}: MTU of {device}": str(spec.path_mtu_bytes)
            for role, device in ROUTERS.values()
        }
        if spec.path_mtu_discovery == "black-hole":
            name, text = describe_rule(_RULE)
            lines |= {f"{role}: {name}": text for role, _ in ROUTERS.values()}
        return lines

    def read(self, topology: Topology, state: State, condition: Linked) -> Reading:
        """What both routers have."""
        if condition.link.path_mtu_bytes is None:
            return {}, ()
        table = state.table
        name, text = describe_rule(_RULE)
        found = {
            "path_mtu_bytes": {
                table.get(f"{role}: MTU of {device}", "") for role, device in ROUTERS.values()
            },
            "path_mtu_discovery": {
                "black-hole" if table.get(f"{role}: {name}") == text else "icmp"
                for role, _ in ROUTERS.values()
            },
        }
        return {f"link.{knob}": " ".join(sorted(values)) for knob, values in found.items()}, ()

    def expect(self, condition: Linked) -> Iterator[tuple[str, str | None]]:
        """MTU, and what is told of it."""
        spec = condition.link
        if spec.path_mtu_bytes is not None:
            yield "link.path_mtu_bytes", str(spec.path_mtu_bytes)
            yield "link.path_mtu_discovery", spec.path_mtu_discovery

    def learned(self, table: Mapping[str, str], condition: Linked) -> set[str]:
        """What an end has been told of the path: a route to each peer."""
        mtu_bytes = condition.link.path_mtu_bytes
        return {
            name
            for name, text in table.items()
            if name.startswith(("client: route ", "server: route ")) and name.endswith("/32")
            if mtu_bytes is not None and f" mtu {mtu_bytes}" in text
        }

    def count(self, topology: Topology, condition: Linked) -> tuple[dict[str, int], int]:
        """Packets that were too long, less the messages about such (proc_net(5), snmp)."""
        too_long: dict[str, int] = {}
        told = 0
        for way, (role, _) in ROUTERS.items() if condition.link.path_mtu_bytes is not None else ():
            ip, icmp = (read_ip(topology.role(role), protocol) for protocol in ("Ip", "Icmp"))
            too_long[f"{way}.too_long"] = int(ip["FragFails"])
            told += int(icmp["OutDestUnreachs"])
        return too_long, sum(too_long.values()) - told


PATH_MTU = PathMtu()
