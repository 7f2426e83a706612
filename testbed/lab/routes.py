"""Routes of a namespace as the kernel has them, all tables, all attributes (ip-route(8)).

A more specific route than the default one can carry an initial window, a congestion control, a
window clamp and more (RTAX_*, include/uapi/linux/rtnetlink.h), so no route is left out, and one
that nobody asked for is a problem.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from testbed.base.addresses import format_address
from testbed.lab.rtnetlink import attribute, attributes, number_of, text_of

_HEADER = struct.Struct("=BBBBBBBBI")
_DESTINATION, _DEVICE, _GATEWAY, _PRIORITY, _SOURCE, _METRICS, _TABLE = 1, 4, 5, 6, 7, 8, 15
_CACHE, _PREFERENCE = 12, 20
_USUAL_METRIC = 1024  # IP6_RT_PRIO_USER
_LOCK, _RTO_MIN, _CONGESTION = 1, 13, 16
_METRIC_NAMES = {
    1: "lock", 2: "mtu", 3: "window", 4: "rtt", 5: "rttvar", 6: "ssthresh", 7: "cwnd", 8: "advmss",
    9: "reordering", 10: "hoplimit", 11: "initcwnd", 12: "features", 13: "rto_min",
    14: "initrwnd", 15: "quickack", _CONGESTION: "congctl", 17: "fastopen_no_cookie",
}  # fmt: skip
_KINDS = {name: kind for kind, name in _METRIC_NAMES.items()} | {"rto_min_ms": _RTO_MIN}
_TYPES = {1: "unicast", 2: "local", 3: "broadcast"}
_OWN_PROTOCOL = 2  # RTPROT_KERNEL
_LOCAL, _MAIN = 255, 254
_FLAGS_THAT_STEER = 0x04  # onlink; the others tell of carrier and offload
QUESTION, IPV6_QUESTION = (
    struct.pack("=BBBBBBBBI", family, 0, 0, 0, 0, 0, 0, 0, 0)
    for family in (socket.AF_INET, socket.AF_INET6)
)
RULE_QUESTION = QUESTION
RULES = {"rule 0": "table 255", "rule 32766": "table 254", "rule 32767": "table 253"}
"""What every namespace has: its addresses first, then the table that routes are added to."""


def describe_route(body: bytes, devices: Mapping[int, str]) -> tuple[str, str]:
    """Name and content of a route: ``route DESTINATION``, and where to and how.

    The default one is ``default``, that of IPv6 ``::/0``.
    What follows from an address of the namespace itself (protocol kernel, no gateway, no metrics)
    begins with ``own``.
    """
    family, length, _, tos, table, protocol, _, kind, flags = _HEADER.unpack_from(body)
    attrs = attributes(body, _HEADER.size)
    where = "::/0" if family == socket.AF_INET6 else "default"
    if length:
        where = f"{format_address(attrs[_DESTINATION])}/{length}"
    table = number_of(attrs[_TABLE]) if _TABLE in attrs else table
    name = f"route {where}" + ("" if table == _MAIN else f" of table {table}")
    if kind == 3:  # the first and the last address of a network, as older kernels have it
        name = f"{name} (broadcast)"
    parts = [] if kind == 1 else [_TYPES.get(kind, f"type {kind}")]
    if _GATEWAY in attrs:
        parts.append(f"via {format_address(attrs[_GATEWAY])}")
    if _DEVICE in attrs:
        parts.append(f"dev {devices.get(number_of(attrs[_DEVICE]), '?')}")
    if tos:
        parts.append(f"tos {tos}")
    usual = _USUAL_METRIC if family == socket.AF_INET6 else 0
    if _PRIORITY in attrs and number_of(attrs[_PRIORITY]) != usual:
        parts.append(f"metric {number_of(attrs[_PRIORITY])}")
    if flags & _FLAGS_THAT_STEER:
        parts.append("onlink")
    parts += _describe_metrics(attrs.get(_METRICS, b""))
    known = {_DESTINATION, _DEVICE, _GATEWAY, _PRIORITY, _SOURCE, _METRICS, _TABLE, _CACHE}
    strange = {kind: value for kind, value in attrs.items() if kind not in known}
    if strange.get(_PREFERENCE) == b"\0":
        del strange[_PREFERENCE]
    parts += [f"attribute {kind} {value.hex()}" for kind, value in strange.items()]
    steered = {_GATEWAY, _METRICS} & attrs.keys() or strange or tos
    own = protocol == _OWN_PROTOCOL and table in (_LOCAL, _MAIN) and not steered
    return name, " ".join(["own"] * own + parts)


def _describe_metrics(nested: bytes) -> list[str]:
    return [
        f"{_METRIC_NAMES.get(kind, f'metric-{kind}')} "
        + (text_of(value) if kind == _CONGESTION else str(number_of(value)))
        for kind, value in sorted(attributes(nested).items())
    ]


def encode_metrics(metrics: Mapping[str, int | str]) -> bytes:
    """Return attributes of a route as a message carries them, by their names.

    ``rto_min_ms`` is in milliseconds, and locked: without a lock the kernel does not heed it.
    Zeros are left out, for the kernel does not keep them.
    """
    given = {_KINDS[name]: value for name, value in metrics.items() if value}
    if _RTO_MIN in given:
        given[_LOCK] = 1 << _RTO_MIN
    return b"".join(
        attribute(kind, value.encode() if isinstance(value, str) else struct.pack("=I", value))
        for kind, value in sorted(given.items())
    )


def describe_metrics(metrics: Mapping[str, int | str]) -> str:
    """Return attributes of a route as ``describe_route`` has them."""
    return " ".join(_describe_metrics(encode_metrics(metrics)))


def describe_rule(body: bytes) -> tuple[str, str]:
    """Name and content of a rule: ``rule PRIORITY``, and the table that it leads to."""
    _, to_length, from_length, tos, table, _, _, action, flags = _HEADER.unpack_from(body)
    attrs = attributes(body, _HEADER.size)
    table = number_of(attrs[_TABLE]) if _TABLE in attrs else table
    priority = number_of(attrs[_PRIORITY]) if _PRIORITY in attrs else 0
    parts = [f"table {table}"]
    # FRA_PROTOCOL (21) and the two "no prefix length" (13, 14) stand in every rule.
    strange = {k: v for k, v in attrs.items() if k not in {_PRIORITY, _TABLE, 13, 14, 21}}
    if to_length or from_length or tos or action != 1 or flags & ~0x1:
        parts.append(f"selects {to_length} {from_length} {tos} {action} {flags}")
    parts += [f"attribute {kind} {value.hex()}" for kind, value in strange.items()]
    return f"rule {priority}", " ".join(parts)
