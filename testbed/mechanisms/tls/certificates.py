"""Certificates of a handshake by their bytes: what a server sent before its client said more.

All certificates of the lab have ``CERTIFICATE_BYTES``, and what else is in a server's first flight
is shorter than one, but for its hello (RFC 8446 section 4.4.2), whose record is in clear.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.capture.flows import Flow, payloads
from testbed.capture.tls import RECORD_HEADER_BYTES
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
    """How much a server sent behind its hello until the client spoke; ``None``: no TLS."""
    answers = list(payloads(flow, by_client=False))
    if not answers or flow.syn.target_port != 443:
        return None
    began_ns = answers[0][1].at_ns
    spoke_ns = next(
        (p.at_ns for _, p in payloads(flow, by_client=True) if p.at_ns > began_ns), None
    )
    if spoke_ns is None:
        return None
    came = [(offset, packet) for offset, packet in answers if packet.at_ns < spoke_ns]
    first = next((packet.payload for offset, packet in came if offset == 0), b"")
    if len(first) < RECORD_HEADER_BYTES:
        return None
    hello = RECORD_HEADER_BYTES + int.from_bytes(first[3:5])
    return max(offset + packet.payload_bytes for offset, packet in came) - hello
