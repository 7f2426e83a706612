"""Name look-ups on the link: one question for each host that the client went to (RFC 1035).

A name from a file costs no round trip.  Under ``dns = resolver`` every host whose address the
client used must have been asked for before; under ``dns = hosts`` nobody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.base.addresses import format_address
from testbed.capture.packets import HTTPS_PORT, Capture, Packet, is_quic

DNS_PORT = 53
HEADER_BYTES = 12
LONGEST_LABEL = 63
ADDRESSES = {"4": 1, "6": 28}
"""The type of a question for an address of each IP (RFC 1035 section 3.2.2, RFC 3596)."""


@dataclass(slots=True)
class Lookups:
    """Questions in all, as ``parse_question`` has them, and what was gone to unasked.

    ``unasked`` are the hosts, or addresses that no host has, whose first packet came before any
    question for them; ``contacted`` are all.
    """

    questions: list[tuple[str, int] | None] = field(default_factory=list)
    contacted: set[str] = field(default_factory=set)
    unasked: list[str] = field(default_factory=list)


def read_lookups(capture: Capture, hosts: Mapping[str, str]) -> Lookups:
    """Find the hosts that were looked up and connected to, in the order of the capture."""
    lookups = Lookups()
    for packet in capture.packets:
        if packet.protocol == "UDP" and packet.target_port == DNS_PORT:
            lookups.questions.append(parse_question(packet.payload))
        elif packet.opens or (is_quic(packet) and packet.target_port == HTTPS_PORT):
            address = format_address(packet.target)
            host = hosts.get(address, address)
            if host not in lookups.contacted:
                lookups.contacted.add(host)
                if (host.lower().rstrip("."), ADDRESSES[packet.ip]) not in lookups.questions:
                    lookups.unasked.append(host)
    return lookups


def is_lookup(packet: Packet) -> bool:
    """Return whether a packet is a question for a name, or an answer."""
    return packet.protocol == "UDP" and DNS_PORT in (packet.source_port, packet.target_port)


def parse_question(message: bytes) -> tuple[str, int] | None:
    """Return the name whose address a DNS message asks for first, in lower case, and the type.

    ``None``: it asks for something else, or the capture cut it.
    """
    labels: list[bytes] = []
    position = HEADER_BYTES
    while position < len(message) and 0 < message[position] <= LONGEST_LABEL:
        labels.append(message[position + 1 : position + 1 + message[position]])
        position += 1 + message[position]
    kind = int.from_bytes(message[position : position + 3])
    if position + 3 > len(message) or kind not in ADDRESSES.values():
        return None
    return b".".join(labels).lower().decode("ascii", "replace"), kind
