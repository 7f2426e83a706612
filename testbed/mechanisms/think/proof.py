"""Service of requests in a capture: how long one lay at the server while the line down was idle.

In virtual time a server answers at once, so an answer follows its request by a round trip and what
both occupy of the link; what is longer, other packets took.  A server that thinks, or was stopped,
leaves the line idle.  Requests in TLS over TCP are not seen; of QUIC, those that were alone on
their connection are judged: others may have to wait for its congestion window.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise

from testbed.capture.application import METHODS
from testbed.capture.flows import Flow, Flows, payloads
from testbed.capture.packets import Packet
from testbed.capture.quic import ONE_RTT, QuicConnection, QuicPacket
from testbed.lab.neighbour_hosts import ADDRESSES
from testbed.model import LinkSpec
from testbed.model.line import serialisation_ms
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

Exchange = tuple[Packet, Packet]
"""The last packet of a request, and the first of its answer."""
MOST_IDLE_MS = 1.5
"""What server processes may take of a system whose computing costs next to nothing."""


@check("think time", "virtual_time", "plain_line", "load", "condition", "quic")
def check_service(seen: Evidence) -> Iterator[str]:
    """No request lay at the server for longer than it was to think, while the line was idle."""
    condition, packets = seen.condition, seen.capture.packets
    most_ms = condition.server_think_ms * (1 + condition.think_spread_pct / 100)
    if seen.neighbour_account is not None:
        packets = seen.neighbour_account.with_packets(packets)
    senders = (*seen.clients, ADDRESSES[0])
    exchanges = quic_exchanges(seen.quic, seen.capture.packets)
    idle_ms = sorted(list_idle_ms(packets, seen.flows, senders, seen.link, exchanges))
    late = idle_ms[bisect_right(idle_ms, most_ms + MOST_IDLE_MS) :]
    if late:
        yield (
            f"{len(late)} of {len(idle_ms)} requests lay at the server for up to {late[-1]:.3f} ms "
            "while nothing came down the link"
        )


def list_idle_ms(
    packets: Iterable[Packet],
    flows: Flows,
    senders: Collection[bytes],
    link: LinkSpec,
    exchanges: Iterable[Exchange] = (),
) -> Iterator[float]:
    """Yield for each request how long the line down was idle while it waited, in ms."""
    there_ns = _arrivals_up(packets, senders, link)
    times = [at_ns for at_ns, _ in flows.arrivals]
    busy_ns = [_line_ns(ip_bytes, link) for _, ip_bytes in flows.arrivals]
    over_tcp = (exchange for flow in flows.flows for exchange in _exchanges(flow))
    for request, answer in chain(over_tcp, exchanges):
        since_ns = there_ns[request] + link.rtt_ms * 5e5
        until_ns = answer.at_ns - _line_ns(answer.ip_bytes, link)
        first, last = bisect_right(times, since_ns), bisect_left(times, answer.at_ns)
        taken_ns = sum(
            min(busy, at_ns - since_ns)
            for at_ns, busy in zip(times[first:last], busy_ns[first:last], strict=True)
        )
        yield max(0.0, until_ns - since_ns - taken_ns) / 1e6


def _arrivals_up(
    packets: Iterable[Packet], senders: Collection[bytes], link: LinkSpec
) -> Mapping[Packet, float]:
    """When each packet of the senders came to the other side, in ns."""
    free_ns, there_ns = 0.0, {}
    for packet in packets:
        if packet.source in senders:
            line_ms = serialisation_ms(packet.ip_bytes, link.up_kbit, link.framing_bytes)
            free_ns = max(free_ns, packet.at_ns) + line_ms * 1e6
            there_ns[packet] = free_ns + link.rtt_ms * 5e5
    return there_ns


def quic_exchanges(
    connections: Iterable[QuicConnection], packets: Sequence[Packet]
) -> Iterator[Exchange]:
    """Yield the last packet of each request that was alone, and the first of its answer.

    ``packets`` are those of the capture.  What is asked before the handshake has ended may have to
    wait for that.
    """
    for connection in connections:
        asked: dict[int, QuicPacket] = {}
        alone: set[int] = set()
        owed: set[int] = set()
        for packet in connection.packets:
            for stream, ends in ((frame.stream, frame.fin) for frame in packet.requests):
                if packet.by_client:
                    alone |= set() if owed - {stream} or stream in asked else {stream}
                    asked[stream] = packet
                    owed.add(stream)
                    continue
                if stream in alone and asked[stream].kind == ONE_RTT:
                    yield packets[asked[stream].place - 1], packets[packet.place - 1]
                alone.discard(stream)
                owed -= {stream} if ends else set()


def _exchanges(flow: Flow) -> Iterator[Exchange]:
    """Yield the last packet of each request in plain text, and the first of its answer."""
    asked = [packet for _, packet in payloads(flow, by_client=True)]
    begun = [packet for packet in asked if packet.payload.startswith(METHODS)]
    answers = sorted((p for _, p in payloads(flow, by_client=False)), key=_at_ns)
    for request, following in pairwise([*begun, None]):
        if request is None:
            return
        index = bisect_right(answers, request.at_ns, key=_at_ns)
        answer = answers[index] if index < len(answers) else None
        if answer is None or (following is not None and answer.at_ns > following.at_ns):
            continue
        yield (
            max(
                (p for p in asked if request.at_ns <= p.at_ns < answer.at_ns),
                key=_at_ns,
            ),
            answer,
        )


def _at_ns(packet: Packet) -> int:
    return packet.at_ns


def _line_ns(ip_bytes: int, link: LinkSpec) -> float:
    return serialisation_ms(ip_bytes, link.down_kbit, link.framing_bytes) * 1e6
