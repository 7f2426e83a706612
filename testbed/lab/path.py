"""Whether every packet between client and server went over the link (proc_net(5), dev)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from testbed.base.namespace import Namespace
from testbed.lab.link.protocol import LinkReport
from testbed.lab.topology import IPV6_SYSCTLS, MIDDLE, ROW, Plan, Topology

LOOPBACK = "lo"


@dataclass(frozen=True, slots=True)
class Device:
    """Packets that a device received, sent, and could not send."""

    received: int
    sent: int
    unsent: int


Taken = tuple[int, int, int]
"""Packets that devices received, that IP took in, and that it gave on."""
BETWEEN = ("near", "far")
"""The hosts between which the link is."""
NOTHING: Mapping[str, int] = MappingProxyType({})
GONE = Device(0, 0, 0)
"""A device that is not there any more."""


def read_devices(namespace: Namespace) -> dict[str, Device]:
    """The counters of all devices of ``namespace``, by name."""
    with namespace.entered():
        return parse_devices(Path("/proc/thread-self/net/dev").read_text())


def parse_devices(text: str) -> dict[str, Device]:
    """The counters in the text of /proc/net/dev, by name."""
    devices = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        fields = [int(number) for number in numbers.split()]
        devices[name.strip()] = Device(fields[1], fields[9], fields[11])
    return devices


def count_strays(
    counters: dict[str, dict[str, Device]], made: Mapping[str, int] = NOTHING, plan: Plan = ROW
) -> int:
    """Packets that went another way than client, near, far, server, or vanished beside the link.

    Args:
        counters: of every role of the lab, by role and device.  Packets on their way, and those
            that the link drops, are no strays.
        made: packets that a role between the ends sent as its own, such as those of a ping there.
        plan: who is wired to whom.
    """
    # What came out of the link's far end is all that can have reached the hosts there, and back.
    around = (
        max(
            0,
            sum(_received(counters, end, device) for end, device in ends)
            - _received(counters, role, out)
            - made.get(role, 0),
        )
        for ends, role, out in (
            (plan.senders[1::2], "far", "f0"),
            (plan.senders[::2], "near", "n1"),
        )
    )
    ours = {role: {LOOPBACK} for role in counters}
    for wire in plan.wires:
        ours[wire.left].add(wire.left_device)
        ours[wire.right].add(wire.right_device)
    elsewhere = sum(
        device.received + device.sent
        for role, devices in counters.items()
        for name, device in devices.items()
        if name not in ours[role]
    )
    return sum(around) + elsewhere


def count_inside(counters: dict[str, dict[str, Device]]) -> int:
    """Packets that went into the link from both ends and did not come out: dropped, or inside.

    Args:
        counters: of every role of the lab, by role and device.
    """
    outer = (counters["near"].get("n0", GONE), counters["far"].get("f1", GONE))
    return sum(device.received - device.sent for device in outer)


def count_refused(end: str, before: Taken, after: Taken, damaged: int = 0) -> tuple[str, ...]:
    """A sentence if packets reached the devices of ``end`` and not its sockets.

    A filter that drops them leaves no other trace: neither on the link nor in a discipline.  Of
    those that the link ``damaged`` IP drops what it sees itself.
    """
    received, taken, kept = (now - was for was, now in zip(before, after, strict=True))
    if received - damaged <= kept <= taken <= received:
        return ()
    return (f"{end}: its devices received {received} packets, IP took {taken}, kept {kept}",)


def read_taken(namespace: Namespace) -> Taken:
    """What the devices of an end received, IP took in, and gave on (proc_net(5), snmp)."""
    devices = read_devices(namespace)
    told = read_ip(namespace)
    received = sum(device.received for device in devices.values())
    return received, told["InReceives"], told["InDelivers"]


def read_ip(namespace: Namespace, protocol: str = "Ip") -> Counter[str]:
    """The counters of IPv4 and IPv6 in ``namespace``, or of ``Icmp``, by name (proc_net(5))."""
    with namespace.entered():
        tables = Path("/proc/thread-self/net")
        lines = (tables / "snmp").read_text().splitlines()
        more = (tables / "snmp6").read_text().splitlines() if IPV6_SYSCTLS.exists() else []
    names, values = (line.split()[1:] for line in lines if line.startswith(f"{protocol}:"))
    told = Counter(dict(zip(names, map(int, values), strict=True)))
    rows = (line.split() for line in more if line.startswith(f"{protocol}6"))
    told.update({name.removeprefix(f"{protocol}6"): int(value) for name, value in rows})
    return told


def _received(counters: dict[str, dict[str, Device]], role: str, name: str) -> int:
    return counters[role].get(name, GONE).received


def read_all_devices(topology: Topology) -> dict[str, dict[str, Device]]:
    """The counters of all devices, by role and name."""
    # The ends first: a packet that arrives meanwhile must not look like a stray.
    ends = tuple(role for role, _ in topology.plan.senders)
    order = (*ends, *(role for role in topology.roles if role not in ends))
    return {role: read_devices(topology.role(role)) for role in order}


def read_strays(topology: Topology, copies: Mapping[str, int] = NOTHING) -> int:
    """``count_strays`` of the running lab, whose link made ``copies`` at ``near`` and ``far``."""
    counters = read_all_devices(topology)
    # Nobody is at near and far, but in a lab that a user types in.
    plan = topology.plan
    return count_strays(counters, copies, plan) and count_strays(
        counters,
        {role: _read_made(topology.role(role)) + copies.get(role, 0) for role in BETWEEN},
        plan,
    )


def _read_made(namespace: Namespace) -> int:
    """How many packets are of ``namespace`` itself, not passed on by it."""
    return read_ip(namespace)["OutRequests"]


def read_unsent(topology: Topology) -> int:
    """Packets that the two devices of the middle wire could not pass on."""
    wire = topology.plan.wires[MIDDLE]
    ends = ((wire.left, wire.left_device), (wire.right, wire.right_device))
    return sum(read_devices(topology.role(role))[device].unsent for role, device in ends)


def count_copies(report: LinkReport) -> dict[str, int]:
    """The copies that a link made, by where it makes them: behind the line."""
    return {"near": report.down.duplicated, "far": report.up.duplicated}


def judge_path(topology: Topology, report: LinkReport) -> tuple[dict[str, str], tuple[str, ...]]:
    """Packets that have gone around the link, and a sentence if there are any."""
    strays = read_strays(topology, count_copies(report))
    errors = (f"{strays} packets went around the link",) if strays else ()
    return {"stray_packets": str(strays)}, errors
