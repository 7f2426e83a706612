"""ECN in captures: what ends come to by their sysctls, and what is excused, told and held."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from testbed.capture.ecn import count_marks, negotiate, read_marks
from testbed.capture.flows import Flow, Flows
from testbed.capture.packets import ACK, AE, CWR, ECE, FIN, SYN, Packet
from testbed.mechanisms.ecn.proof import check_ecn
from testbed.model import LinkSpec, TcpSpec
from testbed.model.settings import TcpSettings
from tests.evidence import found

US, THEM = (b"\x0a\x00\x00\x02", 2000), (b"\x0a\x0a\x00\x01", 80)
FIFO, RED = LinkSpec(), LinkSpec(qdisc="red limit 100000 ecn")
ECT, CE = 2, 3
DATA = 1000


def packet(
    at_ms: float, *, up: bool, flags: int, seq: int, ack: int = 0, size: int = 0, code: int = 0
) -> tuple[bool, Packet]:
    source, target = (US, THEM) if up else (THEM, US)
    return up, Packet(
        round(at_ms * 1e6), b"", 54 + size, "TCP", source[0], target[0], 40 + size, code,
        source[1], target[1], b"", size, seq, ack, flags,
    )  # fmt: skip


def flows(asks: int, answer: int, *behind: tuple[bool, Packet]) -> Flows:
    """One connection: its handshake with these flags of ECN, and what follows."""
    syn, synack = packet(0, up=True, flags=SYN | asks, seq=99), packet(
        20, up=False, flags=SYN | ACK | answer, seq=499, ack=100
    )  # fmt: skip
    flow = Flow(syn[1], [syn, synack, *behind], synack[1])
    return Flows((flow,), 0, 0, ())


def data(number: int, at_ms: float, code: int = ECT, flags: int = 0) -> tuple[bool, Packet]:
    """The server's segment of that number."""
    return packet(
        at_ms, up=False, flags=ACK | flags, seq=500 + DATA * number, ack=100, size=DATA, code=code
    )


def told(number: int, at_ms: float, flags: int = 0) -> tuple[bool, Packet]:
    """The client has so many segments."""
    return packet(at_ms, up=True, flags=ACK | flags, seq=100, ack=500 + DATA * number)


def complaints(
    seen: Flows, *, ecn: int = 1, link: LinkSpec = FIFO, traffic: Mapping[str, int] | None = None,
    resent: int = 0,
) -> list[str]:  # fmt: skip
    spec = TcpSpec(sysctl=TcpSettings(tcp_ecn=ecn))
    counters = {"server": {"TcpRetransSegs": resent}}
    return found(check_ecn, link, spec, flows=seen, counted=traffic or {}, counters=counters)


CLASSIC = (ECE | CWR, ECE)
ACCURATE = (ECE | CWR | AE, CWR)
FIVE = AE | ECE
"""The AccECN counter's first number."""


@pytest.mark.parametrize(
    ("client", "server", "algorithms", "expected"),
    [(2, 2, ("cubic", "cubic"), (0, "none")), (0, 1, ("cubic", "cubic"), (0, "none")),
     (1, 2, ("cubic", "cubic"), (3, "classic")), (1, 0, ("cubic", "cubic"), (3, "none")),
     (3, 3, ("cubic", "cubic"), (7, "accurate")), (3, 1, ("cubic", "cubic"), (7, "classic")),
     (3, 0, ("cubic", "cubic"), (7, "none")), (4, 5, ("cubic", "cubic"), (3, "classic")),
     (5, 3, ("cubic", "cubic"), (0, "none")), (2, 2, ("dctcp", "dctcp"), (3, "classic")),
     (0, 0, ("dctcp", "dctcp"), (3, "classic")), (2, 2, ("dctcp", "cubic"), (3, "none")),
     (2, 2, ("cubic", "dctcp"), (0, "none")), (3, 3, ("dctcp", "dctcp"), (7, "accurate"))],
)  # fmt: skip
def test_what_two_ends_come_to(
    client: int, server: int, algorithms: tuple[str, str], expected: tuple[int, str]
) -> None:
    spec = TcpSpec(
        sysctl=TcpSettings({"client.tcp_ecn": client, "server.tcp_ecn": server}),
        route=TcpSettings({"client.congctl": algorithms[0], "server.congctl": algorithms[1]}),
    )
    assert negotiate(spec) == expected


def test_of_an_algorithm_out_of_tree_nothing_is_expected() -> None:
    spec = TcpSpec(congestion_control="prague")
    seen = flows(*ACCURATE, data(0, 30, 1, FIVE), told(1, 30, FIVE))
    assert found(check_ecn, FIFO, spec, flows=seen, counters={"server": {}}) == []
    assert count_marks(read_marks(seen)) == {"accurate": 1, "down.data": 1, "down.ect1": 1}


def test_data_that_is_sent_again_need_not_be_declared() -> None:
    """It fills a hole, or comes where it was awaited, for as many as the kernel sent again."""
    hole = flows(*CLASSIC, data(1, 30), data(0, 80, 0), told(2, 80))
    assert complaints(hole, resent=1) == []
    tail = flows(*CLASSIC, data(0, 30), data(1, 300, 0), told(2, 300))
    assert complaints(tail, resent=1) == []
    said = "down: 1 packets with new data are not ECT, though their connections negotiated ECN"
    assert complaints(tail) == [said]
    both = flows(*CLASSIC, data(1, 30), data(0, 80, 0), data(2, 90, 0), told(3, 90))
    assert len(complaints(both, resent=1)) == 1


def test_a_syn_that_is_sent_again_asks_for_nothing() -> None:
    seen = flows(0, 0, data(0, 30, 0))
    again = packet(1000, up=True, flags=SYN, seq=99)
    assert complaints(seen) != []
    seen.flows[0].packets.insert(1, again)
    assert complaints(seen) == []


def test_marks_are_held_against_the_queue() -> None:
    seen = flows(*CLASSIC, data(0, 30, CE), told(1, 30, ECE), data(1, 60, flags=CWR))
    of_queue = {"down.marked": 1, "up.marked": 0}
    assert complaints(seen, link=RED, traffic=of_queue) == []
    assert complaints(seen, link=RED, traffic=of_queue | {"waiting": -2}) == []  # in real time
    assert complaints(seen, link=RED) == []  # a queue whose marks nobody counts
    few, many = {"down.marked": 0}, {"down.marked": 3}
    for traffic, marked in ((few, 0), (many, 3)):
        said = f"1 packets came down marked CE, the queue marked {marked}"
        assert complaints(seen, link=RED, traffic=traffic) == [said]
    assert complaints(seen, link=RED, traffic=many | {"down.lost": 2}) == []


def test_the_accurate_counter() -> None:
    """It begins with five, and is not known any more where a closed socket answers."""
    seen = flows(
        *ACCURATE,
        told(0, 20, CWR),  # how the SYN-ACK came
        data(0, 30, CE, FIVE),
        told(1, 30, AE | CWR),
        data(1, 33, CE, FIVE),
        told(1, 33, FIVE),  # an older one, which came late
        told(2, 33, AE | CWR | ECE | FIN),
        told(2, 90),
    )
    assert complaints(seen, ecn=3, link=RED, traffic={"down.marked": 2, "up.marked": 0}) == []
    assert count_marks(read_marks(seen)) == {
        "accurate": 1, "down.ce": 2, "down.data": 2, "up.ace": 2,
    }  # fmt: skip


def test_marks_before_a_lost_synack_come_to_nothing() -> None:
    """The client without a connection throws data away, and tells of none."""
    seen = flows(*CLASSIC, data(0, 1020, 0), told(1, 1020))
    seen.flows[0].packets.insert(1, data(0, 10, CE))
    assert complaints(seen, link=RED, traffic={"down.marked": 1}, resent=1) == []


def test_an_accurate_handshake_that_was_sent_again_need_not_be_trusted() -> None:
    seen = flows(*ACCURATE, data(0, 30, 0, FIVE), told(1, 30, FIVE))
    assert complaints(seen, ecn=3) != []
    seen.flows[0].packets.insert(2, packet(25, up=False, flags=SYN | ACK, seq=499, ack=100))
    assert complaints(seen, ecn=3) == []
    classic = flows(*CLASSIC, data(0, 30, 0), told(1, 30))
    classic.flows[0].packets.insert(2, packet(25, up=False, flags=SYN | ACK | ECE, seq=499))
    assert complaints(classic) != []
