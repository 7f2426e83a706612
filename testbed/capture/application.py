"""Application data in a capture: requests in clear, and the TLS version that servers chose."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from testbed.capture.packets import SYN, Capture
from testbed.capture.tls import read_hello_record

METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ")

Ends = tuple[bytes, int, bytes, int]


@dataclass(slots=True)
class Application:
    """What connections carry.

    ``requests`` counts those in clear by connection and its first number, as a client may use a
    port again, ``versions`` connections by the TLS version that the server chose, ``hellos`` are
    the connections whose client began with TLS.
    """

    requests: Counter[tuple[Ends, int]] = field(default_factory=Counter)
    hellos: set[Ends] = field(default_factory=set)
    versions: dict[Ends, str] = field(default_factory=dict)


def read_application(capture: Capture) -> Application:
    """Find plain-text requests and TLS hellos; retransmissions count once."""
    found = Application()
    counted: set[tuple[Ends, int]] = set()
    begun: dict[Ends, int] = {}
    for packet in capture.packets:
        ends = (packet.source, packet.source_port, packet.target, packet.target_port)
        if packet.opens:
            begun[ends] = packet.seq
        if packet.protocol == "TCP" and packet.payload_bytes:
            # A SYN takes a number of its own: what it carries begins with the next (RFC 9293 3.4).
            first_byte = (packet.seq + bool(packet.flags & SYN)) % 2**32
            if (ends, first_byte) not in counted:
                counted.add((ends, first_byte))
                hello = read_hello_record(packet.payload)
                if packet.payload.startswith(METHODS):
                    found.requests[ends, begun.get(ends, 0)] += 1
                elif hello is not None and hello.by_client:
                    found.hellos.add(ends)
                elif hello is not None and hello.version is not None:
                    found.versions[ends] = hello.version
    return found
