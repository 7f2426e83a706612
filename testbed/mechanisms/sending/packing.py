"""Packing by servers: responses leave in segments and in TLS records as full as they can be.

nginx gathers the head of a response and the first bytes of its file in one segment (tcp_nopush), so
in clear text only the last segment of a response is short.  Over TLS it fills records of 16 KiB
(ssl_buffer_size).  What the servers of the lab are told beside that would change both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from sys import maxsize
from urllib.parse import urlsplit

from testbed.base.addresses import format_address
from testbed.capture.application import METHODS
from testbed.capture.flows import Flow, payloads
from testbed.capture.handshakes import start_of
from testbed.capture.packets import HTTPS_PORT
from testbed.capture.tls import APPLICATION_DATA, read_records
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

RECORD_BYTES = 16_384
"""nginx's ssl_buffer_size, and the most that a record may hold (RFC 8446 section 5.1)."""
SURE_BYTES = 3 * RECORD_BYTES
"""A response of that many bytes fills a record, wherever it begins."""


@check("segments", "virtual_time", "load", "condition", "at_server", source="nginx: tcp_nopush")
def check_segments(seen: Evidence) -> Iterator[str]:
    """In clear text no more segments are short than there are responses, as servers sent them.

    What is sent again may be cut anew, to a path that turned out to be narrower.
    """
    if seen.link.gso or seen.link.gro or seen.counted.get("down.too_long"):
        return  # what is captured then is no segment, or was cut once more
    short = [(flow, found) for flow in seen.flows_at_server.flows
             if flow.syn.target_port != HTTPS_PORT and (found := _surplus(flow)) > 0]  # fmt: skip
    if short:
        flow, surplus = max(short, key=lambda each: each[1])
        yield (
            f"servers of {len(short)} connections sent more short segments than responses, that of "
            f"{flow.syn.sender} {surplus} more"
        )


def _surplus(flow: Flow) -> int:
    """Return by how many the server's short segments are more than the client's requests."""
    asked = sum(p.payload.startswith(METHODS) for _, p in payloads(flow, by_client=True))
    sizes, reached = [], 0
    for offset, packet in payloads(flow, by_client=False):
        if offset >= reached:
            sizes.append(packet.payload_bytes)
            reached = offset + packet.payload_bytes
    short, longest = 0, 0
    # A path that turns out to be narrower makes all that follows shorter.
    for size in reversed(sizes):
        short, longest = short + (size < longest), max(size, longest)
    return short - asked


@check("records", "load", "condition", "flows", "hosts", source="nginx: ssl_buffer_size")
def check_records(seen: Evidence) -> Iterator[str]:
    """Over TLS long responses fill records."""
    if seen.condition.web_server == "aioquic":
        return
    longest, carried = defaultdict[str, int](int), defaultdict[str, int](int)
    for flow in seen.flows.flows:
        if flow.syn.target_port == HTTPS_PORT:
            address = format_address(flow.syn.target)
            host = seen.hosts.get(address, address)
            sent = start_of(flow, by_client=False, most=maxsize)
            sizes = [size for kind, size, _ in read_records(sent) if kind == APPLICATION_DATA]
            longest[host] = max(longest[host], *sizes, 0)
            carried[host] += sum(sizes)
    for request in seen.load.requests:
        host, size = urlsplit(request.url).hostname or "", request.transfer_bytes or 0
        if SURE_BYTES <= size <= carried[host] and longest[host] < RECORD_BYTES:
            yield (
                f"{host} sent {size} bytes of {request.url} in records of no more than "
                f"{longest[host]} bytes; they hold {RECORD_BYTES}"
            )
            return
