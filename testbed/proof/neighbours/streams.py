"""Greedy connections of neighbours in captures: that they never ran dry, and what they got."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from testbed.capture.flows import first_byte, list_progress
from testbed.capture.packets import FIN, RST, Packet, behind
from testbed.model import LinkSpec, NeighbourFlow
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


def read_connection(
    flow: PlannedFlow,
    seen: SeenFlow,
    told: Sequence[ToldConnection],
    window: LoadWindow,
    link: LinkSpec,
) -> tuple[NeighbourFlow | None, list[str]]:
    """Return what a connection came to, and a sentence for each thing that is not as asked."""
    syn = next((packet for packet in seen.out if packet.opens), None)
    if syn is None:
        return None, ["it never began"]
    wrong = [*check_began(flow.neighbour, syn.at_ns, window)]
    until_ns = window.end_of(flow.neighbour)
    wrong += _ended(flow, (*seen.out, *(seen.left if flow.way == "down" else ())), window)
    data = [p for p in (seen.out if flow.way == "up" else seen.back) if p.payload_bytes]
    if not data:
        return None, [*wrong, "it sent nothing"]
    wrong += check_algorithm(flow, told)
    wrong += check_conduct(flow.neighbour, flow.way, seen, link)
    busy_s = sum(each.busy_s for each in told)
    if told and (idle_s := (until_ns - data[0].at_ns) / 1e9 - busy_s) > IDLE_S:
        wrong.append(f"it had nothing to send for {idle_s:.3f} s")
    steps = list_progress(data, first_byte(seen.back))
    if flow.way == "up":  # what got through is what its remote end acknowledged
        acks = [p for p in seen.back if not p.flags & RST]
        reached = accumulate((behind(p.ack, syn.seq) for p in acks), max)
        steps = ((p.at_ns, count) for p, count in zip(acks, reached, strict=True))
    there = Progress(list(steps))
    moved = there.reached(window.end_ns) - there.reached(window.start_ns - 1)
    return NeighbourFlow(
        *(flow.neighbour.text, flow.number, flow.way, window.since_s(syn.at_ns)),
        rate_kbit(moved, window),
        retransmits=sum(each.retransmits for each in told),
    ), wrong


def _ended(flow: PlannedFlow, sent: Iterable[Packet], window: LoadWindow) -> Iterator[str]:
    """Yield a sentence if an end closed before its time, or a sender not at it."""
    ended_ns = min((p.at_ns for p in sent if p.flags & (FIN | RST)), default=None)
    until_ns = window.end_of(flow.neighbour)
    early_ns = until_ns - (window.end_ns if ended_ns is None else ended_ns)
    late_ns = -early_ns if until_ns < window.end_ns else 0
    if max(early_ns, late_ns) > SLACK_S * 1e9:
        ended = "never" if ended_ns is None else f"at {window.since_s(ended_ns):.3f} s"
        yield f"it ended {ended}, asked was {window.since_s(until_ns):.3f} s"
