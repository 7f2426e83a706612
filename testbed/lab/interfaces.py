"""Devices, addresses, neighbours and routes of the lab's hosts, made by messages (rtnetlink(7)).

Sources: include/uapi/linux/if_link.h, if_addr.h, neighbour.h, rtnetlink.h, veth.h; for TAPs,
Documentation/networking/tuntap.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.base.addresses import family_of, pack_address
from testbed.base.errors import LabError
from testbed.base.namespace import Namespace
from testbed.lab.rtnetlink import (
    CREATE,
    DELLINK,
    GETLINK,
    NEWADDR,
    NEWLINK,
    NEWNEIGH,
    NEWROUTE,
    REPLACE,
    attribute,
    attributes,
    dump,
    number_of,
    open_control,
    order,
    text_of,
)

READY_S = 60.0
_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg
_SEGMENTS = 40  # IFLA_GSO_MAX_SEGS
_ADDRESS, _NAME, _MTU, _MASTER, _QUEUE, _STATE, _INFO, _NAMESPACE = 1, 3, 4, 10, 13, 16, 18, 28
_INFO_KIND, _INFO_DATA, _PEER = 1, 2, 1
_UP, _NO_ARP, _MULTICAST = 0x1, 0x80, 0x1000
_OPERATIONAL = 6  # IF_OPER_UP
_PERMANENT = 0x80
_NO_DAD = 0x02  # IFA_F_NODAD
_LINK_SCOPE = 253  # RT_SCOPE_LINK
_BY_HAND, _MAIN, _UNICAST = 3, 254, 1  # RTPROT_BOOT, RT_TABLE_MAIN, RTN_UNICAST
_DESTINATION, _DEVICE, _GATEWAY, _SOURCE, _METRICS = 1, 4, 5, 7, 8
_TUNSETIFF, _TUNSETPERSIST = 0x400454CA, 0x400454CB
_IFF_TUN, _IFF_TAP, _IFF_NO_PI = 0x0001, 0x0002, 0x1000


@dataclass(frozen=True, slots=True)
class End:
    """One end of a wire: its device's name and hardware address, and where it belongs.

    ``namespace`` is an open descriptor of the network namespace.
    """

    device: str
    mac: str
    namespace: int


def index_of(device: str) -> int:
    """Return the index of ``device`` in this thread's network namespace.

    Raises:
        OSError: there is no such device.
    """
    return socket.if_nametoindex(device)


def add_wire(control: socket.socket, left: End, right: End, mtu_bytes: int) -> None:
    """Make a pair of veth devices, each in the namespace of its end (veth(4))."""
    peer = attribute(_PEER, _LINK.pack(0, 0, 0, 0, 0) + _describe_end(right, mtu_bytes))
    info = attribute(_INFO_KIND, b"veth\0") + attribute(_INFO_DATA, peer)
    body = _LINK.pack(0, 0, 0, 0, 0) + _describe_end(left, mtu_bytes) + attribute(_INFO, info)
    order(control, NEWLINK, body, CREATE)


def _describe_end(end: End, mtu_bytes: int) -> bytes:
    return b"".join(
        attribute(kind, value)
        for kind, value in (
            (_NAME, end.device.encode() + b"\0"),
            (_ADDRESS, _hardware(end.mac)),
            (_MTU, struct.pack("=I", mtu_bytes)),
            (_NAMESPACE, struct.pack("=I", end.namespace)),
        )
    )


def add_tap(
    control: socket.socket, device: str, mac: str, mtu_bytes: int, queue_frames: int
) -> None:
    """Make a TAP in this thread's network namespace; it stays when nobody has it open."""
    opened = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        request = struct.pack("@16sH22x", device.encode(), _IFF_TAP | _IFF_NO_PI)
        fcntl.ioctl(opened, _TUNSETIFF, request)
        fcntl.ioctl(opened, _TUNSETPERSIST, 1)
    finally:
        os.close(opened)
    wanted = attribute(_ADDRESS, _hardware(mac)) + attribute(_MTU, struct.pack("=I", mtu_bytes))
    _change(control, device, wanted + attribute(_QUEUE, struct.pack("=I", queue_frames)))


def add_bridge(control: socket.socket, bridge: str, ports: Sequence[str]) -> None:
    """Make ``bridge`` of the devices ``ports``; without a spanning tree, frames pass at once."""
    info = attribute(_INFO, attribute(_INFO_KIND, b"bridge\0"))
    named = attribute(_NAME, bridge.encode() + b"\0")
    order(control, NEWLINK, _LINK.pack(0, 0, 0, 0, 0) + named + info, CREATE)
    master = attribute(_MASTER, struct.pack("=I", index_of(bridge)))
    for port in ports:
        _change(control, port, master)


def _change(
    control: socket.socket, device: str, wanted: bytes = b"", *, flags: int = 0, of: int = 0
) -> None:
    """Change attributes of ``device``, or its ``flags``, all ``of`` those that are named."""
    order(control, NEWLINK, _LINK.pack(0, 0, index_of(device), flags, of) + wanted)


def open_tun(device: str) -> int:
    """Make a TUN in this thread's network namespace and return its descriptor, which never blocks.

    Each read takes an IP packet that the namespace sends, each write is one that it receives.  The
    device ends with the descriptor.
    """
    opened = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        request = struct.pack("@16sH22x", device.encode(), _IFF_TUN | _IFF_NO_PI)
        fcntl.ioctl(opened, _TUNSETIFF, request)
    except OSError:
        os.close(opened)
        raise
    return opened


def set_up(control: socket.socket, device: str) -> None:
    """Switch ``device`` on."""
    _change(control, device, flags=_UP, of=_UP)


def mute(control: socket.socket, device: str) -> None:
    """Have nobody ask at ``device`` for neighbours, nor tell of groups (RFC 4861, RFC 3810)."""
    _change(control, device, flags=_NO_ARP, of=_NO_ARP | _MULTICAST)


def delete_device(control: socket.socket, device: str) -> None:
    """Delete ``device``, and what is at the other end of its wire."""
    order(control, DELLINK, _LINK.pack(0, 0, index_of(device), 0, 0))


def set_mtu(control: socket.socket, device: str, mtu_bytes: int) -> None:
    """Set the longest IP packet of ``device``, in bytes."""
    _change(control, device, attribute(_MTU, struct.pack("=I", mtu_bytes)))


def cut_segments(control: socket.socket, device: str) -> None:
    """Have TCP give ``device`` segments of one packet each, which a discipline there counts so."""
    _change(control, device, attribute(_SEGMENTS, struct.pack("=I", 1)))


def wait_until_running(namespace: Namespace, device: str) -> None:
    """Wait until the kernel has seen that ``device`` has a carrier: from then on it passes packets.

    IFF_RUNNING says less: a device has it before the kernel has looked at its carrier at all.

    Raises:
        LabError: it does not come up.
    """
    deadline = time.monotonic() + READY_S
    with namespace.entered(), open_control() as control:
        while _read_state(control, device) != _OPERATIONAL:
            if time.monotonic() > deadline:
                raise LabError(f"{device} in {namespace.name} did not come up in {READY_S:g} s")
            time.sleep(0.001)


def _read_state(control: socket.socket, device: str) -> int:
    """Return the state of ``device`` (RFC 2863, IF_OPER_* of if.h).

    Raises:
        LabError: there is no such device.
    """
    for body in dump(control, GETLINK, _LINK.pack(0, 0, 0, 0, 0)):
        attrs = attributes(body, _LINK.size)
        if text_of(attrs[_NAME]) == device:
            return number_of(attrs[_STATE])
    raise LabError(f"there is no device {device}")


def add_address(control: socket.socket, device: str, address: str) -> None:
    """Give ``device`` an ``address`` with its prefix length, such as 10.0.0.2/24."""
    host, _, length = address.partition("/")
    packed, family = pack_address(host), family_of(host)
    flags = _NO_DAD if family == socket.AF_INET6 else 0
    head = struct.pack("=BBBBI", family, int(length), flags, 0, index_of(device))
    order(control, NEWADDR, head + attribute(2, packed) + attribute(1, packed), CREATE)


def add_neighbour(control: socket.socket, device: str, address: str, mac: str) -> None:
    """Say for ever which hardware address ``address`` has on ``device``."""
    head = struct.pack("=BxxxiHBB", family_of(address), index_of(device), _PERMANENT, 0, 0)
    body = head + attribute(1, pack_address(address)) + attribute(2, _hardware(mac))
    order(control, NEWNEIGH, body, CREATE)


def set_route(
    control: socket.socket,
    destination: str,
    gateway: str,
    *,
    device: str | None = None,
    metrics: bytes = b"",
) -> None:
    """Set the route to ``destination``: a network, or ``default`` (ip-route(8)).

    With ``device`` it goes out there, and ``gateway`` is the address to send from; ``metrics`` are
    from ``routes.encode_metrics``.
    """
    scope = 0 if device is None else _LINK_SCOPE
    network, _, length = ("", "", "0") if destination == "default" else destination.partition("/")
    kind = (_MAIN, _BY_HAND, scope, _UNICAST)
    head = struct.pack("=BBBBBBBBI", family_of(gateway), int(length), 0, 0, *kind, 0)
    body = head + (attribute(_DESTINATION, pack_address(network)) if network else b"")
    if device is None:
        body += attribute(_GATEWAY, pack_address(gateway))
    else:
        body += attribute(_DEVICE, struct.pack("=I", index_of(device)))
        body += attribute(_SOURCE, pack_address(gateway))
    order(control, NEWROUTE, body + (attribute(_METRICS, metrics) if metrics else b""), REPLACE)


def _hardware(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
