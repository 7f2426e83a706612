r"""Hosts beside client and server, who share the access line: a neighbour and its remote end.

Without them a packet of the client goes client - near - far - server.  A line that is shared needs
a router on either side of it, so that both shaper and delay are of one device for all:

    client ----- home - near = far - edge ----- server
    neighbour --/                      \-- remote

What was ``near`` and ``far`` becomes ``home`` and ``edge``, so that the ends keep their devices;
the link is laid anew between two more namespaces, which are ``near`` and ``far`` from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from socket import inet_aton

from testbed.base.namespace import new_namespace
from testbed.lab.interfaces import add_address, delete_device, wait_until_running
from testbed.lab.offloads import clear_offloads
from testbed.lab.rtnetlink import open_control
from testbed.lab.sysctls import pin_sysctls
from testbed.lab.tcp import PINNED
from testbed.lab.topology import (
    MIDDLE,
    ORIGIN_NETWORK,
    SENDERS,
    WIRES,
    Plan,
    Topology,
    Wire,
    address,
    ipv6_sysctls,
    lay_wire,
    mac_of,
)

NEIGHBOUR_ADDRESS, REMOTE_ADDRESS = "10.0.3.2", "10.0.4.2"
ADDRESSES = inet_aton(NEIGHBOUR_ADDRESS), inet_aton(REMOTE_ADDRESS)
REMOTE_NETWORK, REMOTE_PREFIX = "10.11.0.0/16", bytes((10, 11))
REMOTE_RESOLVER = "10.11.255.53"
"""Where a second page is served, and its names are known."""
HOSTS = ("neighbour", "remote")
NEIGHBOUR_DEVICE, REMOTE_DEVICE = "h0", "r0"
_BEYOND = ("10.0.2.0/24", "10.0.4.0/24", ORIGIN_NETWORK, REMOTE_NETWORK)
_BEFORE = ("10.0.0.0/24", "10.0.3.0/24")
SHARED = Plan(
    wires=(
        replace(WIRES[0], right="home"),
        WIRES[MIDDLE],
        replace(WIRES[2], left="edge"),
        Wire("home", "p0", "10.0.5.1/24", "near", "n0", "10.0.5.2/24"),
        Wire("far", "f1", "10.0.6.1/24", "edge", "q0", "10.0.6.2/24"),
        Wire("neighbour", NEIGHBOUR_DEVICE, f"{NEIGHBOUR_ADDRESS}/24", "home", "p1", "10.0.3.1/24"),
        Wire("edge", "q1", "10.0.4.1/24", "remote", REMOTE_DEVICE, f"{REMOTE_ADDRESS}/24"),
    ),
    routes={
        "client": {"default": "10.0.0.1"},
        "neighbour": {"default": "10.0.3.1"},
        "home": dict.fromkeys(_BEYOND, "10.0.5.2"),
        "near": dict.fromkeys(_BEYOND, "10.0.1.2") | dict.fromkeys(_BEFORE, "10.0.5.1"),
        "far": dict.fromkeys(_BEFORE, "10.0.1.1") | dict.fromkeys(_BEYOND, "10.0.6.2"),
        "edge": dict.fromkeys(_BEFORE, "10.0.6.1")
        | {ORIGIN_NETWORK: "10.0.2.2", REMOTE_NETWORK: REMOTE_ADDRESS},
        "server": {"default": "10.0.2.1"},
        "remote": {"default": "10.0.4.1"},
    },
    senders=(*SENDERS, ("neighbour", NEIGHBOUR_DEVICE), ("remote", REMOTE_DEVICE)),
)
"""Client and server with a neighbour and its remote end."""
MACS = tuple(bytes.fromhex(mac_of(*end).replace(":", "")) for end in ((5, 1), (6, 2)))
"""Of the devices of the neighbour and of its remote end."""
_LAID = (0, 2)
"""The wires that were there before."""


def remote_address(index: int) -> str:
    """Return the address of the ``index``-th origin of a second page (0-based)."""
    return f"10.11.0.{index + 1}"


@contextmanager
def share(laid: Topology, tag: str, mtu_bytes: int, origins: int = 0) -> Iterator[Topology]:
    """Put the neighbour and its remote end beside the ends of a lab that is ``laid``.

    The remote end has addresses for so many ``origins`` of a second page.  The undo deletes what
    was made, and with it the link: ``laid`` joins its ends no longer.
    """
    new = [number for number in range(len(SHARED.wires)) if number not in _LAID]
    with ExitStack() as undo:
        made = {
            role: undo.enter_context(new_namespace(f"{tag}{name}"))
            for role, name in (
                *(("near", "line-near"), ("far", "line-far")),
                *((host, host) for host in HOSTS),
            )
        }
        for namespace in made.values():
            namespace.write_sysctls(ipv6_sysctls("4", "link.ip"))
        with laid.near.entered(), open_control() as control:
            delete_device(control, WIRES[MIDDLE].left_device)
        others = {host: made[host] for host in HOSTS} | {"home": laid.near, "edge": laid.far}
        topology = Topology(
            *(laid.client, made["near"], made["far"], laid.server), plan=SHARED, others=others
        )
        for number in new:
            lay_wire(topology, number, mtu_bytes)
        for role in (*made, "home", "edge"):
            with topology.role(role).entered(), open_control() as control:
                address(control, role, SHARED, new)
        with made["remote"].entered(), open_control() as control:
            served = [remote_address(number) for number in range(origins)]
            for each in (*served, REMOTE_RESOLVER) if served else ():
                add_address(control, "lo", f"{each}/32")
        for number in new:
            wire = SHARED.wires[number]
            wait_until_running(topology.role(wire.left), wire.left_device)
        for role, device in SHARED.senders[len(SENDERS) :]:
            clear_offloads(topology.role(role), device)
            pin_sysctls(topology.role(role), PINNED)
        for role in ("near", "far"):
            topology.role(role).write_sysctls({"net.ipv4.ip_forward": "1"})
        yield topology
