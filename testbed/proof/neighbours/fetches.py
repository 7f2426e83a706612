"""Fetches of neighbours in captures: each of its size and at its time, by the seed alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from testbed.capture.flows import first_byte, list_progress
from testbed.capture.packets import ACK, FIN, RST, behind
from testbed.model import LinkSpec, NeighbourFlow
from testbed.model.fetches import REQUEST_BYTES, plan_fetches
from testbed.model.traffic import PlannedFlow, ToldConnection
from testbed.proof.neighbours.conduct import check_conduct
from testbed.proof.neighbours.flow import (
    IDLE_S,
    SLACK_S,
    LoadWindow,
    Progress,
    SeenFlow,
    check_algorithm,
    check_began,
    rate_kbit,
)

_SLACK_NS = round(SLACK_S * 1e9)


@dataclass(slots=True)
class _Connection:
    """A connection that fetches: its packets at the neighbour, and what they say.

    ``asked`` has when each request was first sent, and ``there`` when how many bytes were there.
    """

    opened_ns: int
    seen: SeenFlow = field(default_factory=SeenFlow)
    asked: dict[int, int] = field(default_factory=dict)
    there: Progress = field(default_factory=Progress)


@dataclass(slots=True)
class _Account:
    """When a flow began, from when to when each of its fetches was, and what is wrong with it."""

    began_ns: int
    begun: Counter[int] = field(default_factory=Counter)
    spans: list[tuple[int, int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def read_fetches(
    users: Sequence[tuple[PlannedFlow, SeenFlow]],
    told: Sequence[ToldConnection],
    window: LoadWindow,
    seed: int,
    link: LinkSpec,
) -> tuple[NeighbourFlow, list[str]]:
    """Return what the flows of a neighbour came to, and a sentence for each thing not as asked."""
    (flow, _), wrong, moved = users[0], [], 0
    spans: list[tuple[int, int]] = []
    began_s = flow.neighbour.from_s
    for each, seen in users:
        connections = _read_connections(seen)
        account = _follow(each, connections, window, seed)
        name = f"flow {each.number}: " if len(users) > 1 else ""
        conduct = (
            sentence
            for connection in connections.values()
            for sentence in check_conduct(each.neighbour, "down", connection.seen, link)
        )
        wrong += [f"{name}{sentence}" for sentence in (*account.wrong, *dict.fromkeys(conduct))]
        if each is flow:
            began_s = window.since_s(account.began_ns)
        spans += account.spans
        moved += sum(
            c.there.reached(window.end_ns) - c.there.reached(window.start_ns)
            for c in connections.values()
        )
    if spans or told:
        wrong += check_algorithm(flow, told)
    spans = [span for span in spans if window.start_ns <= span[1] <= window.end_ns]
    times_ms = [(ended_ns - start_ns) / 1e6 for start_ns, ended_ns in spans]
    return NeighbourFlow(
        *(flow.neighbour.text, flow.number, flow.way, began_s, rate_kbit(moved, window)),
        retransmits=sum(each.retransmits for each in told),
        fetches=len(spans),
        fetch_p50_ms=median(times_ms) if times_ms else None,
        fetch_max_ms=max(times_ms, default=None),
    ), wrong


def _read_connections(seen: SeenFlow) -> dict[int, _Connection]:
    """Sort the packets of a flow by the port of the neighbour."""
    connections: dict[int, _Connection] = {}
    for packet in seen.out:
        if packet.opens:
            connections.setdefault(packet.source_port, _Connection(packet.at_ns))
    for side in ("out", "back", "arrived", "left"):
        for packet in getattr(seen, side):
            near = packet.source_port if side in ("out", "arrived") else packet.target_port
            if near in connections:
                getattr(connections[near].seen, side).append(packet)
    for each in connections.values():
        start = next(p.seq + 1 for p in each.seen.out if p.opens)
        for packet in each.seen.out:
            if packet.payload_bytes:
                number = behind(packet.seq, start) // REQUEST_BYTES
                each.asked.setdefault(number, packet.at_ns)
        data = (p for p in each.seen.back if p.payload_bytes)
        each.there = Progress(list(list_progress(data, first_byte(each.seen.back))))
    return connections


def _follow(
    flow: PlannedFlow, connections: dict[int, _Connection], window: LoadWindow, seed: int
) -> _Account:
    """Return what a flow fetched, held against what it was to."""
    first = next(plan_fetches(flow, seed))
    opened = connections.get(first.port)
    account = _Account(window.begin_of(flow.neighbour))
    if opened is None:
        due_ns = account.began_ns + first.pause_ns
        if connections or due_ns < window.end_of(flow.neighbour) - _SLACK_NS:
            account.wrong.append("it never began")
        return account
    account.began_ns = opened.opened_ns - first.pause_ns
    account.wrong += check_began(flow.neighbour, account.began_ns, window)
    account.wrong += _follow_fetches(flow, connections, account, window, seed)
    requests = sum(
        at < window.end_ns for each in connections.values() for at in each.asked.values()
    )
    if not account.wrong and (more := requests - account.begun.total()) > 0:
        account.wrong.append(f"it asked for {more} things more than it was to")
    return account


def _follow_fetches(
    flow: PlannedFlow,
    connections: dict[int, _Connection],
    account: _Account,
    window: LoadWindow,
    seed: int,
) -> Iterator[str]:
    """Go through what was to be fetched, until the first that was not, or is not there yet.

    Yield a sentence if that is not as asked.
    """
    began_ns = ended_ns = account.began_ns
    until_ns = window.end_of(flow.neighbour)
    for number, fetch in enumerate(plan_fetches(flow, seed), 1):
        due_ns = max(began_ns + fetch.due_ns, ended_ns + fetch.pause_ns)
        if due_ns > until_ns:
            return
        connection = connections.get(fetch.port)
        before = account.begun[fetch.port]
        start_ns = None
        if connection is not None:
            start_ns = connection.opened_ns if fetch.opens else connection.asked.get(before)
        if connection is None or start_ns is None or abs(start_ns - due_ns) > _SLACK_NS:
            if start_ns is not None or due_ns < until_ns - _SLACK_NS:
                began = "never" if start_ns is None else f"at {window.since_s(start_ns):.3f} s"
                yield f"fetch {number} began {began}, due was {window.since_s(due_ns):.3f} s"
            return
        account.begun[fetch.port] += before in connection.asked
        size = fetch.size_bytes * (before + 1)
        complete_ns = connection.there.complete_ns(size)
        if complete_ns is None or complete_ns > window.end_ns:
            yield from _check_under_way(connection, number, window)
            return
        following_ns = connection.asked.get(before + 1, window.end_ns)
        if (came := connection.there.reached(following_ns)) != size:
            yield f"fetch {number} brought {came - size} bytes more than {fetch.size_bytes}"
            return
        account.spans.append((start_ns, complete_ns))
        ended_ns = complete_ns


def _check_under_way(connection: _Connection, number: int, window: LoadWindow) -> Iterator[str]:
    """Yield a sentence if a fetch that is not complete at the load's end was given up."""
    seen, end_ns = connection.seen, window.end_ns
    closed = [p for p in (*seen.out, *seen.left) if p.flags & (FIN | RST) and p.at_ns < end_ns]
    if closed:
        yield f"fetch {number} was cut at {window.since_s(closed[0].at_ns):.3f} s"
    sent = [p for p in seen.left if p.at_ns <= end_ns and not p.flags & RST]
    asked_ns = max(connection.asked.values(), default=end_ns)
    arrived = [p for p in seen.arrived if p.at_ns <= end_ns]
    came = [p.at_ns for p in arrived if p.payload_bytes and p.at_ns >= asked_ns]
    if not came or not sent:
        return
    first = first_byte(sent)
    last = max(behind(p.seq, first) + p.payload_bytes for p in sent)
    acknowledged = [p.at_ns for p in arrived if p.flags & ACK and behind(p.ack, first) >= last]
    idle_ns = end_ns - max(*came, *acknowledged, *(p.at_ns for p in sent))
    if acknowledged and idle_ns > IDLE_S * 1e9:
        yield f"fetch {number} had nothing under way for {idle_ns / 1e9:.3f} s"
