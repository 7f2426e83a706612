"""Think times: of servers, none answered sooner than asked; of the graph client, none was kept.

How long a server may be silent is another question (``testbed.mechanisms.sending``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from testbed.base.seeding import think_factor
from testbed.capture.application import METHODS
from testbed.capture.flows import Flow, payloads, read_flows
from testbed.capture.packets import HTTPS_PORT, Packet
from testbed.capture.quic import ONE_RTT, QuicConnection, QuicPacket
from testbed.proof.check import check, say_unshown
from testbed.proof.evidence import Evidence

Exchange = tuple[Packet, Packet]
"""The last packet of a request, and the first of its answer."""
SMALL_BYTES = 1200
"""What a server says over TLS without being asked: two tickets, and the settings of HTTP/2."""
REACTION_NS, REACTION_IN_REAL_TIME_NS = 1_000_000, 50_000_000
"""What the graph client may take to go on."""


@check("think time at the server", "condition", "at_server", "load", "quic", "replay")
def check_thought(seen: Evidence) -> Iterator[str]:
    """No answer left the server sooner than it was to think, from all of its request.

    nginx counts whole milliseconds.  Over TLS the first answer of a connection is judged, which
    is what exceeds tickets and settings (``SMALL_BYTES``); over QUIC a round trip is added.
    """
    condition = seen.condition
    least_ms = condition.server_think_ms * (1 - condition.think_spread_pct / 100)
    if not condition.server_think_ms:
        if condition.think_spread_pct and condition.think_time == "none":
            yield say_unshown("think_spread_pct", condition.think_spread_pct)
        return
    least_ns = (least_ms - 1) * 1e6
    found = list(_thought_ns(seen))
    early = [thought_ns for thought_ns in found if thought_ns < least_ns]
    if seen.has("logs") and seen.steady:
        yield from _check_each(seen)
    if early:
        yield (
            f"{len(early)} of {len(found)} answers left the server after "
            f"{min(early) / 1e6:.3f} ms, "
            f"asked were {least_ms:g} ms or more"
        )
    elif not found:
        yield say_unshown("server_think_ms", condition.server_think_ms)


def _check_each(seen: Evidence) -> Iterator[str]:
    """Yield the first answer that came sooner than by its own think time, which the seed draws."""
    asked, missed = seen.condition, {*seen.replay.missed}
    for request in (request for log in seen.logs for request in log.requests if request.is_timed):
        name = f"{request.entry['request']['method']} {request.told.url}"
        factor = think_factor(seen.trial.seed, f"server {name}", asked.think_spread_pct)
        due_ms = round(asked.server_think_ms * factor) + seen.link.rtt_ms
        if request.waits["wait"] < due_ms - 1 and request.told.status and name not in missed:
            yield (
                f"{request.told.url}: its answer came after {request.waits['wait']:.3f} ms, by the "
                f"seed not before {due_ms:g} ms"
            )
            return


def _thought_ns(seen: Evidence) -> Iterator[float]:
    """Yield how long after each request that can be told its answer left, in ns."""
    for flow in read_flows(seen.at_server, seen.clients).flows:
        if flow.syn.target_port != HTTPS_PORT:
            for request, answer in _exchanges(flow):
                yield answer.at_ns - request.at_ns
        elif not seen.condition.early_data:
            yield from _first_answer_ns(flow)
    for request, answer in quic_exchanges(seen.quic, seen.capture.packets):
        yield answer.at_ns - request.at_ns - seen.link.rtt_ms * 1e6


def _first_answer_ns(flow: Flow) -> Iterator[float]:
    """Yield how long after the client's second flight more came than no answer has."""
    sent = [packet for _, packet in payloads(flow, by_client=False)]
    if not sent:
        return
    spoke = [p.at_ns for _, p in payloads(flow, by_client=True) if p.at_ns > sent[0].at_ns]
    came = 0
    for packet in sent:
        came += packet.payload_bytes if spoke and packet.at_ns >= spoke[0] else 0
        if came > SMALL_BYTES:
            yield packet.at_ns - spoke[0]
            return


@check("pace of the client", "condition", "capture", "own_client")
def check_pace(seen: Evidence) -> Iterator[str]:
    """Under ``think_time = none`` the graph client sends nothing but at once after what came.

    What is sent again is not judged.  In real time the client's own computing is in between.
    """
    if seen.condition.think_time != "none":
        return
    if seen.condition.client != "graph":
        yield say_unshown("think_time", seen.condition.think_time)
        return
    most_ns = REACTION_NS if seen.virtual_time else REACTION_IN_REAL_TIME_NS
    woken_ns: int | None = None
    known: set[tuple[object, ...]] = set()
    late = []
    for packet in seen.capture.packets:
        if packet.source not in seen.clients:
            woken_ns = packet.at_ns if packet.target in seen.clients else woken_ns
            continue
        name = (packet.target, packet.source_port, packet.target_port, packet.seq)
        spoken = packet.opens or packet.payload_bytes
        if not spoken or name in known:
            continue
        known.add(name)
        if woken_ns is not None and packet.at_ns - woken_ns > most_ns:
            late.append(packet.at_ns - woken_ns)
        woken_ns = packet.at_ns
    if late:
        yield (
            f"think_time = none, but {len(late)} times the client waited, for up to "
            f"{max(late) / 1e6:.3f} ms"
        )


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
