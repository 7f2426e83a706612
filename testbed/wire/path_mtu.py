"""Path MTU in the captures of both ends: what is too long stays out, and is told of, or is not.

A router that cannot pass a packet on says so to its sender, with the size that would pass (RFC 792,
RFC 1191); in a black hole nobody does.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from testbed.model import LinkSpec
from testbed.wire.packets import (
    ETHERNET_BYTES,
    TOO_LONG,
    Capture,
    Packet,
    behind,
    read_unreachable,
)
from testbed.wire.queueing import Transit

_IP_BYTES, _ICMP_BYTES = 20, 8
_MESSAGE_AT = ETHERNET_BYTES + _IP_BYTES
_QUOTED_AT = _MESSAGE_AT + _ICMP_BYTES

Ends = tuple[bytes, int, bytes, int]
"""Address and port of a sender, and of whom it sent to."""


class Message(NamedTuple):
    """A router's word that a packet was too long: when it came, what passes, and of whose."""

    at_ns: int
    mtu_bytes: int
    ends: Ends


def read_messages(capture: Capture) -> list[Message]:
    """Return the messages about packets that were too long, in order; the ends send IP alone."""
    found = []
    for packet in capture.packets:
        frame = packet.frame
        if read_unreachable(packet) == TOO_LONG:
            (mtu_bytes,) = struct.unpack_from("!H", frame, _MESSAGE_AT + 6)
            source, target = struct.unpack_from("!4s4s", frame, _QUOTED_AT + 12)
            ports = struct.unpack_from("!HH", frame, _QUOTED_AT + _IP_BYTES)
            found.append(Message(packet.at_ns, mtu_bytes, (source, ports[0], target, ports[1])))
    return found


def count_first_flights(at_server: Capture, link: LinkSpec) -> dict[tuple[str, str], int]:
    """Return the segments of first flights with some that were too long, by client and server.

    What arrives of such a flight is what was sent again, in other pieces, and more: the server's
    own capture has it, up to when an answer could have come.
    """
    if link.path_mtu_bytes is None:
        return {}
    told = {message.ends: message.at_ns for message in reversed(read_messages(at_server))}
    flights: dict[tuple[str, str], list[Packet]] = defaultdict(list)
    for packet in at_server.packets:
        ends = (packet.source, packet.source_port, packet.target, packet.target_port)
        flight = flights[packet.receiver, packet.sender]
        first = flight[0] if flight else packet
        at_once = packet.at_ns < min(first.at_ns + link.rtt_ms * 1e6, told.get(ends, inf))
        is_new = not flight or behind(packet.seq, flight[-1].seq) > 0
        if packet.protocol == "TCP" and packet.payload_bytes and at_once and is_new:
            flight.append(packet)
    return {
        ends: len(flight)
        for ends, flight in flights.items()
        if any(packet.ip_bytes > link.path_mtu_bytes for packet in flight)
    }


def check_path_mtu(
    captures: Mapping[str, Capture],
    transits: Mapping[str, Sequence[Transit]],
    link: LinkSpec,
    traffic: Mapping[str, int],
) -> Iterator[str]:
    """Yield a sentence where packets were too long for the line otherwise than asked.

    Args:
        captures: at the sender of each direction, ``up`` and ``down``.
        transits: of ``read_transits``.
        link: what was asked.
        traffic: what the lab counted of the load, ``up.too_long`` by the router before the line.
    """
    most = link.path_mtu_bytes
    if most is None:
        return
    for way, packets in transits.items():
        long = [transit for transit in packets if transit.ip_bytes > most]
        passed = [transit.ip_bytes for transit in long if transit.came_ns is not None]
        if passed:
            yield (
                f"{way}: {len(passed)} packets of up to {max(passed)} bytes passed a line whose "
                f"path MTU is {most}"
            )
        counted = traffic.get(f"{way}.too_long", 0)
        if counted != len(long):
            yield f"{way}: {len(long)} packets were too long for the line, its router has {counted}"
        back = "up" if way == "down" else "down"
        lost, more = (
            sum(traffic.get(f"{back}.{how}", 0) for how in hows)
            for hows in (("lost", "dropped"), ("duplicated",))
        )
        yield from _check_messages(way, captures[way], long, link, (lost, more))


def _check_messages(
    way: str, capture: Capture, long: Sequence[Transit], link: LinkSpec, chance: tuple[int, int]
) -> Iterator[str]:
    """Yield a sentence where a sender was told otherwise, or did not heed what it was told.

    By ``chance`` the line lost so many packets on their way back, and doubled so many.
    """
    messages = read_messages(capture)
    last_ns = capture.packets[-1].at_ns if capture.packets else 0
    # Those of the last packets may still be on their way.
    due = sum(transit.sent_ns < last_ns - link.rtt_ms * 1e6 for transit in long)
    told = link.path_mtu_discovery == "icmp"
    lost, more = chance
    if not (due - lost) * told <= len(messages) <= (len(long) + more) * told:
        yield (
            f"{way}: {len(messages)} messages came back of {len(long)} packets that were too long, "
            f"asked was path_mtu_discovery = {link.path_mtu_discovery}"
        )
    wrong = {message.mtu_bytes for message in messages} - {link.path_mtu_bytes}
    if wrong:
        yield f"{way}: messages name an MTU of {min(wrong)}, asked was {link.path_mtu_bytes}"
    since: dict[Ends, int] = {}
    for message in messages:
        since.setdefault(message.ends, message.at_ns)
    late = sum(
        packet.ip_bytes > link.line_mtu_bytes and packet.at_ns > since[ends]
        for packet in capture.packets
        if (ends := (packet.source, packet.source_port, packet.target, packet.target_port)) in since
    )
    if late:
        yield f"{way}: {late} packets were still too long when their sender had been told"
