"""Congestion notification as it was asked for, and marks as the queues count them (RFC 3168)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from testbed.capture.ecn import (
    ACCURATE,
    ASKS_ACCURATE,
    CLASSIC,
    CLASSIC_ACE,
    NEEDS_ECN,
    NO_ACE,
    NONE,
    WITHOUT_NEED,
    Marks,
    negotiate,
    read_ace,
)
from testbed.capture.flows import Flows
from testbed.model import FIFO, TcpSpec
from testbed.proof.check import check
from testbed.proof.evidence import Evidence


@check("ecn", "flows", "link", "counters", "whole_capture", source="RFC 3168, RFC 9768")
def check_ecn(seen: Evidence) -> Iterator[str]:
    """Connections negotiate ECN as both ends were asked to, and packets are marked by queues alone.

    Of a queue whose marks the lab does not count nothing is said.  What the server's kernel sent
    again need not be declared: what the capture does not show as such was lost before, and nothing
    had come behind it.  The queue of a shared link marks packets of others as well.
    """
    flows, marks, traffic = seen.flows, seen.marks, seen.counted
    resent = seen.counters["server"].get("TcpRetransSegs", 0)
    yield from _check_negotiated(flows, marks, seen.tcp)
    for way, excused in (("down", resent - sum(m.again for m in marks)), ("up", 0)):
        wrong = {mode: sum(m.undeclared[way] for m in marks if (m.mode == NONE) == (mode == NONE))
                 for mode in (NONE, CLASSIC)}  # fmt: skip
        if wrong[CLASSIC] > max(0, excused):
            yield (
                f"{way}: {wrong[CLASSIC]} packets with new data are not ECT, though their "
                "connections negotiated ECN"
            )
        if wrong[NONE]:
            yield f"{way}: {wrong[NONE]} packets are of ECN, on connections that negotiated none"
    none = {way: 0 if queue == FIFO else None for way, queue in seen.link.queues.items()}
    came, marked = sum(m.counts["down.ce"] for m in marks), traffic.get("down.marked", none["down"])
    # In real time fewer may wait at the end than did when the counting began.
    gone = sum(max(traffic.get(name, 0), 0) for name in ("down.lost", "down.dropped", "waiting"))
    if marked is not None and not (0 if seen.line_shared else marked - gone) <= came <= marked:
        yield f"{came} packets came down marked CE, the queue marked {marked}"
    yield from _check_reports(marks)
    if traffic.get("up.marked", none["up"]) == 0 and any(m.told["down"] for m in marks):
        yield "the server reported CE marks, and no queue on the way up marked a packet"


def _check_reports(marks: list[Marks]) -> Iterator[str]:
    """Hold what the client reported against the CE marks that came."""
    if any(m.counts["up.ce"] for m in marks):
        yield "the client sent packets that are marked CE already"
    more = sum(m.told["up"] > 0 and not m.counts["down.ce"] for m in marks)
    silent = sum(m.due and not m.told["up"] for m in marks)
    if more:
        yield f"the client reported CE marks on {more} connections without any"
    if silent:
        yield f"the client reported none of the CE marks of {silent} connections"


def _check_negotiated(flows: Flows, marks: list[Marks], tcp: TcpSpec) -> Iterator[str]:
    """Hold the handshakes whose SYN was sent once against what both ends were asked for."""
    if not {tcp.algorithm_of(end) for end in ("client", "server")} <= {NEEDS_ECN, *WITHOUT_NEED}:
        return
    asked, expected = negotiate(tcp)
    # One that is sent again asks for nothing (``tcp_ecn_fallback``).
    answered = [flow for flow in flows.flows if flow.synack is not None]
    once = [pair for pair in zip(answered, marks, strict=True) if pair[0].syns == 1]
    others = [flow for flow, _ in once if read_ace(flow.syn) != asked]
    if others:
        yield (
            f"{len(others)} of {len(once)} SYNs ask for {_word(read_ace(others[0].syn))} ECN, as "
            f"asked of the client they ask for {_word(asked)}"
        )
    wrong = Counter(each.mode for _, each in once if each.mode != expected)
    for mode, number in sorted(wrong.items()):
        yield (
            f"{number} of {len(once)} connections negotiated {mode} ECN, as asked of both ends it "
            f"is {expected}"
        )


def _word(ace: int) -> str:
    return {NO_ACE: "no", CLASSIC_ACE: CLASSIC, ASKS_ACCURATE: ACCURATE}.get(ace, f"{ace:03b}")
