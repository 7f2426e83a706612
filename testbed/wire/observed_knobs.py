"""Knobs that only the wire and the server's log can show: requests, offloads, TLS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.model import Condition, Replay
from testbed.model.impairments import is_lossy
from testbed.wire.packets import SYN, Capture
from testbed.wire.tls import read_hello_record

METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ")

Ends = tuple[bytes, int, bytes, int]


@dataclass(slots=True)
class Conduct:
    """What a capture shows beside the opening of connections.

    ``requests`` counts those in clear by connection, ``versions`` connections by the TLS version
    that the server chose, ``hellos`` are the connections whose client began with TLS.
    """

    largest: int = 0
    requests: Counter[Ends] = field(default_factory=Counter)
    hellos: set[Ends] = field(default_factory=set)
    versions: dict[Ends, str] = field(default_factory=dict)


def check_conduct(capture: Capture, condition: Condition, replay: Replay) -> tuple[str, ...]:
    """Return a sentence for each knob of ``condition`` that the capture or the server contradicts.

    ``requests_per_connection``: by the server's log, which sees through TLS, no connection carried
    more; nor does the capture show more in plain text.  ``tls_version``: the server chose no other.
    Offloads: no packet is larger than the MTU.
    """
    conduct = read_conduct(capture)
    return (*_complain(condition, conduct, replay), *_complain_of_tls(condition, conduct))


def read_conduct(capture: Capture) -> Conduct:
    """Find the largest packet, plain-text requests and TLS hellos; retransmissions count once."""
    conduct = Conduct(largest=max((packet.ip_bytes for packet in capture.packets), default=0))
    counted: set[tuple[Ends, int]] = set()
    for packet in capture.packets:
        if packet.protocol == "TCP" and packet.payload_bytes:
            ends = (packet.source, packet.source_port, packet.target, packet.target_port)
            # A SYN takes a number of its own: what it carries begins with the next (RFC 9293 3.4).
            first_byte = (packet.seq + bool(packet.flags & SYN)) % 2**32
            if (ends, first_byte) not in counted:
                counted.add((ends, first_byte))
                _note_payload(conduct, ends, packet.payload)
    return conduct


def _note_payload(conduct: Conduct, ends: Ends, payload: bytes) -> None:
    if payload.startswith(METHODS):
        conduct.requests[ends] += 1
    elif (hello := read_hello_record(payload)) is not None:
        if hello.by_client:
            conduct.hellos.add(ends)
        elif hello.version is not None:
            conduct.versions[ends] = hello.version


def _complain(condition: Condition, conduct: Conduct, replay: Replay) -> Iterator[str]:
    limit, most = condition.tcp.requests_per_connection, replay.most_per_connection
    if limit is not None and most > limit:
        yield f"a connection carried {most} requests, asked was {limit} at the most"
    in_clear = max(conduct.requests.values(), default=0)
    # A lossy link may take a request from the client and never hand it to the server.
    if in_clear > most and not (is_lossy(condition.link) or condition.link.changes):
        yield f"the capture shows {in_clear} requests on a connection, the server's log {most}"
    if conduct.largest > condition.link.mtu_bytes:
        yield f"a packet of {conduct.largest} bytes is larger than the MTU: an offload is on"


def _complain_of_tls(condition: Condition, conduct: Conduct) -> Iterator[str]:
    chosen = Counter(conduct.versions.values())
    for version, number in sorted(chosen.items()):
        if version != condition.tls_version:
            yield (
                f"tls_version = {condition.tls_version}, but the server chose TLS {version} "
                f"on {number} of {len(conduct.hellos)} connections"
            )
    if conduct.hellos and not chosen:
        yield "the capture shows no TLS version, although connections carried TLS"
