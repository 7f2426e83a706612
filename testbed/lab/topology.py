"""The lab's hosts and wires: client - near - far - server, four namespaces in a row.

The two routers in the middle carry the access link, so that no sender's own queue is shaped
(TCP small queues would distort it).  Addresses are static and neighbours permanent, IPv6 is off or
without its announcements (RFC 4861, RFC 3810): no packet is on the wire that the client or the
server did not mean to send.  The address of IPv6 beside 10.A.B.C is 2001:db8:A:B::C (RFC 3849):
private ones (RFC 4193) come after those of IPv4 where a program chooses (RFC 6724).
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from testbed.base.addresses import format_address, pack_address
from testbed.base.errors import MissingError
from testbed.base.namespace import Namespace, new_namespace
from testbed.lab.interfaces import (
    End,
    add_address,
    add_neighbour,
    add_tap,
    add_wire,
    mute,
    set_mtu,
    set_route,
    set_up,
    wait_until_running,
)
from testbed.lab.offloads import clear_offloads
from testbed.lab.rtnetlink import open_control
from testbed.model import Ip

CLIENT_ADDRESS = "10.0.0.2"
SERVER_ADDRESS = "10.0.2.2"
ORIGIN_NETWORK = "10.10.0.0/16"
RESOLVER_ADDRESS = "10.10.255.53"
MAX_ORIGINS = 250
# Frames that a TAP holds while the link is not running: more than any buffer lets through at once.
TAP_QUEUE_FRAMES = 10_000
MTU_BYTES = 1500
"""Of wires that no condition is known for yet."""
IPV6_SYSCTLS = Path("/proc/sys/net/ipv6")
QUIET_IPV6 = {
    f"net.ipv6.conf.{devices}.{name}": value
    for devices in ("all", "default")
    for name, value in {
        "accept_ra": "0", "accept_dad": "0", "autoconf": "0", "addr_gen_mode": "1",
        "router_solicitations": "0",
    }.items()
}  # fmt: skip
"""No address but those that are given, and no question whether others have it."""
_BITS = {"": "", "16": "/48", "24": "/64", "32": "/128"}
"""The prefix length of IPv6 beside one of IPv4."""

MiddleWire = Literal["veth", "taps"]
"""Between ``near`` and ``far``: a pair of devices, or two that a program has to join."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Two devices: name and address on each side, in namespaces given by role."""

    left: str
    left_device: str
    left_address: str
    right: str
    right_device: str
    right_address: str


WIRES = (
    Wire("client", "c0", "10.0.0.2/24", "near", "n0", "10.0.0.1/24"),
    Wire("near", "n1", "10.0.1.1/24", "far", "f0", "10.0.1.2/24"),
    Wire("far", "f1", "10.0.2.1/24", "server", "s0", "10.0.2.2/24"),
)
MIDDLE = 1
SENDERS = (("client", "c0"), ("server", "s0"))
ROLES = ("client", "near", "far", "server")
ROUTES = {
    "client": {"default": "10.0.0.1"},
    "near": {"10.0.2.0/24": "10.0.1.2", ORIGIN_NETWORK: "10.0.1.2"},
    "far": {"10.0.0.0/24": "10.0.1.1", ORIGIN_NETWORK: "10.0.2.2"},
    "server": {"default": "10.0.2.1"},
}
"""The gateway to each destination, by role."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is wired to whom, the gateway to each destination by role, and whose device sends.

    ``senders`` are on the near and on the far side of the link in turn; a client and a server
    first.  ``wires`` and ``routes`` are those of IPv4, and ``ip`` says which there are.
    """

    wires: tuple[Wire, ...] = WIRES
    routes: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: ROUTES)
    senders: tuple[tuple[str, str], ...] = SENDERS
    ip: Ip = "4"

    def routes_of(self, role: str) -> dict[str, str]:
        """Return the gateway to each destination; ``::/0`` is the default of IPv6.

        Where IPv6 is broken the server has no way back: what comes stays without an answer.
        """
        given = self.routes[role]
        routes = {} if self.ip == "6" else dict(given)
        if self.ip == "4" or (self.ip == "dual-broken" and role == "server"):
            return routes
        return routes | {
            "::/0" if where == "default" else to_ipv6(where): to_ipv6(gateway)
            for where, gateway in given.items()
        }


ROW = Plan()
"""Client and server alone."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The four namespaces, by role; ``others`` has those of neighbours, where ``plan`` has any."""

    client: Namespace
    near: Namespace
    far: Namespace
    server: Namespace
    plan: Plan = field(default=ROW, kw_only=True)
    others: Mapping[str, Namespace] = field(default_factory=dict, kw_only=True)

    @property
    def roles(self) -> tuple[str, ...]:
        """The names of all namespaces."""
        return (*ROLES, *self.others)

    def role(self, name: str) -> Namespace:
        """The namespace of one of ``roles``."""
        if name in self.others:
            return self.others[name]
        namespace: Namespace = getattr(self, name)
        return namespace


def devices_of(role: str, plan: Plan = ROW) -> dict[str, str]:
    """The devices of ``role``, each with the address at the other end of its wire."""
    peers = {}
    for wire in plan.wires:
        if wire.left == role:
            peers[wire.left_device] = wire.right_address.partition("/")[0]
        if wire.right == role:
            peers[wire.right_device] = wire.left_address.partition("/")[0]
    return peers


def to_ipv6(address: str) -> str:
    """Return the address of IPv6 beside one of IPv4, or the network beside one, as RFC 5952 has it.

    The number of a subnet is written with the same digits.
    """
    host, _, length = address.partition("/")
    _, upper, lower, last = host.split(".")
    packed = pack_address(f"2001:db8:{upper}:{lower}::{last}")
    return format_address(packed) + _BITS[length]


def ipv6_sysctls(ip: str, knob: str) -> dict[str, str]:
    """Return what a new namespace needs to be without IPv6, or to have it without announcements.

    Raises:
        MissingError: the kernel has no IPv6, and ``ip``, of a ``knob``, asks for it.
    """
    if IPV6_SYSCTLS.exists():
        return {"net.ipv6.conf.default.disable_ipv6": "1"} if ip == "4" else QUIET_IPV6
    if ip != "4":
        raise MissingError(f"{knob} = {ip}: this kernel has no IPv6; it needs CONFIG_IPV6=y")
    return {}


def addresses_in(ip: Ip, address: str) -> tuple[str, ...]:
    """Return the addresses of a host in a lab with ``ip``; one of IPv4 comes first."""
    return {"4": (address,), "6": (to_ipv6(address),)}.get(ip, (address, to_ipv6(address)))


def origin_address(index: int) -> str:
    """Address of the ``index``-th origin of a page (0-based), of IPv4.

    Raises:
        ValueError: more origins than the lab has addresses for.
    """
    if not 0 <= index < MAX_ORIGINS:
        raise ValueError(f"a page may have {MAX_ORIGINS} origins at the most")
    return f"10.10.0.{index + 1}"


CLIENT_ENDS = tuple(map(pack_address, addresses_in("dual", CLIENT_ADDRESS)))
"""The client's addresses as packets have them, of IPv4 and IPv6."""


@contextmanager
def open_topology(
    tag: str,
    mtu_bytes: int,
    origins: int,
    middle: MiddleWire = "veth",
    laid: Topology | None = None,
    ip: Ip = "4",
) -> Iterator[Topology]:
    """Build the row of namespaces for a condition; ``tag`` keeps the names of two labs apart.

    The undo deletes the namespaces that were made here, and with them every device.  Wires that
    were ``laid`` before are used instead, and stay.
    """
    with lay_topology(tag, middle, ip) if laid is None else nullcontext(laid) as topology:
        fit_topology(topology, mtu_bytes, origins)
        yield topology


@contextmanager
def lay_topology(tag: str, middle: MiddleWire = "veth", ip: Ip = "4") -> Iterator[Topology]:
    """Build what all conditions with ``ip`` have of it: packets pass, the server has an address.

    Raises:
        MissingError: the kernel has no IPv6, and ``ip`` asks for it.
    """
    with lay_wires(tag, MTU_BYTES, middle, ip) as topology:
        for role in ROLES:
            with topology.role(role).entered(), open_control() as control:
                address(control, role, topology.plan, range(len(WIRES)))
        settle_wires(topology, middle)
        for role in ("near", "far"):
            topology.role(role).write_sysctls({"net.ipv4.ip_forward": "1"})
            if ip != "4":
                topology.role(role).write_sysctls({"net.ipv6.conf.all.forwarding": "1"})
        yield topology


def fit_topology(topology: Topology, mtu_bytes: int, origins: int) -> None:
    """Give all wires an MTU, and the server its ``origins`` addresses and the resolver's."""
    for role in ROLES:
        with topology.role(role).entered(), open_control() as control:
            if mtu_bytes != MTU_BYTES:
                for device in devices_of(role):
                    set_mtu(control, device, mtu_bytes)
            if role == "server":
                for address in (*(origin_address(i) for i in range(origins)), RESOLVER_ADDRESS):
                    for each in addresses_in(topology.plan.ip, f"{address}/32"):
                        add_address(control, "lo", each)


@contextmanager
def lay_wires(tag: str, mtu_bytes: int, middle: MiddleWire, ip: Ip = "4") -> Iterator[Topology]:
    """Make the namespaces and the devices of all wires, switched off; the undo deletes them."""
    sysctls = ipv6_sysctls(ip, "link.ip")
    with ExitStack() as undo:
        topology = Topology(
            *(undo.enter_context(new_namespace(f"{tag}{role}")) for role in ROLES),
            plan=replace(ROW, ip=ip),
        )
        # Before there is a device: none may announce itself.
        for role in ROLES:
            topology.role(role).write_sysctls(sysctls)
        _connect(topology, mtu_bytes, middle)
        yield topology


def settle_wires(topology: Topology, middle: MiddleWire) -> None:
    """Wait until the wires, switched on by now, run; the ends send each packet as it is."""
    for number, wire in enumerate(WIRES):
        if number != MIDDLE or middle == "veth":  # a TAP runs when a program has joined it
            # The end that was switched on last finds its peer there and runs at once.
            wait_until_running(topology.role(wire.left), wire.left_device)
    for role, device in SENDERS:
        clear_offloads(topology.role(role), device)


def _connect(topology: Topology, mtu_bytes: int, middle: MiddleWire) -> None:
    for number, wire in enumerate(WIRES):
        if number != MIDDLE or middle == "veth":
            lay_wire(topology, number, mtu_bytes)
            continue
        # A TAP belongs to the namespace that it is made in.
        ends = ((wire.left, wire.left_device), (wire.right, wire.right_device))
        for side, (role, device) in enumerate(ends, 1):
            with topology.role(role).entered(), open_control() as control:
                add_tap(control, device, mac_of(number, side), mtu_bytes, TAP_QUEUE_FRAMES)


def lay_wire(topology: Topology, number: int, mtu_bytes: int) -> None:
    """Make the two devices of a wire of the topology's plan, switched off."""
    wire = topology.plan.wires[number]
    left, right = topology.role(wire.left), topology.role(wire.right)
    with left.opened() as here, right.opened() as there, open_control() as control:
        ends = (
            End(wire.left_device, mac_of(number, 1), here),
            End(wire.right_device, mac_of(number, 2), there),
        )
        add_wire(control, *ends, mtu_bytes)


def mac_of(wire: int, side: int) -> str:
    """Return the hardware address of the left (1) or right (2) device of a wire, by its number."""
    return f"02:00:00:00:{wire:02x}:{side:02x}"


CLIENT_MAC = bytes.fromhex(mac_of(0, 1).replace(":", ""))


def address(control: socket.socket, role: str, plan: Plan, numbers: Iterable[int]) -> None:
    """Switch the devices of ``role`` on, and give it addresses, neighbours and routes.

    The devices are those of the wires with these ``numbers`` in the ``plan``.
    """
    set_up(control, "lo")
    for number in numbers:
        wire = plan.wires[number]
        ends = (
            (wire.left, wire.left_device, wire.left_address, wire.right_address, 2),
            (wire.right, wire.right_device, wire.right_address, wire.left_address, 1),
        )
        for owner, device, address, peer, peer_side in ends:
            if owner == role:
                if plan.ip != "4":
                    mute(control, device)
                for each in addresses_in(plan.ip, address):
                    add_address(control, device, each)
                set_up(control, device)
                for each in addresses_in(plan.ip, peer):
                    host = each.partition("/")[0]
                    add_neighbour(control, device, host, mac_of(number, peer_side))
    for destination, gateway in plan.routes_of(role).items():
        set_route(control, destination, gateway)
