"""Path MTU of the access line: its two devices take shorter packets than those of the ends.

The routers before the line are the kernel's own: what is too long and must not be cut they throw
away, and tell its sender how much would pass (RFC 1191).  A black hole is a router whose own
packets, ICMP alone, go nowhere (ip-rule(8)).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from testbed.lab.interfaces import set_mtu
from testbed.lab.path import read_ip
from testbed.lab.routes import describe_rule
from testbed.lab.rtnetlink import CREATE, NEWRULE, attribute, open_control, order
from testbed.lab.topology import MIDDLE, WIRES, Topology
from testbed.model import LinkSpec

ROUTERS = {"up": ("near", WIRES[MIDDLE].left_device), "down": ("far", WIRES[MIDDLE].right_device)}
"""Who is before the line in each direction, and its device there."""
_PRIORITY, _INPUT, _BLACK_HOLE = 6, 3, 6  # FRA_PRIORITY, FRA_IIFNAME, FR_ACT_BLACKHOLE
_RULE = b"".join((
    struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 0, 0, 0, _BLACK_HOLE, 0),
    attribute(_PRIORITY, struct.pack("=I", 1)),
    attribute(_INPUT, b"lo\0"),
))  # fmt: skip
"""What the host itself sends is thrown away, before any table is asked."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Packets so far that were too long for the line, and messages of its router about such."""

    too_long: int
    told: int


def narrow(topology: Topology, spec: LinkSpec) -> None:
    """Give the line its MTU, and have the routers before it say nothing, if they shall not.

    The undo is that of the namespaces.

    Raises:
        OSError: the kernel refuses.
    """
    if spec.path_mtu_bytes is None:
        return
    for role, device in ROUTERS.values():
        with topology.role(role).entered(), open_control() as control:
            set_mtu(control, device, spec.path_mtu_bytes)
            if spec.path_mtu_discovery == "black-hole":
                order(control, NEWRULE, _RULE, CREATE)


def list_lines(spec: LinkSpec) -> dict[str, str]:
    """The lines of a ``State`` that ``narrow`` makes other than those of the plain lab."""
    if spec.path_mtu_bytes is None:
        return {}
    lines = {
        f"{role}: MTU of {device}": str(spec.path_mtu_bytes) for role, device in ROUTERS.values()
    }
    if spec.path_mtu_discovery == "black-hole":
        name, text = describe_rule(_RULE)
        lines |= {f"{role}: {name}": text for role, _ in ROUTERS.values()}
    return lines


def read_knobs(table: Mapping[str, str], spec: LinkSpec) -> dict[str, str]:
    """What both routers have by the ``table`` of a ``State``, where a path MTU was asked for."""
    if spec.path_mtu_bytes is None:
        return {}
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
    return {f"link.{knob}": " ".join(sorted(values)) for knob, values in found.items()}


def list_learned(table: Mapping[str, str], spec: LinkSpec) -> set[str]:
    """The lines of a ``State`` with what an end has been told of the path, a route to each peer."""
    return {
        name
        for name, text in table.items()
        if name.startswith(("client: route ", "server: route ")) and name.endswith("/32")
        if spec.path_mtu_bytes is not None and f" mtu {spec.path_mtu_bytes}" in text
    }


def read_refused(topology: Topology) -> dict[str, Refused]:
    """What the router before the line did, by direction (proc_net(5), snmp)."""
    found = {}
    for way, (role, _) in ROUTERS.items():
        ip, icmp = (read_ip(topology.role(role), protocol) for protocol in ("Ip", "Icmp"))
        found[way] = Refused(int(ip["FragFails"]), int(icmp["OutDestUnreachs"]))
    return found


def compare_refused(
    before: Mapping[str, Refused], after: Mapping[str, Refused]
) -> tuple[dict[str, int], int]:
    """Packets that were too long, as ``down.too_long``, and how many messages about such went."""
    too_long = {f"{way}.too_long": after[way].too_long - before[way].too_long for way in after}
    return too_long, sum(after[way].told - before[way].told for way in after)
