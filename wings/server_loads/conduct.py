"""Conduct of clients in the capture of a load: what was asked of each, by its packets.

When a SYN is sent again is the kernel's documented rule (ip-sysctl: tcp_syn_linear_timeouts;
RFC 6298).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from statistics import median

from testbed.capture.flows import Flow, Flows, payloads
from testbed.capture.packets import ACK, FIN, RST, SYN, Packet
from testbed.model.impairments import is_lossy
from testbed.proof.check import check
from wings.server_loads.evidence import ServedEvidence
from wings.server_loads.responses import is_first_of_its_ports, own_packets
from wings.server_loads.schedule import SECOND_NS
from wings.server_loads.spec import ArrivalSpec
from wings.server_loads.sysctls import FIRST_TIMEOUT, LINEAR, USUAL_MS, timers_of

WHEEL = 0.125
"""By how much of itself a timer may be late (kernel/time/timer.c)."""
TICK_NS = 20_000_000
JIFFY_NS, LEVEL = 1_000_000, 63
"""Of virtual kernels: a tick (CONFIG_HZ), and how many steps a level of the timer wheel has."""


@check("exchanges", "served_load", "flows", source="RFC 9112")
def check_exchanges(seen: ServedEvidence) -> Iterator[str]:
    """Requests, responses and the ends of connections are those asked for."""
    load, flows = seen.asked, seen.flows.flows
    answers = [read_answer(flow) for flow in flows]
    size = load.server.response_bytes
    versions = Counter(filter(None, map(version_asked, flows)))
    ends = Counter(
        ending
        for flow, (told, came) in zip(flows, answers, strict=True)
        if told is not None and came >= told and (ending := ending_of(flow)) is not None
    )
    for what, asked, found in (
        ("http_version", load.arrivals.http_version, versions),
        ("ending", load.arrivals.ending, ends),
    ):
        other = found.total() - found[asked]
        if other:
            yield f"{what} = {asked}, but {other} of {found.total()} connections had another"
    other = sum(told is not None and (told != size or came > size) for told, came in answers)
    if other:
        yield f"response_bytes = {size}, but {other} responses had another length"
    whole = sum(told == came == size for told, came in answers)
    if seen.whole_capture and whole < seen.served_load.all_answered:
        yield f"{whole} whole responses came, clients had {seen.served_load.all_answered}"


@check("SYN timers", "served_load", "flows", "lab", source="RFC 6298, ip-sysctl")
def check_timers(seen: ServedEvidence) -> Iterator[str]:
    """SYNs were sent again when their kernel is to, and connections given up as asked."""
    arrivals, knobs, flows = seen.asked.arrivals, seen.lab.knobs, seen.flows.flows
    odd = odd_timers(flows, arrivals, exact=seen.virtual_time)
    if odd:
        yield f"{odd} of {len(flows)} connections sent a SYN again at another time than asked"
    ms, linear, _ = timers_of(arrivals)
    told = {end: knobs.get(f"{end}.{FIRST_TIMEOUT}", str(USUAL_MS)) for end in seen.counters}
    for end, text in told.items():
        if text != str(ms):
            yield f"{end}: a SYN's first timer was read back as {text} ms, asked was {ms} ms"
    # A kernel before 6.5 has none, and nothing to read back.
    text = knobs.get(f"client.{LINEAR}", "4" if linear else "0")
    if text != str(linear):
        yield f"client: {LINEAR} was read back as {text}, asked was {linear}"
    late = [*odd_patience(flows, arrivals, seen.asked.server.response_bytes)]
    if arrivals.retries_refused or is_lossy(seen.link) or not seen.whole_capture:
        late[1] = 0  # a retry has the patience of its first attempt
    for how, number in zip(("longer", "less"), late, strict=True):
        if number:
            yield f"clients kept {number} connections for {how} than {arrivals.patience_s:g} s"


def syns(flow: Flow) -> list[int]:
    """Return when the client sent each SYN of a connection, in ns."""
    return [packet.at_ns for by_client, packet in flow.packets if by_client and packet.opens]


def is_answered(flow: Flow) -> bool:
    """Return whether anything came back."""
    return any(not by_client for by_client, _ in flow.packets)


def list_gaps_ns(flow: Flow) -> list[int]:
    """Return how long after the SYN before it each was sent again."""
    return [after - before for before, after in pairwise(syns(flow))]


def odd_timers(flows: Sequence[Flow], arrivals: ArrivalSpec, *, exact: bool = False) -> int:
    """Return how many connections sent a SYN again at another time than their kernel is to.

    One may send it at once where the server knew an older connection of its ports: not counted.

    Args:
        flows: the connections.
        arrivals: what was asked of them.
        exact: a timer is late by a step of the wheel's level at most, as virtual kernels tick.
    """
    due_ns = [round(timer_s * SECOND_NS) for timer_s in arrivals.syn_timers_s]
    bounds = [
        (due - TICK_NS, due + TICK_NS + (_step_ns(due) if exact else round(due * WHEEL)))
        for due in due_ns
    ]
    return sum(
        len(gaps) > len(bounds)
        or any(not least <= gap <= most for gap, (least, most) in zip(gaps, bounds, strict=False))
        for gaps in map(list_gaps_ns, filter(is_first_of_its_ports, flows))
    )


def _step_ns(due_ns: int) -> int:
    """Return how coarse the timer wheel is where a timer of this length waits."""
    step = JIFFY_NS
    while due_ns > LEVEL * step:
        step *= 8
    return step


def find_medians_s(flows: Sequence[Flow]) -> tuple[float, ...]:
    """Return after how long SYNs were sent again, each time: the medians."""
    times = zip_longest(*map(list_gaps_ns, filter(is_first_of_its_ports, flows)))
    return tuple(
        round(median(gap for gap in gaps if gap is not None) / SECOND_NS, 3) for gaps in times
    )


def count_repeated(flows: Sequence[Flow]) -> tuple[int, int]:
    """Return how many connections sent their SYN again, and how many had a SYN-ACK for that one.

    That is before a third SYN, if there was one.
    """
    repeated = [(flow, sent) for flow in flows if len(sent := syns(flow)) > 1]
    answered = sum(
        flow.synack is not None
        and sent[1] < flow.synack.at_ns < (sent[2] if len(sent) > 2 else math.inf)
        for flow, sent in repeated
    )
    return len(repeated), answered


def odd_patience(
    flows: Sequence[Flow], arrivals: ArrivalSpec, response_bytes: int
) -> tuple[int, int]:
    """Return how many connections clients kept for longer than their patience, and for less.

    One that had no SYN-ACK is given up in silence: then a SYN that was due is not sent.  A FIN may
    have to wait behind the request.
    """
    patience_ns, timers_s = arrivals.patience_s * SECOND_NS, arrivals.syn_timers_s
    slack_ns = patience_ns * 0.01 + TICK_NS
    last_ns = max((flow.packets[-1][1].at_ns for flow in flows), default=0)
    longer = shorter = 0
    for flow in flows:
        sent = syns(flow)
        longer += sent[-1] - sent[0] > patience_ns + slack_ns
        if not is_answered(flow):
            if len(sent) > len(timers_s):
                continue
            due_ns = timers_s[len(sent) - 1] * SECOND_NS * (1 + WHEEL) + sent[-1]
            shorter += due_ns < last_ns - slack_ns and due_ns - sent[0] < patience_ns - slack_ns
        elif (own_ns := _given_up_ns(flow, response_bytes)) is not None:
            shorter += own_ns - sent[0] < patience_ns - slack_ns
    return longer, shorter


def _given_up_ns(flow: Flow, response_bytes: int) -> int | None:
    """When the client ended a connection without its whole response, and not for a RST."""
    came = 0
    for by_client, packet in own_packets(flow):
        if packet.flags & (RST | FIN):
            return packet.at_ns if by_client and came <= response_bytes else None
        came += 0 if by_client else packet.payload_bytes
    return None


def read_answer(flow: Flow) -> tuple[int | None, int]:
    """Return the length of the body that a response announces, and how many bytes of it came.

    ``None``: it announces none.  Of a head that the capture cut nobody knows the length: then a
    body that may be whole is.
    """
    data = [*payloads(flow, by_client=False)]
    head = next((packet.payload for offset, packet in data if not offset), b"")
    lines, end, _ = head.partition(b"\r\n\r\n")
    for line in lines.split(b"\r\n")[: None if end else -1]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            came = max(offset + packet.payload_bytes for offset, packet in data)
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
    by_client, packet = find_end(flow) or (False, None)
    if packet is None or not by_client:
        return None
    return "fin" if packet.flags & FIN else "rst"


def find_end(flow: Flow) -> tuple[bool, Packet] | None:
    """Return by whom, and by which packet, a connection ended for its client; ``None``: never."""
    for by_client, packet in own_packets(flow):
        if packet.flags & RST or (by_client and packet.flags & FIN):
            return by_client, packet
    return None


def count_handshake_acks(flows: Flows) -> int:
    """Return how many ACKs of a SYN-ACK clients sent: without data, and of nothing but it."""
    return sum(
        by_client
        and packet.flags & (SYN | FIN | RST | ACK) == ACK
        and not packet.payload_bytes
        and packet.ack == (flow.synack.seq + 1) % 2**32
        for flow in flows.flows
        if flow.synack is not None
        for by_client, packet in flow.packets
    )
