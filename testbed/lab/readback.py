"""Everything that decides what the lab does to a packet, read back from the kernel as one table.

Devices, offloads, routes of all tables, rules, disciplines and sysctls of all four namespaces:
each is a line ``ROLE: WHAT`` with its value.  The table is held against what was asked when the
lab is open, and against itself after each load.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from testbed.lab import rtnetlink
from testbed.lab.link.discipline import NONE, Disciplines, read_disciplines
from testbed.lab.offloads import read_features
from testbed.lab.path import LOOPBACK
from testbed.lab.routes import (
    IPV6_QUESTION,
    QUESTION,
    RULE_QUESTION,
    RULES,
    describe_route,
    describe_rule,
)
from testbed.lab.rtnetlink import attributes, number_of, text_of
from testbed.lab.sysctls import FASTOPEN_KEY, read_machine_sysctls, read_sysctls
from testbed.lab.topology import ROW, Plan, Topology, addresses_in, devices_of

ENDS = ("client", "server")
_LINK = struct.Struct("=BxHiII")
_LINK_QUESTION = _LINK.pack(0, 0, 0, 0, 0)
_NAME, _MTU, _MASTER, _QUEUE, _GROUP_SEGMENTS, _GROUP_BYTES, _MERGED_BYTES, _XDP = (
    *(3, 4, 10, 13, 40, 41, 58, 43),
)
_CARRIER_CHANGES = 35
_EVENT, _FEATURES = 44, 2  # IFLA_EVENT_FEATURES
_UP = 0x1
_NO_PROGRAM = b"\x05\x00\x02\x00\x00\x00\x00\x00"  # IFLA_XDP_ATTACHED: none


@dataclass(frozen=True, slots=True)
class State:
    """What the kernel has: ``table`` in words, ``disciplines`` with their counters, sysctls."""

    table: Mapping[str, str]
    disciplines: Disciplines
    sysctls: Mapping[str, Mapping[str, str]]


def read_state(topology: Topology, more_sysctls: Collection[str] = ()) -> State:
    """Read all of it, without a process; ``more_sysctls`` are read beside those of TCP.

    Raises:
        OSError: the kernel does not tell.
    """
    table = {f"machine: {name}": value for name, value in read_machine_sysctls().items()}
    disciplines: Disciplines = {}
    sysctls: dict[str, Mapping[str, str]] = {}
    senders = dict(topology.plan.senders)
    for role in topology.roles:
        with topology.role(role).entered():
            lines = dict(_read_namespace(role, disciplines, topology.plan))
            if role in senders:
                sysctls[role] = read_sysctls(more_sysctls)
                lines |= {n: v for n, v in sysctls[role].items() if n != FASTOPEN_KEY}
        table |= {f"{role}: {name}": value for name, value in lines.items()}
    return State(table, disciplines, sysctls)


def _read_namespace(role: str, disciplines: Disciplines, plan: Plan) -> Iterator[tuple[str, str]]:
    """Everything of the namespace that this thread is in but its sysctls."""
    with rtnetlink.open_control() as control:
        devices = {}
        for body in rtnetlink.dump(control, rtnetlink.GETLINK, _LINK_QUESTION):
            index, lines = describe_device(body)
            devices[index] = text_of(attributes(body, _LINK.size)[_NAME])
            yield from lines
        for question in (QUESTION, *((IPV6_QUESTION,) if plan.ip != "4" else ())):
            for body in rtnetlink.dump(control, rtnetlink.GETROUTE, question):
                yield describe_route(body, devices)
        for body in rtnetlink.dump(control, rtnetlink.GETRULE, RULE_QUESTION):
            yield describe_rule(body)
        for device, discipline in read_disciplines(control, devices).items():
            disciplines[role, device] = discipline
            yield f"discipline of {device}", discipline.text
    for device in devices.values():
        if device != LOOPBACK:
            yield f"offloads of {device}", read_features(device)


def describe_device(body: bytes) -> tuple[int, list[tuple[str, str]]]:
    """Index of a device, and a line for each property that can move a packet."""
    _, _, index, flags, _ = _LINK.unpack_from(body)
    attrs = attributes(body, _LINK.size)
    name = text_of(attrs[_NAME])
    largest = "/".join(str(number_of(attrs[kind])) for kind in
                       (_GROUP_SEGMENTS, _GROUP_BYTES, _MERGED_BYTES) if kind in attrs)  # fmt: skip
    text = f"{'up' if flags & _UP else 'down'}, queue {number_of(attrs[_QUEUE])}, merging {largest}"
    if _CARRIER_CHANGES in attrs:
        text += f", carrier changed {number_of(attrs[_CARRIER_CHANGES])} times"
    if _MASTER in attrs:
        text += f", in bridge {number_of(attrs[_MASTER])}"
    if attrs.get(_XDP, _NO_PROGRAM) != _NO_PROGRAM:
        text += f", program {attrs[_XDP].hex()}"
    return index, [(f"MTU of {name}", str(number_of(attrs[_MTU]))), (f"device {name}", text)]


def is_of_features(body: bytes) -> bool:
    """Whether a notification of a device is because of its offloads."""
    event = attributes(body, _LINK.size).get(_EVENT)
    return event is not None and number_of(event) == _FEATURES


def judge_paths(
    table: Mapping[str, str],
    mtu_bytes: int,
    metrics: Mapping[str, str],
    plan: Plan = ROW,
    otherwise: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """A sentence for each device, route and rule that the lab did not make, or made otherwise.

    Args:
        table: of a ``State``.
        mtu_bytes: of every device but loopback.
        metrics: what the default route says beyond its gateway, by role.
        plan: who is wired to whom.
        otherwise: lines of the table that are asked to be otherwise than in the plain lab.
    """
    wanted: dict[str, str] = {}
    for role in plan.routes:
        known = devices_of(role, plan)
        wanted |= {f"{role}: MTU of {device}": str(mtu_bytes) for device in known}
        wanted |= {
            f"{role}: {name}": text for name, text in _routes_of(role, metrics.get(role), plan)
        }
        wanted |= {f"{role}: {name}": text for name, text in RULES.items()}
        for name, text in table.items():
            owner, _, device = name.partition(": device ")
            if owner == role and device not in (*known, LOOPBACK) and text.startswith("up"):
                yield f"{role}: there is another device, {device}"
    wanted |= otherwise
    for name, text in wanted.items():
        if table.get(name) != text:
            yield f"{name} is {table.get(name)!r}, asked was {text!r}"
    for name, text in table.items():
        steers = ": route " in name or ": rule " in name
        if steers and name not in wanted and not text.startswith("own"):
            yield f"{name} is there ({text}), and nobody asked for it"


def _routes_of(role: str, metrics: str | None, plan: Plan) -> Iterator[tuple[str, str]]:
    """The routes that the lab adds to a namespace, as ``describe_route`` has them."""
    peers = devices_of(role, plan).items()
    towards = {each: device for device, peer in peers for each in addresses_in(plan.ip, peer)}
    for where, gateway in plan.routes_of(role).items():
        text = f"via {gateway} dev {towards[gateway]}"
        yield f"route {where}", f"{text} {metrics}" if metrics else text


def judge_disciplines(disciplines: Disciplines, wanted: Disciplines) -> Iterator[str]:
    """A sentence for each discipline that is not as ``wanted``, or that nobody asked for."""
    for place, expected in wanted.items():
        discipline = disciplines.get(place)
        if discipline is None or not discipline.has(expected):
            text = "none" if discipline is None else discipline.text
            yield f"{place[0]}: discipline of {place[1]} is {text!r}, asked was {expected.text!r}"
    for (role, device), discipline in disciplines.items():
        if (role, device) not in wanted and discipline.kind != NONE:
            yield f"{role}: {device} has a discipline that nobody asked for: {discipline.text}"


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each line that is not the same in both tables."""
    return tuple(
        _change(name, before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def _change(name: str, was: str | None, now: str | None) -> str:
    if was is None:
        return f"{name} ({now}) was not there before the load"
    if now is None:
        return f"{name} ({was}) is not there any more after the load"
    return f"{name} was {was!r} before the load, and is {now!r} after it"
