"""Fetches over HTTP/3 take what the link and their datagrams come to, cold and with early data.

Each datagram occupies the link for its IP bytes and is then delayed by half the round trip.  Sizes
are the capture's: who sends when, and what has to be waited for, is the theory's.

Two things beside the link take time.  Chromium acknowledges the first datagram of a handshake when
a timer of 1 ms runs out, the least that QUICHE sets (``kAlarmGranularity`` in quic_constants.h),
and Linux lets it be 50 us late (PR_SET_TIMERSLACK, prctl(2)).
And a server sends an address that is not validated three times of what came from it (RFC 9000
section 8.1): where more is to be sent, a round trip more.  nginx does not pace what it sends.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from socket import inet_aton
from typing import Any

import pytest

from bench.small_page import RESPONSE_BYTES, build_small_page
from testbed.capture.packets import Packet, is_quic, read_capture
from testbed.client.graph_process.discovery import Node
from testbed.client.graph_process.fetch import request_head
from testbed.lab.topology import CLIENT_ADDRESS, CLIENT_ENDS
from testbed.model import CAPTURE_FILE, LinkSpec
from testbed.model.line import serialisation_ms
from testbed.proof.visits import VisitWindow, split_visits
from tests.acceptance.house import House, assert_ok
from tests.capture.conversation import Sent, write_capture
from tests.capture.packets import ACK, FIN, SYN
from tests.closed_form import ColdFetch, Packets, fetch_ms, packets
from tests.measured import load_of

ALARM_MS = 1.0 + 0.05
IP_UDP_BYTES = 20 + 8
AMPLIFIED = 3
LARGE_BYTES = 1000
"""A datagram of a response has more, but for the last; one beside it less."""


@dataclass(frozen=True, slots=True)
class Datagrams:
    """IP bytes of the datagrams of a fetch, as they leave.

    ``hello`` is the client's first flight, ``flight`` the handshake of the server, ``answer`` what
    the client sends then, with its request if that is not early, and ``response`` the data.
    ``acknowledged`` is what else the server had sent before all of the client's first flight came.
    """

    hello: tuple[int, ...]
    flight: tuple[int, ...]
    answer: tuple[int, ...]
    response: tuple[int, ...]
    acknowledged: tuple[int, ...] = ()


def cold_ms(link: LinkSpec, sent: Datagrams, initials: int) -> float:
    """Return the time from the first Initial to the last of the response, in ms.

    The server's flight leaves when both Initials of the client came.  When its first datagram is
    there a timer runs, and the client's answers leave one behind the other: the last of these is
    the request, and the link is never idle between them.
    """
    up = _line_ms(link, up=True, sizes=(*sent.hello[:initials], *sent.answer))
    down = _line_ms(link, up=False, sizes=(sent.flight[0], *sent.response))
    return 2 * link.rtt_ms + up + ALARM_MS + down


def early_ms(link: LinkSpec, sent: Datagrams, initials: int) -> float:
    """Return the time from the first Initial to the last of the response, in ms.

    What of the response exceeds three times the client's first flight waits until the client has
    answered the handshake, or, if that is sooner, until the rest has left.
    """
    within = early_datagrams(sent)
    hello = _line_ms(link, up=True, sizes=sent.hello)
    validated = 1.5 * link.rtt_ms + _line_ms(
        link, up=True, sizes=(*sent.hello[:initials], *sent.answer[:1])
    )
    validated += _line_ms(link, up=False, sizes=sent.flight[:1])
    left = link.rtt_ms / 2 + hello + _line_ms(link, up=False, sizes=sent.response[:within])
    if within < len(sent.response):
        left = max(left, validated) + _line_ms(link, up=False, sizes=sent.response[within:])
    return left + link.rtt_ms / 2


def early_datagrams(sent: Datagrams) -> int:
    """Return how many datagrams of the response may leave before the address is validated."""
    room = AMPLIFIED * _udp_bytes(sent.hello)
    room -= _udp_bytes((*sent.flight, *sent.acknowledged))
    count = 0
    for size in sent.response:
        room -= size - IP_UDP_BYTES
        if room < 0:
            break
        count += 1
    return count


def _udp_bytes(sizes: Sequence[int]) -> int:
    return sum(sizes) - IP_UDP_BYTES * len(sizes)


def _line_ms(link: LinkSpec, *, up: bool, sizes: Sequence[int]) -> float:
    rate = link.up_kbit if up else link.down_kbit
    return sum(serialisation_ms(size, rate, link.framing_bytes) for size in sizes)


def read_fetch(packets: Sequence[Packet], window: VisitWindow) -> tuple[Datagrams, int, float]:
    """Return a visit's datagrams, how many of the first are Initials, and its time in ms."""
    held = [p for p in packets if window.holds(p.at_ns)]
    ups, downs = ([p for p in held if (p.source in CLIENT_ENDS) is up] for up in (True, False))
    handshake = [p for p in downs if _is_long(p)]
    full = [p for p in handshake if p.payload_bytes + IP_UDP_BYTES > LARGE_BYTES / 2]
    first_ns = full[0].at_ns
    large = [p for p in downs if not _is_long(p) and p.ip_bytes > LARGE_BYTES]
    # The response is one train: what is sent later looks for a larger path MTU (RFC 8899).
    size = large[0].ip_bytes
    train = [p for p in large if p.ip_bytes == size]
    after = downs.index(train[-1]) + 1
    train.append(downs[after])
    inside = downs[downs.index(train[0]) : after + 1]
    hello = [p for p in ups if p.at_ns < first_ns]
    answer = [p for p in ups if first_ns <= p.at_ns < train[0].at_ns]
    hellos, flights, answers, response, others = (
        tuple(p.ip_bytes for p in each)
        for each in (hello, full, answer, inside, [p for p in handshake if p not in full])
    )
    return (Datagrams(hellos, flights, answers, response, others), hellos.count(hellos[0]),
            (inside[-1].at_ns - hello[0].at_ns) / 1e6)  # fmt: skip


def _is_long(packet: Packet) -> bool:
    """Whether a datagram begins with a packet of a handshake (RFC 9000 section 17.2)."""
    return bool(packet.payload[0] & 0x80)


LINK = LinkSpec(rtt_ms=100.0)
COLD = Datagrams((1278, 1278), (1228, 1228, 943), (1278, 80, 202, 525), (1228,) * 8 + (949,))
EARLY = Datagrams(
    (1278, 1278, 108, 532), (1228,), (118, 71), (*(1228,) * 6, 829, 1228, 1228, 495), (79,)
)


def test_a_cold_fetch_summed_by_hand() -> None:
    # Up 4,641 bytes at 32 bytes a ms, down 12,001 at 500, two round trips and the timer.
    assert cold_ms(LINK, COLD, 2) == pytest.approx(145.03125 + 24.002 + 200 + 1.05, abs=1e-9)


def test_early_data_is_answered_with_three_times_its_bytes() -> None:
    # Of 9,252 bytes the handshake takes 1,251, and the seven datagrams 8,001: not a byte is left.
    assert early_datagrams(EARLY) == 7
    assert early_datagrams(replace(EARLY, acknowledged=(80,))) == 6
    assert early_datagrams(replace(EARLY, hello=(*EARLY.hello, 1278))) == 10


@pytest.mark.parametrize("rtt_ms", [100.0, 200.0])
def test_what_is_more_waits_for_an_answer_of_the_client(rtt_ms: float) -> None:
    # Up the Initials and the answer, 2,674 bytes; down the handshake and the rest, 4,179.
    link = replace(LINK, rtt_ms=rtt_ms)
    assert early_ms(link, EARLY, 2) == pytest.approx(83.5625 + 8.358 + 2 * rtt_ms, abs=1e-9)


def test_over_a_short_way_the_answer_comes_while_the_line_is_busy() -> None:
    # Up the whole first flight, 3,196 bytes; down the whole response, 11,148.
    link = replace(LINK, rtt_ms=20.0)
    assert early_ms(link, EARLY, 2) == pytest.approx(99.875 + 22.296 + 20, abs=1e-9)


def test_what_fits_takes_one_round_trip() -> None:
    small = replace(EARLY, response=EARLY.response[:2])
    assert early_ms(LINK, small, 2) == pytest.approx(99.875 + 4.912 + 100, abs=1e-9)


@pytest.mark.guest
@pytest.mark.browser
@pytest.mark.thorough
def test_both_take_what_the_closed_form_says(house: House) -> None:
    house.take("file-10k", "file-10k-h2")
    ran = house.run(
        page="file-10k-h2", web_server="nginx-quic", protocol="h3", tls_resumption=True,
        early_data=True, visits=2, dns="hosts", rtt_ms=[20, 100, 200],
    )  # fmt: skip
    assert len(ran.records) == 3
    for record in ran.records:
        assert_ok(record)
        capture = read_capture(ran.folder / "trials" / record.trial_id / CAPTURE_FILE)
        datagrams = [packet for packet in capture.packets if is_quic(packet)]
        cold, early = split_visits(load_of(record))
        for window, form_ms in ((cold, cold_ms), (early, early_ms)):
            sent, initials, wire_ms = read_fetch(datagrams, window)
            expected_ms = form_ms(record.trial.linked.link, sent, initials)
            assert wire_ms == pytest.approx(expected_ms, abs=0.050)


# The fields of a recorded request that the graph client gets.
NODE = ("url", "method", "host", "port", "mime", "body_size", "request_body_size", "parent")


def read_exchange(pcap: Path) -> tuple[float, Packets]:
    """The time from the first SYN to the server's last data in ms, and IP bytes of all packets.

    The server's packets end with its last data.
    """
    sent = [packet for packet in read_capture(pcap).packets if packet.protocol == "TCP"]
    client = inet_aton(CLIENT_ADDRESS)
    up, down = ([p for p in sent if (p.source == client) is way] for way in (True, False))
    while not down[-1].payload_bytes:
        down.pop()
    sizes = (tuple(packet.ip_bytes for packet in way) for way in (up, down))
    return (down[-1].at_ns - up[0].at_ns) / 1e6, Packets(*sizes)


def test_an_exchange_ends_with_the_servers_last_data(tmp_path: Path) -> None:
    path = tmp_path / "client.pcap"
    write_capture(path,
                  [Sent(0, "client", SYN), Sent(1_000_000, "server", SYN | ACK),
                   Sent(1_000_001, "client", ACK, data=b"GET"), Sent(2_000_000, "server", ACK),
                   Sent(3_000_007, "server", ACK, data=b"answer"),
                   Sent(9_000_000, "server", ACK | FIN)])  # fmt: skip
    took_ms, sizes = read_exchange(path)
    assert took_ms == 3.000007
    assert sizes.up == (40, 43)
    assert sizes.down == (40, 40, 46)


@pytest.mark.guest
def test_a_cold_fetch_takes_what_its_packets_come_to(house: House, tmp_path: Path) -> None:
    build_small_page(tmp_path)
    shutil.copytree(tmp_path / "small", house.pages / "small")
    (root,) = house.archive("small").entries
    assert root.transfer_bytes == RESPONSE_BYTES
    asked_for: dict[str, Any] = {
        "tls": False,
        "target": root.path,
        "revalidates": False,
        "marks": [],
    }
    request = len(request_head(Node(asked_for | {name: getattr(root, name) for name in NODE})))
    ran = house.run(page="small", client="graph", dns="hosts", rtt_ms=[20, 100, 200],
                    tfo=[False, True])  # fmt: skip
    assert len(ran.records) == 6
    for record in ran.records:
        assert_ok(record)
        asked = record.trial.linked
        fetch = ColdFetch(asked.link, request, RESPONSE_BYTES, asked.tcp.tfo)
        wire_ms, sizes = read_exchange(ran.folder / "trials" / record.trial_id / CAPTURE_FILE)
        assert load_of(record).plt_ms == pytest.approx(fetch_ms(fetch), abs=0.010)
        assert wire_ms == pytest.approx(fetch_ms(fetch), abs=0.010)
        expected = packets(fetch)
        # The client's last acknowledgements are not in the theory.
        assert sizes.up[: len(expected.up)] == expected.up
        assert sizes.down == expected.down
