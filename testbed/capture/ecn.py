"""Explicit congestion notification in a capture (RFC 3168; AccECN: RFC 9768).

An end asks for it in its SYN and is answered in the SYN-ACK; both follow from the sysctl
``tcp_ecn``, and from an algorithm that needs ECN (ip-sysctl, kernel documentation).  From then on
all data that is sent for the first time says that it may be marked, a queue marks it, and its
receiver tells the sender.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from testbed.capture.flows import Flow, Flows
from testbed.capture.packets import ACK, AE, CWR, ECE, FIN, SYN, Packet, behind
from testbed.model import TcpSpec
from testbed.model.settings import of_end

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
            grown = (read_ace(packet) - aces[by_client]) % ACES
            # What is less came out of order; the ACK of a handshake says how its SYN-ACK came,
            # which is more than the first number for a mark alone.  Behind its FIN a socket that
            # only waits does not know the number any more.
            if grown < ACES // 2 and by_client not in ended:
                aces[by_client] = read_ace(packet)
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
    asked = read_ace(flow.syn)
    answer = NO_ACE if flow.synack is None else read_ace(flow.synack)
    if asked == NO_ACE or answer in (NO_ACE, ASKS_ACCURATE):
        return NONE
    if answer == ANSWERS_CLASSIC:
        return CLASSIC
    return ACCURATE if asked == ASKS_ACCURATE else NONE


def read_ace(packet: Packet) -> int:
    """Return AE, CWR and ECE as one number."""
    return (packet.flags & (ECE | CWR | AE)) // ECE
