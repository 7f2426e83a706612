"""The lab's hosts and wires: client - near - far - server, four namespaces in a row.

The two routers in the middle carry the access link, so that no sender's own queue is shaped
(TCP small queues would distort it).  Addresses are static, neighbours permanent, IPv6 off: no
packet is on the wire that the client or the server did not mean to send.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testbed.base import proc
from testbed.base.namespace import Namespace
from testbed.lab.offloads import clear_offloads

CLIENT_ADDRESS = "10.0.0.2"
SERVER_ADDRESS = "10.0.2.2"
ORIGIN_NETWORK = "10.10.0.0/16"
RESOLVER_ADDRESS = "10.10.255.53"
MAX_ORIGINS = 250
# Frames that a TAP holds while the link is not running: more than any buffer lets through at once.
TAP_QUEUE_FRAMES = 10_000
IPV6_SYSCTLS = Path("/proc/sys/net/ipv6")


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
    "client": ("default via 10.0.0.1",),
    "near": ("10.0.2.0/24 via 10.0.1.2", f"{ORIGIN_NETWORK} via 10.0.1.2"),
    "far": ("10.0.0.0/24 via 10.0.1.1", f"{ORIGIN_NETWORK} via 10.0.2.2"),
    "server": ("default via 10.0.2.1",),
}


@dataclass(frozen=True, slots=True)
class Topology:
    """The four namespaces, by role."""

    client: Namespace
    near: Namespace
    far: Namespace
    server: Namespace

    def role(self, name: str) -> Namespace:
        """The namespace of one of ``ROLES``."""
        namespace: Namespace = getattr(self, name)
        return namespace


def devices_of(role: str) -> dict[str, str]:
    """The devices of ``role``, each with the address at the other end of its wire."""
    found = {}
    for wire in WIRES:
        if wire.left == role:
            found[wire.left_device] = wire.right_address.partition("/")[0]
        if wire.right == role:
            found[wire.right_device] = wire.left_address.partition("/")[0]
    return found


def origin_address(index: int) -> str:
    """Address of the ``index``-th origin of a page (0-based).

    Raises:
        ValueError: more origins than the lab has addresses for.
    """
    if not 0 <= index < MAX_ORIGINS:
        raise ValueError(f"a page may have {MAX_ORIGINS} origins at the most")
    return f"10.10.0.{index + 1}"


@contextmanager
def open_topology(
    tag: str, mtu_bytes: int, origins: int, middle: MiddleWire = "veth"
) -> Iterator[Topology]:
    """Build the row of namespaces; ``tag`` keeps the names of two labs apart.

    The undo deletes the namespaces that were made here, and with them every device.
    """
    topology = Topology(*(Namespace(f"{tag}{role}") for role in ROLES))
    with ExitStack() as undo:
        for role in ROLES:
            name = topology.role(role).name
            proc.run(("ip", "netns", "add", name))
            undo.callback(proc.run, ("ip", "netns", "delete", name), check=False)
            # Before there is a device: none may announce itself.  Guests have no IPv6 at all.
            if IPV6_SYSCTLS.exists():
                topology.role(role).write_sysctls({"net.ipv6.conf.default.disable_ipv6": "1"})
        _batch(("ip", "-batch", "-"), _wire_lines(topology, mtu_bytes, middle))
        for role in ROLES:
            name = topology.role(role).name
            lines = _tap_lines(role, mtu_bytes) if middle == "taps" else []
            _batch(("ip", "-n", name, "-batch", "-"), lines + _address_lines(role, origins))
        for role, device in SENDERS:
            clear_offloads(topology.role(role), device)
        for role in ("near", "far"):
            topology.role(role).write_sysctls({"net.ipv4.ip_forward": "1"})
        yield topology


def _batch(argv: tuple[str, ...], lines: list[str]) -> None:
    proc.run(argv, stdin="".join(f"{line}\n" for line in lines))


def _mac(wire: int, side: int) -> str:
    return f"02:00:00:00:{wire:02x}:{side:02x}"


def _wire_lines(topology: Topology, mtu_bytes: int, middle: MiddleWire) -> list[str]:
    return [
        f"link add {wire.left_device} address {_mac(i, 1)} mtu {mtu_bytes} "
        f"netns {topology.role(wire.left).name} type veth "
        f"peer name {wire.right_device} address {_mac(i, 2)} mtu {mtu_bytes} "
        f"netns {topology.role(wire.right).name}"
        for i, wire in enumerate(WIRES)
        if i != MIDDLE or middle == "veth"
    ]


def _tap_lines(role: str, mtu_bytes: int) -> list[str]:
    """For inside the namespace: a TAP belongs to the one that it was made in."""
    wire = WIRES[MIDDLE]
    return [
        line
        for side, (owner, device) in enumerate(
            ((wire.left, wire.left_device), (wire.right, wire.right_device)), start=1
        )
        if owner == role
        for line in (
            f"tuntap add dev {device} mode tap",
            f"link set {device} address {_mac(MIDDLE, side)} mtu {mtu_bytes} "
            f"txqueuelen {TAP_QUEUE_FRAMES}",
        )
    ]


def _address_lines(role: str, origins: int) -> list[str]:
    lines = ["link set lo up"]
    for i, wire in enumerate(WIRES):
        ends = (
            (wire.left, wire.left_device, wire.left_address, wire.right_address, 2),
            (wire.right, wire.right_device, wire.right_address, wire.left_address, 1),
        )
        for owner, device, address, peer, peer_side in ends:
            if owner == role:
                neighbour = f"{peer.partition('/')[0]} lladdr {_mac(i, peer_side)} dev {device}"
                lines += [
                    f"address add {address} dev {device}",
                    f"link set {device} up",
                    f"neighbour add {neighbour} nud permanent",
                ]
    lines += [f"route add {route}" for route in ROUTES[role]]
    if role == "server":
        lines += [f"address add {origin_address(i)}/32 dev lo" for i in range(origins)]
        lines.append(f"address add {RESOLVER_ADDRESS}/32 dev lo")
    return lines
