"""Knobs that only the wire and the server's log can show: requests, offloads, TLS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.model import Condition, Replay
from testbed.wire.packets import SYN, Capture
from testbed.wire.tls import chosen_version, is_client_hello

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

    ``requests_per_connection``: no connection carries more, says the server, which sees through
    TLS; the capture must not show more in clear.  ``tls_version``: the server chose no other.
    Offloads: no packet is larger than the MTU.
    """
    seen = read_conduct(capture)
    return (*_complain(condition, seen, replay), *_complain_of_tls(condition, seen))


def read_conduct(capture: Capture) -> Conduct:
    """Find sizes, requests in clear and hellos; what is sent again counts once."""
    found = Conduct(largest=max((packet.ip_bytes for packet in capture.packets), default=0))
    known: set[tuple[Ends, int]] = set()
    for packet in capture.packets:
        if packet.protocol == "TCP" and packet.payload_bytes:
            ends = (packet.source, packet.source_port, packet.target, packet.target_port)
            # A SYN takes a number of its own: what it carries begins with the next (RFC 9293 3.4).
            first = (packet.seq + bool(packet.flags & SYN)) % 2**32
            if (ends, first) not in known:
                known.add((ends, first))
                _note_payload(found, ends, packet.payload)
    return found


def _note_payload(found: Conduct, ends: Ends, payload: bytes) -> None:
    if payload.startswith(METHODS):
        found.requests[ends] += 1
    elif is_client_hello(payload):
        found.hellos.add(ends)
    elif (version := chosen_version(payload)) is not None:
        found.versions[ends] = version


def _complain(condition: Condition, seen: Conduct, replay: Replay) -> Iterator[str]:
    limit, most = condition.tcp.requests_per_connection, replay.most_per_connection
    if limit is not None and most > limit:
        yield f"a connection carried {most} requests, asked was {limit} at the most"
    in_clear = max(seen.requests.values(), default=0)
    # A lossy link may take a request from the client and never hand it to the server.
    if in_clear > most and not condition.link.loss_pct:
        yield f"the capture shows {in_clear} requests on a connection, the server's log {most}"
    if seen.largest > condition.link.mtu_bytes:
        yield f"a packet of {seen.largest} bytes is larger than the MTU: an offload is on"


def _complain_of_tls(condition: Condition, seen: Conduct) -> Iterator[str]:
    chosen = Counter(seen.versions.values())
    for version, number in sorted(chosen.items()):
        if version != condition.tls_version:
            yield (
                f"tls_version = {condition.tls_version}, but the server chose TLS {version} "
                f"on {number} of {len(seen.hellos)} connections"
            )
    if seen.hellos and not chosen:
        yield "the capture shows no TLS version, although connections carried TLS"
