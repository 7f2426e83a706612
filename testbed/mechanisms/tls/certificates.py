"""Certificates of a handshake by their bytes: what a server sent before its client said more.

All certificates of the lab have ``CERTIFICATE_BYTES``, and what else is in a server's first flight
is shorter than one, but for its hello (RFC 8446 section 4.4.2), whose record is in clear.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from testbed.capture.flows import Flow, payloads
from testbed.capture.packets import HTTPS_PORT, Packet
from testbed.capture.tls import (
    CHANGE_CIPHER_SPEC,
    RECORD_HEADER_BYTES,
    read_hello_record,
    record_bytes,
)
from testbed.proof.check import check, say_unshown
from testbed.proof.evidence import Evidence

CERTIFICATE_BYTES = 1280


@check("certificates", "own_client", "condition", "flows", source="RFC 8446 section 4.4.2")
def check_certificates(seen: Evidence) -> Iterator[str]:
    """Servers sent as many certificates as asked, by the bytes of their first flights.

    Where there are keys, handshakes say it themselves.
    """
    asked = seen.condition.certificates
    if seen.has("keys"):
        if asked != 2 and not any(each.certificates for each in seen.handshakes):
            yield say_unshown("certificates", asked)
        return
    found = [sent for flow in seen.flows.flows if (sent := _first_flight_bytes(flow))]
    other = [sent for sent in found if sent // CERTIFICATE_BYTES != asked]
    if other:
        yield (
            f"certificates = {asked}, but {len(other)} of {len(found)} servers sent "
            f"{other[0]} bytes behind their hello, for {other[0] // CERTIFICATE_BYTES} certificates"
        )
    elif not found and asked != 2:
        yield say_unshown("certificates", asked)


def _first_flight_bytes(flow: Flow) -> int | None:
    """How much a server sent behind its hello until the client spoke; ``None``: no TLS.

    A client may change ciphers for middleboxes' sake before it has read all (RFC 8446 appendix
    D.4).  Behind a HelloRetryRequest and another hello the flight begins anew.
    """
    answers = sorted(payloads(flow, by_client=False), key=itemgetter(0))
    if not answers or flow.syn.target_port != HTTPS_PORT:
        return None
    spoke = [p.at_ns for _, p in payloads(flow, by_client=True) if not _changes_ciphers(p)]
    hello = read_hello_record(answers[0][1].payload)
    if hello is not None and hello.retry:
        again_ns = next((at_ns for at_ns in spoke if at_ns > answers[0][1].at_ns), None)
        answers = [(o, p) for o, p in answers if o and again_ns and p.at_ns > again_ns]
    begin, first = answers[0] if answers else (0, None)
    spoke_ns = next((at_ns for at_ns in spoke if first and at_ns > first.at_ns), None)
    if first is None or spoke_ns is None or len(first.payload) < RECORD_HEADER_BYTES:
        return None
    ends = (o + packet.payload_bytes for o, packet in answers if packet.at_ns < spoke_ns)
    return max(ends) - begin - record_bytes(first.payload)


def _changes_ciphers(packet: Packet) -> bool:
    """Whether a segment is nothing but a ChangeCipherSpec."""
    alone = packet.payload_bytes == RECORD_HEADER_BYTES + 1
    return alone and packet.payload[0] == CHANGE_CIPHER_SPEC
