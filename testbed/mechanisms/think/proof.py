"""Think times: of servers, none answered sooner than asked; of the graph client, none was kept.

How long a server may be silent is another question (``testbed.mechanisms.sending``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from urllib.parse import urlsplit

from testbed.base.addresses import format_address
from testbed.capture.application import METHODS
from testbed.capture.flows import Flow, payloads, speaks_tls
from testbed.capture.packets import Packet
from testbed.capture.quic import ONE_RTT, QuicConnection, QuicPacket
from testbed.proof.check import check, say_unshown
from testbed.proof.evidence import Evidence
from testbed.server.think import Think, think_of

HTTP_PORT = 80
Exchange = tuple[Packet, Packet]
"""The last packet of a request, and the first of its answer."""
SMALL_BYTES = 1200
"""What a server says over TLS without being asked: two tickets, and the settings of HTTP/2."""
REACTION_NS, REACTION_IN_REAL_TIME_NS = 1_000_000, 50_000_000
"""What the graph client may take to go on."""


@check("think time at the server", "condition", "at_server", "load", "quic", "replay", "hosts")
def check_thought(seen: Evidence) -> Iterator[str]:
    """No answer left the server sooner than it was to think, from all of its request.

    nginx counts whole milliseconds.  A request that is in clear or in the client's log has a think
    time of its own, which the seed draws.  Over TLS the first answer of a connection is judged,
    which is what exceeds tickets and settings (``SMALL_BYTES``); over QUIC a round trip is added.
    """
    condition = seen.condition
    think = think_of(condition, seen.trial.seed, lambda: seen.archive)
    if think is None:
        if condition.think_spread_pct and condition.think_time == "none":
            yield say_unshown("think_spread_pct", condition.think_spread_pct)
        return
    found = list(_thoughts(seen, think))
    early = [(ms, due_ms) for _, ms, due_ms in found if ms < due_ms - 1]
    if early:
        ms, due_ms = min(early)
        yield (
            f"{len(early)} of {len(found)} answers left the server after {ms:.3f} ms, "
            f"asked were {due_ms:g} ms or more"
        )
        return
    shown = {host for host, _, due_ms in found if due_ms}
    for knob in ("server_think_ms", "server_think"):
        value = getattr(condition, knob)
        if value not in (0.0, "none") and not shown - {*think.by_host}:
            yield say_unshown(knob, value)
    for host in (host for host, ms in think.by_host.items() if ms and host not in shown):
        yield say_unshown("think_by_host", f"{host} {think.by_host[host]:g}")


def _thoughts(seen: Evidence, think: Think) -> Iterator[tuple[str, float, float]]:
    """Yield of each request that can be told its host, how long after it its answer left, and due.

    Both are in ms.
    """
    for flow in seen.flows_at_server.flows:
        host = seen.hosts.get(format_address(flow.syn.target), "")
        if not speaks_tls(flow):
            for begun, request, answer in _exchanges(flow):
                due_ms = _due_ms(seen, think.of(host), _name_of(begun, seen.hosts))
                yield host, (answer.at_ns - request.at_ns) / 1e6, due_ms
        elif not seen.condition.early_data:
            least_ms = _due_ms(seen, think.of(host), None)
            yield from ((host, after_ns / 1e6, least_ms) for after_ns in _first_answer_ns(flow))
    for request, answer in quic_exchanges(seen.quic, seen.capture.packets):
        host = seen.hosts.get(format_address(request.target), "")
        lasted_ms = (answer.at_ns - request.at_ns) / 1e6 - seen.link.rtt_ms
        yield host, lasted_ms, _due_ms(seen, think.of(host), None)
    if seen.has("logs") and seen.steady:
        for each in (each for log in seen.logs for each in log.requests):
            name = f"{each.entry['request']['method']} {each.told.url}"
            if each.is_timed and each.told.status:
                host = urlsplit(each.told.url).hostname or ""
                due_ms = _due_ms(seen, think.of(host), name)
                yield host, each.waits["wait"] - seen.link.rtt_ms, due_ms


def _due_ms(seen: Evidence, think: Think, name: str | None) -> float:
    """How long a request of this name is thought about, or any at the least."""
    if name is not None and name not in seen.replay.missed:
        return think.delay_ms(name)
    return 0.0 if think.recorded else think.mean_ms * (1 - think.spread_pct / 100)


def _name_of(request: Packet, hosts: Mapping[str, str]) -> str | None:
    """The method and URL of a request in clear, if its line was captured whole."""
    method, path, version = (*request.payload.split(b" ", 2), b"", b"")[:3]
    host = hosts.get(format_address(request.target))
    if host is None or not version.startswith(b"HTTP/"):
        return None
    port = "" if request.target_port == HTTP_PORT else f":{request.target_port}"
    return f"{method.decode('latin-1')} http://{host}{port}{path.decode('latin-1')}"


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


def _exchanges(flow: Flow) -> Iterator[tuple[Packet, Packet, Packet]]:
    """Yield the first and last packet of each request in clear, and the first of its answer."""
    asked = [packet for _, packet in payloads(flow, by_client=True)]
    begun = [packet for packet in asked if packet.payload.startswith(METHODS)]
    answers = sorted((p for _, p in payloads(flow, by_client=False)), key=attrgetter("at_ns"))
    for request, following in pairwise([*begun, None]):
        if request is None:
            return
        index = bisect_right(answers, request.at_ns, key=attrgetter("at_ns"))
        answer = answers[index] if index < len(answers) else None
        if answer is None or (following is not None and answer.at_ns > following.at_ns):
            continue
        sent = (p for p in asked if request.at_ns <= p.at_ns < answer.at_ns)
        yield request, max(sent, key=attrgetter("at_ns")), answer
