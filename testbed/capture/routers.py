"""Messages of routers in a capture: a packet was too long for a line (RFC 792, RFC 1191)."""

from __future__ import annotations

import struct
from collections import defaultdict
from math import inf
from typing import NamedTuple

from testbed.capture.packets import (
    ETHERNET_BYTES,
    TOO_LONG,
    Capture,
    Packet,
    behind,
    read_unreachable,
)
from testbed.model import LinkSpec

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
