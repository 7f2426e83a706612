"""Initial windows of QUIC: what a capture says of the least that a server must have had."""

from __future__ import annotations

import pytest

from testbed.capture.packets import Packet
from testbed.capture.quic import HANDSHAKES, ONE_RTT, QuicConnection, QuicPacket
from testbed.capture.quic_frames import ACK, CRYPTO, STREAM, Frame
from testbed.capture.transits import Transit
from testbed.mechanisms.initial_window.quic import check_quic_windows, least_window
from testbed.model import Condition, LinkSpec, QuicSpec
from tests.evidence import found

RTT_NS = 100_000_000
REQUEST = QuicPacket(0, True, ONE_RTT, 80, 0, (Frame(STREAM),))


def sent(at_ms: int, number: int, kind: str = ONE_RTT, frame: int = STREAM) -> QuicPacket:
    """A packet of the server, of 1200 bytes, that comes at a time."""
    return QuicPacket(at_ms * 10**6, False, kind, 1200, number, (Frame(frame),))


def ack(at_ms: int, *ranges: tuple[int, int], kind: str = ONE_RTT) -> QuicPacket:
    """An acknowledgement that leaves at a time."""
    return QuicPacket(at_ms * 10**6, True, kind, 40, at_ms, (Frame(ACK, acked=ranges),))


def window(*packets: QuicPacket) -> float:
    return least_window(connection(*packets), RTT_NS) / 1200


def connection(*packets: QuicPacket) -> QuicConnection:
    return QuicConnection("10.0.0.2:9", "10.10.0.1:443", 0, [REQUEST, *packets])


def flight(first: int, count: int, at_ms: int = 100) -> list[QuicPacket]:
    return [sent(at_ms, number) for number in range(first, first + count)]


def test_all_that_comes_without_an_acknowledgement_is_of_the_first_window() -> None:
    assert window(*flight(0, 10)) == 10


def test_what_was_acknowledged_in_time_made_room_for_as_much_again() -> None:
    assert window(*flight(0, 10), ack(101, (0, 9)), *flight(10, 20, 201)) == 10
    assert window(*flight(0, 10), ack(101, (0, 9)), *flight(10, 21, 201)) == 11


def test_an_acknowledgement_was_no_reason_for_what_came_less_than_a_round_trip_later() -> None:
    assert window(*flight(0, 10), ack(101, (0, 9)), *flight(10, 3, 200)) == 13


def test_what_is_acknowledged_again_makes_no_more_room() -> None:
    acks = (ack(101, (0, 4)), ack(102, (0, 9)), ack(103, (0, 9)))
    assert window(*flight(0, 10), *acks, *flight(10, 21, 203)) == 11


def test_each_space_has_its_numbers() -> None:
    hands = [sent(90, number, HANDSHAKES, CRYPTO) for number in range(2)]
    told = ack(101, (0, 1), kind=HANDSHAKES)
    assert window(*hands, *flight(0, 8), told, *flight(8, 4, 201)) == 10


def test_a_packet_that_comes_twice_and_an_acknowledgement_are_not_sent_twice() -> None:
    assert window(*flight(0, 10), sent(101, 9), sent(102, 10, frame=ACK)) == 10


@pytest.mark.parametrize(
    ("packets", "said"), [(None, 0), (10, 1), (17, 1), (18, 0), (32, 0)], ids=str
)
def test_more_than_the_window_and_two_probes_is_said(packets: int | None, said: int) -> None:
    asked = Condition("page", "chromium", LinkSpec(100.0), quic=QuicSpec(packets))
    both = (connection(*flight(0, 20)), connection())
    sentences = found(check_quic_windows, condition=asked, quic=both)
    assert len(sentences) == said
    assert all(f"initcwnd_packets = {packets}" in each for each in sentences)


@pytest.mark.parametrize(
    "link",
    [LinkSpec(100.0, delay_jitter_ms=1.0), LinkSpec(100.0, reorder_pct=1.0),
     LinkSpec(100.0, changes="at 1 s: rtt_ms 20")],
)  # fmt: skip
def test_where_packets_may_be_faster_than_the_link_nothing_is(link: LinkSpec) -> None:
    asked = Condition("page", "chromium", link, quic=QuicSpec(2))
    assert not found(check_quic_windows, condition=asked, quic=(connection(*flight(0, 20)),))


def response(*sent_ms: tuple[int, int, int], acked_ms: int, fin: bool = False) -> list[QuicPacket]:
    """Packets of one response, from which number, how many and when, and one acknowledgement."""
    frame = Frame(STREAM, 0, 0, b"x", fin)
    made = [
        QuicPacket(at_ms * 10**6, False, ONE_RTT, 1200, number, (frame,))
        for first, count, at_ms in sent_ms
        for number in range(first, first + count)
    ]
    return [QuicPacket(50 * 10**6, True, HANDSHAKES, 90, 0, ()), *made, ack(acked_ms, (0, 0))]


NONE = Packet(0, b"", 0, "IP")


def transit_of(packets: list[QuicPacket]) -> dict[str, list[Transit]]:
    """They cross the link in half of a round trip."""
    half = RTT_NS // 2
    return {
        "down": [
            Transit(p.at_ns - half, p.at_ns, 1228, False, 0, NONE, NONE)
            for p in packets
            if not p.by_client
        ],
        "up": [
            Transit(p.at_ns, p.at_ns + half, 90, False, 0, NONE, NONE)
            for p in packets
            if p.by_client
        ],
    }


@pytest.mark.parametrize(
    ("packets", "first", "said"),
    [(4, 4, 0), (5, 4, 0), (6, 4, 1), (20, 4, 1), (20, 18, 1), (20, 19, 0), (20, 20, 0),
     (100, 49, 1), (100, 50, 0)],
)  # fmt: skip
def test_a_server_that_waits_before_its_window_is_full(packets: int, first: int, said: int) -> None:
    """It has no more than 60,000 bytes ready."""
    asked = Condition("page", "chromium", LinkSpec(100.0), quic=QuicSpec(packets))
    sent = response((0, first, 100), (first, 1, 200), acked_ms=100)
    told = found(
        check_quic_windows, condition=asked, transits=transit_of(sent),
        quic=(connection(*sent),),
    )  # fmt: skip
    words = f"waited for an acknowledgement with {1200 * first} bytes under way"
    assert [words in each for each in told] == [True] * said


@pytest.mark.parametrize(
    ("sent", "counted"),
    [(response((0, 4, 100), (4, 1, 120), acked_ms=20), {}),  # not long enough
     (response((0, 4, 100), (4, 1, 250), acked_ms=100), {}),  # not what it waited for
     (response((0, 4, 100), (4, 1, 200), acked_ms=100, fin=True), {}),  # another response
     (response((0, 4, 100), (4, 1, 200), acked_ms=100)[1:], {}),  # of an address not known yet
     (response((0, 4, 100), (4, 1, 200), acked_ms=100), {"down.dropped": 1})],
)  # fmt: skip
def test_a_server_that_waits_for_another_reason(
    sent: list[QuicPacket], counted: dict[str, int]
) -> None:
    asked = Condition("page", "chromium", LinkSpec(100.0), quic=QuicSpec(20))
    seen = {"transits": transit_of(sent), "quic": (connection(*sent),), "counted": counted}
    assert found(check_quic_windows, condition=asked, **seen) == []
