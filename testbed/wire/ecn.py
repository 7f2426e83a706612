"""Explicit congestion notification in a capture (RFC 3168; AccECN: RFC 9768).

An end asks for it in its SYN and is answered in the SYN-ACK; both follow from the sysctl
``tcp_ecn``, and from an algorithm that needs ECN (ip-sysctl, kernel documentation).  From then on
all data that is sent for the first time says that it may be marked, a queue marks it, and its
receiver tells the sender.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from testbed.model import FIFO, LinkSpec, TcpSpec
from testbed.model.settings import of_end
from testbed.wire.flows import Flow, Flows
from testbed.wire.packets import ACK, AE, CWR, ECE, FIN, SYN, Packet, behind

ECT_1, ECT_0, CE = 1, 2, 3
NONE, CLASSIC, ACCURATE = "none", "classic", "accurate"
NO_ACE, CLASSIC_ACE, ASKS_ACCURATE = 0b000, 0b011, 0b111
ANSWERS_CLASSIC = 0b001
"""AE, CWR and ECE of a handshake, as one number."""
FIRST_ACE, ACES = 5, 8
"""What an AccECN counter begins with, and how far it counts (RFC 9768 section 3.2)."""
PASSIVE = 2
"""The kernel's default of ``tcp_ecn``: answer who asks."""
NEEDS_ECN = "dctcp"
"""The algorithm of Linux that uses ECN whatever the sysctl says."""
WITHOUT_NEED = {
    *("bbr", "bic", "cdg", "cubic", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno"),
    *("scalable", "vegas", "veno", "westwood", "yeah"),
}
"""Algorithms of Linux that leave it to the sysctl; of others, out of tree, nothing is expected."""


@dataclass(slots=True)
class Marks:
    """What one connection shows of ECN; ``counts`` by what ``Proof.ecn`` calls it.

    ``undeclared`` is by side: new data that could not be marked where ECN was negotiated, or could
    where it was not.  ``told`` is how many marks each side reported, on classic connections in how
    many packets.  ``again`` counts the server's data that had come before, or fills a hole.
    ``due``: the client acknowledged data that came marked.
    """

    mode: str
    counts: Counter[str] = field(default_factory=Counter)
    undeclared: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    again: int = 0
    due: bool = False


def read_marks(flows: Flows) -> list[Marks]:
    """Read all connections that got a SYN-ACK."""
    return [_read(flow) for flow in flows.flows if flow.synack is not None]


def count_marks(marks: list[Marks]) -> dict[str, int]:
    """Return their sums as ``Proof.ecn`` has them: what there is none of is left out."""
    total: Counter[str] = Counter()
    for each in marks:
        total.update(each.counts)
        total[each.mode] += each.mode != NONE
    return {name: number for name, number in sorted(total.items()) if number}


def check_ecn(
    flows: Flows,
    marks: list[Marks],
    tcp: TcpSpec,
    link: LinkSpec,
    traffic: Mapping[str, int],
    resent: int,
    *,
    shared: bool = False,
) -> Iterator[str]:
    """Yield a sentence for each way in which ECN was not as asked, or marks and reports differ.

    ``traffic`` is the lab's of the load; of a queue whose marks it does not count nothing is said.
    ``resent`` are segments that the server's kernel sent again, which need not be declared: one
    that the capture does not show as such was lost before, and nothing had come behind it.  Of a
    ``shared`` link the queue marks packets of others as well.
    """
    yield from _check_negotiated(flows, marks, tcp)
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
    none = {way: 0 if queue == FIFO else None for way, queue in link.queues.items()}
    came, marked = sum(m.counts["down.ce"] for m in marks), traffic.get("down.marked", none["down"])
    # In real time fewer may wait at the end than did when the counting began.
    gone = sum(max(traffic.get(name, 0), 0) for name in ("down.lost", "down.dropped", "waiting"))
    if marked is not None and not (0 if shared else marked - gone) <= came <= marked:
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
    once = [
        (flow, each) for flow, each in zip(answered, marks, strict=True)
        if sum(p.opens for by_client, p in flow.packets if by_client) == 1
    ]  # fmt: skip
    others = [flow for flow, _ in once if _ace(flow.syn) != asked]
    if others:
        yield (
            f"{len(others)} of {len(once)} SYNs ask for {_word(_ace(others[0].syn))} ECN, as asked "
            f"of the client they ask for {_word(asked)}"
        )
    wrong = Counter(each.mode for _, each in once if each.mode != expected)
    for mode, number in sorted(wrong.items()):
        yield (
            f"{number} of {len(once)} connections negotiated {mode} ECN, as asked of both ends it "
            f"is {expected}"
        )


def negotiate(tcp: TcpSpec) -> tuple[int, str]:
    """Return the ACE of a SYN as ``tcp`` asks for it, and the mode that the ends come to.

    The table is that of ip-sysctl's ``tcp_ecn``.  A SYN that is ECT itself, as that of an algorithm
    which needs ECN, is taken by a server with such an algorithm only (RFC 3168 section 6.1.1).
    """
    client, server = (int(of_end(tcp.sysctl, end).get("tcp_ecn", PASSIVE)) for end in
                      ("client", "server"))  # fmt: skip
    needs, grants = (tcp.algorithm_of(end) == NEEDS_ECN for end in ("client", "server"))
    asked = ASKS_ACCURATE if client == 3 else CLASSIC_ACE if needs or client in (1, 4) else NO_ACE
    if asked == NO_ACE or (server == 0 and not grants):
        return asked, NONE
    if asked == ASKS_ACCURATE and server in (3, 4, 5):
        return asked, ACCURATE
    return asked, NONE if needs and asked == CLASSIC_ACE and not grants else CLASSIC


def _read(flow: Flow) -> Marks:
    marks = Marks(_mode(flow))
    reached = {True: 0, False: 0}
    aces = {True: FIRST_ACE, False: FIRST_ACE}
    ended: set[bool] = set()
    marked: Packet | None = None
    for by_client, packet in flow.packets:
        way = "up" if by_client else "down"
        marks.counts[f"{way}.ce"] += packet.traffic_class & CE == CE
        first = flow.syn if by_client else flow.synack
        if first is None or packet.at_ns < first.at_ns:
            continue
        end = behind(packet.seq, first.seq) + bool(packet.flags & SYN) + packet.payload_bytes
        is_new = packet.payload_bytes > 0 and end > reached[by_client]
        reached[by_client] = max(reached[by_client], end)
        if packet.flags & SYN:
            continue
        marks.again += not by_client and packet.payload_bytes > 0 and not is_new
        _count(marks, way, packet, is_new=is_new)
        if marks.mode == ACCURATE:
            grown = (_ace(packet) - aces[by_client]) % ACES
            # What is less came out of order; the ACK of a handshake says how its SYN-ACK came,
            # which is more than the first number for a mark alone.  Behind its FIN a socket that
            # only waits does not know the number any more.
            if grown < ACES // 2 and by_client not in ended:
                aces[by_client] = _ace(packet)
                marks.counts[f"{way}.ace"] += grown
                marks.told[way] += grown
            if packet.flags & FIN:
                ended.add(by_client)
        if not by_client and is_new and packet.traffic_class & CE == CE:
            marked = marked or packet
        elif by_client and marked is not None and packet.flags & ACK:
            marks.due |= behind(packet.ack, marked.seq) > 0
    if marks.mode == ACCURATE and sum(bool(p.flags & SYN) for _, p in flow.packets) != 2:
        # An end that cannot trust a handshake which was sent again declares nothing, and goes on
        # to tell of marks (RFC 9768 section 3.1.4).
        marks.undeclared.clear()
    return marks


def _count(marks: Marks, way: str, packet: Packet, *, is_new: bool) -> None:
    """Count a packet behind the handshake."""
    code = packet.traffic_class & CE
    flags = packet.flags & (ECE | CWR | AE)
    if marks.mode == NONE:
        marks.undeclared[way] += bool(code or flags)
    elif packet.payload_bytes:
        marks.undeclared[way] += is_new and not code
        marks.counts[f"{way}.data"] += 1
        marks.counts[f"{way}.ect0"] += code == ECT_0
        marks.counts[f"{way}.ect1"] += code == ECT_1
    if marks.mode == CLASSIC:
        marks.counts[f"{way}.ece"] += bool(flags & ECE)
        marks.counts[f"{way}.cwr"] += bool(flags & CWR)
        marks.told[way] += bool(flags & ECE)


def _mode(flow: Flow) -> str:
    """What the handshake came to (RFC 9768 section 3.1.2, table 2)."""
    asked = _ace(flow.syn)
    answer = NO_ACE if flow.synack is None else _ace(flow.synack)
    if asked == NO_ACE or answer in (NO_ACE, ASKS_ACCURATE):
        return NONE
    if answer == ANSWERS_CLASSIC:
        return CLASSIC
    return ACCURATE if asked == ASKS_ACCURATE else NONE


def _ace(packet: Packet) -> int:
    """Return AE, CWR and ECE as one number."""
    return (packet.flags & (ECE | CWR | AE)) // ECE


def _word(ace: int) -> str:
    return {NO_ACE: "no", CLASSIC_ACE: CLASSIC, ASKS_ACCURATE: ACCURATE}.get(ace, f"{ace:03b}")
