"""Knobs that only the wire can show: name look-ups, reuse of connections, offloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dpkt

from testbed.model import Condition
from testbed.wire.packets import payload_bytes, read_ip

DNS_PORT = 53
METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ")


def check_conduct(pcap: Path, condition: Condition) -> tuple[str, ...]:
    """A sentence for each knob of ``condition`` that the capture contradicts.

    ``dns``: questions cross the link with ``resolver``, none does with ``hosts``.
    ``requests_per_connection``: no connection carries more.  Offloads: no packet is larger than
    the MTU.

    Raises:
        OSError, ValueError: the capture cannot be read.
    """
    questions = largest = 0
    requests: Counter[tuple[bytes, int, bytes, int]] = Counter()
    seen: set[tuple[bytes, int, bytes, int, int]] = set()
    for _, packet in read_ip(pcap):
        largest = max(largest, packet.len)
        upper = packet.data
        if isinstance(upper, dpkt.udp.UDP) and upper.dport == DNS_PORT:
            questions += 1
        elif isinstance(upper, dpkt.tcp.TCP) and payload_bytes(packet):
            connection = (packet.src, upper.sport, packet.dst, upper.dport)
            first_time = (*connection, upper.seq) not in seen
            seen.add((*connection, upper.seq))
            if first_time and bytes(upper.data).startswith(METHODS):
                requests[connection] += 1
    return tuple(_complain(condition, questions, max(requests.values(), default=0), largest))


def _complain(condition: Condition, questions: int, most: int, largest: int) -> Iterator[str]:
    if condition.dns == "resolver" and not questions:
        yield "dns = resolver, but no name was asked for on the link"
    if condition.dns == "hosts" and questions:
        yield f"dns = hosts, but {questions} questions for names crossed the link"
    limit = condition.tcp.requests_per_connection
    if limit is not None and most > limit:
        yield f"a connection carried {most} requests, asked was {limit} at the most"
    if largest > condition.link.mtu_bytes:
        yield f"a packet of {largest} bytes is larger than the MTU: an offload is on"
