"""Conduct of clients and server in the capture of a load: what was asked of each, by its packets.

When connections start follows from rate and seed alone (``native/schedule.h``), and when a SYN is
sent again from the kernel's documented rule (ip-sysctl: tcp_syn_linear_timeouts; RFC 6298).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from testbed.capture.flows import Flow
from testbed.capture.packets import FIN, RST, SYN
from wings.server_loads.spec import ArrivalSpec, ServerSpec

SECOND_NS = 1_000_000_000
LATE_NS = 100_000
"""What the generator's calls may take in virtual time."""
LATE_IN_REAL_TIME_NS = 2_000_000
"""Twice what 99 % of its starts may be late by: those of the first one and of another."""
WHEEL = 0.125
"""By how much of itself a timer may be late (kernel/time/timer.c)."""
TICK_NS = 20_000_000
_FRACTION_BITS = 16
_64 = 1 << 64


def schedule_ns(arrivals: ArrivalSpec, seed: int) -> Iterator[int]:
    """Yield when each connection of an open loop is to start, in ns from the beginning."""
    until_ns = (arrivals.warm_up_s + arrivals.duration_s) * SECOND_NS
    return takewhile(lambda at_ns: at_ns < until_ns, _arrivals_ns(arrivals, seed))


def _arrivals_ns(arrivals: ArrivalSpec, seed: int) -> Iterator[int]:
    number = at = 0
    state = [seed]
    while True:
        if arrivals.spacing == "poisson":
            at += _exponential(state, (SECOND_NS << _FRACTION_BITS) // arrivals.rate_per_s)
            yield at >> _FRACTION_BITS
        else:
            yield number * SECOND_NS // arrivals.rate_per_s
            number += 1


def _draw(state: list[int]) -> int:
    """Return 64 random bits as ``native/random.h`` does."""
    z = state[0] = (state[0] + 0x9E3779B97F4A7C15) % _64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % _64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % _64
    return z ^ z >> 31


def _exponential(state: list[int], mean: int) -> int:
    whole = 0
    while True:
        first = last = _draw(state)
        falling = 1
        while (following := _draw(state)) < last:
            last, falling = following, falling + 1
        if falling % 2:
            return whole + (first * mean >> 64)
        whole += mean


def split_retries(
    flows: Sequence[Flow], due_ns: Sequence[int], late_ns: int
) -> tuple[list[Flow], list[Flow]]:
    """Return the connections that started when one was due, and the others, in their order."""
    first, others = [], []
    began_ns = flows[0].syn.at_ns - due_ns[0] if flows and due_ns else 0
    taken = 0
    for flow in flows:
        at_ns = flow.syn.at_ns - began_ns
        # One that never left is not waited for.
        taken += bisect_left(due_ns[taken:], at_ns - late_ns)
        if taken < len(due_ns) and due_ns[taken] <= at_ns + late_ns:
            first.append(flow)
            taken += 1
        else:
            others.append(flow)
    return first, others


def syns(flow: Flow) -> list[int]:
    """Return when the client sent each SYN of a connection, in ns."""
    return [packet.at_ns for by_client, packet in flow.packets if by_client and packet.opens]


def is_refused(flow: Flow) -> bool:
    """Return whether a RST answered the SYN."""
    answers = (packet for by_client, packet in flow.packets if not by_client)
    return flow.synack is None and any(packet.flags & RST for packet in answers)


def ended_ns(flow: Flow) -> int | None:
    """Return when the client ended a connection, or heard that it was ended; ``None``: never."""
    for by_client, packet in flow.packets:
        if packet.flags & RST or (by_client and packet.flags & FIN):
            return packet.at_ns
    return None


def syn_gap_ns(arrivals: ArrivalSpec, number: int) -> float:
    """Return how long after the SYN before it the ``number``-th is sent again, from 1."""
    doublings = max(0, number - 1 - arrivals.syn_linear_timeouts)
    return float(arrivals.syn_timeout_s * SECOND_NS * 2**doublings)


def odd_timers(flows: Sequence[Flow], arrivals: ArrivalSpec) -> int:
    """Return how many connections sent a SYN again at another time than their kernel is to."""
    return sum(
        any(
            not -TICK_NS <= after - before - due <= due * WHEEL + TICK_NS
            for number, (before, after) in enumerate(pairwise(syns(flow)), 1)
            for due in [syn_gap_ns(arrivals, number)]
        )
        for flow in flows
    )


def odd_patience(
    flows: Sequence[Flow], arrivals: ArrivalSpec, response_bytes: int
) -> tuple[int, int]:
    """Return how many connections clients kept for longer than their patience, and for less.

    One that had no SYN-ACK is given up in silence: then a SYN that was due is not sent.  A FIN may
    have to wait behind the request.
    """
    patience_ns = arrivals.patience_s * SECOND_NS
    slack_ns = patience_ns * 0.01 + TICK_NS
    last_ns = max((flow.packets[-1][1].at_ns for flow in flows), default=0)
    longer = shorter = 0
    for flow in flows:
        sent = syns(flow)
        longer += sent[-1] - sent[0] > patience_ns + slack_ns
        answered = any(not by_client for by_client, _ in flow.packets)
        if not answered:
            due_ns = syn_gap_ns(arrivals, len(sent)) * (1 + WHEEL) + sent[-1]
            due = len(sent) <= arrivals.syn_retries and due_ns < last_ns - slack_ns
            shorter += due and due_ns - sent[0] < patience_ns - slack_ns
        elif (own_ns := _given_up_ns(flow, response_bytes)) is not None:
            shorter += own_ns - sent[0] < patience_ns - slack_ns
    return longer, shorter


def _given_up_ns(flow: Flow, response_bytes: int) -> int | None:
    """When the client ended a connection without its whole response, and not for a RST."""
    came = 0
    for by_client, packet in flow.packets:
        came += 0 if by_client else packet.payload_bytes
        if not by_client and packet.flags & (RST | FIN):
            return None
        if by_client and packet.flags & (RST | FIN):
            return None if came > response_bytes else packet.at_ns
    return None


def read_answer(flow: Flow) -> tuple[int | None, int]:
    """Return the length of the body that a response announces, and how many bytes of it came.

    ``None``: it announces none.  Of a head that the capture cut nobody knows the length: then a
    body that may be whole is.
    """
    begin = flow.synack.seq + 1 if flow.synack is not None else 0
    data = [p for by_client, p in flow.packets if not by_client and p.payload_bytes]
    head = next((p.payload for p in data if p.seq == begin % 2**32), b"")
    lines, end, _ = head.partition(b"\r\n\r\n")
    for line in lines.split(b"\r\n")[: None if end else -1]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            came = max((p.seq - begin) % 2**32 + p.payload_bytes for p in data)
            came -= len(lines) + len(end)
            return int(value), came if end else min(int(value), came)
    return None, 0


def version_asked(flow: Flow) -> str | None:
    """Return the version of HTTP of a connection's request; ``None``: it has none."""
    sent = (p.payload for by_client, p in flow.packets if by_client and p.payload_bytes)
    line, _, _ = next(sent, b"").partition(b"\r\n")
    return line.rpartition(b"HTTP/")[2].decode("ascii", "replace") if line else None


def ending_of(flow: Flow) -> str | None:
    """Return how the client ended a connection; ``None``: it did not, or was told to by a RST."""
    for by_client, packet in flow.packets:
        if packet.flags & (FIN | RST) and by_client:
            return "fin" if packet.flags & FIN else "rst"
        if packet.flags & RST:
            return None
    return None


def odd_management(flows: Sequence[Flow], server: ServerSpec, rtt_ns: float) -> Iterator[str]:
    """Yield what a server did that its mechanism never does, where nothing was lost."""
    words = server.mechanism.split()
    again = sum(_is_acked_again(flow, rtt_ns) for flow in flows)
    if again and words[0] != "default":
        yield f"{again} ACKs of handshakes were dropped in silence, not so by {server.mechanism}"
    silent = sum(
        len(syns(flow)) > 1 and not is_refused(flow) and _first_answer(flow) is None
        for flow in flows
    )
    if silent and ("rst-syn" in words or server.mechanism == "no-syn-drop"):
        yield f"{silent} SYNs were dropped in silence, which {server.mechanism} never does"
    polite = sum(_is_answered_by_fin(flow) for flow in flows)
    if polite and "rst-fin" in words:
        yield f"{polite} FINs were answered by one, which {server.mechanism} never does"


def _first_answer(flow: Flow) -> int | None:
    return next((p.at_ns for by_client, p in flow.packets if not by_client), None)


def _is_acked_again(flow: Flow, rtt_ns: float) -> bool:
    """Whether a SYN-ACK came again when the ACK of the one before had been there."""
    acked_ns = None
    for by_client, packet in flow.packets:
        if by_client and not packet.flags & (SYN | RST) and acked_ns is None:
            acked_ns = packet.at_ns
        if not by_client and packet.flags & SYN and acked_ns is not None:
            return packet.at_ns - acked_ns > rtt_ns
    return False


def _is_answered_by_fin(flow: Flow) -> bool:
    """Whether the server answered the client's FIN by its own."""
    gone = False
    for by_client, packet in flow.packets:
        if packet.flags & (FIN | RST):
            if not by_client:
                return gone and bool(packet.flags & FIN)
            gone = True
    return False
