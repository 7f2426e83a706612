"""IP version of packets: what contradicts the IP that was asked for, and what a client chose."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import pytest

from testbed.base.addresses import pack_address
from testbed.capture.flows import Flows, read_flows
from testbed.capture.packets import ACK, RST, SYN, Capture, read_frame
from testbed.capture.segments import make_segment
from testbed.mechanisms.ip.proof import check_ip, describe_choice
from testbed.model import Ip, LinkSpec
from testbed.proof.captures import check_strangers
from tests.evidence import found

CLIENTS = tuple(map(pack_address, ("10.0.0.2", "2001:db8::2")))
SERVERS = {"4": "10.10.0.1", "6": "2001:db8:10::1"}
HOSTS = dict.fromkeys(SERVERS.values(), "www.page.test")
MS = 1_000_000
TYPES = {"4": b"\x08\x00", "6": b"\x86\xdd"}
Seen = tuple[str, int, bool, float]
"""A segment: over which IP, its flags, whether it goes up, and when in ms."""


def frame_of(ip: str, packet: bytes) -> bytes:
    return bytes(12) + TYPES[ip] + packet


def read(seen: Sequence[Seen], more: Sequence[bytes] = ()) -> tuple[Capture, Flows]:
    """A capture of segments of one connection over each IP, and the connections in it."""
    packets = []
    for ip, flags, up, at_ms in seen:
        client = (CLIENTS[ip == "6"], 40_000)
        server = (pack_address(SERVERS[ip]), 80)
        ends = (client, server) if up else (server, client)
        frame = frame_of(ip, make_segment(*ends, flags, seq=1, ack=2))
        packets.append(read_frame(int(at_ms * MS), frame, len(frame)))
    packets += [read_frame(0, frame, len(frame)) for frame in more]
    capture = Capture(Path("client.pcap"), tuple(packets))
    return capture, read_flows(capture, CLIENTS)


def answer(kind: int, answers: int) -> bytes:
    """A frame with the name server's answer to a question of a kind."""
    asked = b"\x01a\x04test\x00" + struct.pack("!HH", kind, 1)
    message = struct.pack("!6H", 1, 0x8180, 1, answers, 0, 0) + asked
    udp = struct.pack("!HHHH", 53, 5000, 8 + len(message), 0) + message
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0)
    return frame_of("4", head + pack_address("10.10.255.53") + CLIENTS[0] + udp)


def opening(ip: str, at_ms: float = 0.0) -> Iterator[Seen]:
    yield ip, SYN, True, at_ms
    yield ip, SYN | ACK, False, at_ms + 20


def check(ip: Ip, seen: Sequence[Seen], *more: bytes, whole: bool = True) -> list[str]:
    capture, flows = read(seen, more)
    parts = {"capture": capture, "flows": flows, "lost": int(not whole), "load": None}
    return found(check_ip, LinkSpec(ip=ip), **parts)


def test_a_segment_of_ipv6_is_read_whole() -> None:
    ends = (CLIENTS[1], 40_000), (pack_address(SERVERS["6"]), 80)
    segment = make_segment(*ends, SYN, seq=7, options=[(2, b"\x05\xa0")], payload=b"GET /")
    frame = bytearray(frame_of("6", segment) + b"padding")
    frame[15] |= 0x30  # ECT and CE are the last bits of the class, before the flow's label
    packet = read_frame(5, bytes(frame), len(frame))
    assert (packet.protocol, packet.ip, packet.ip_bytes) == ("TCP", "6", 40 + 24 + 5)
    assert (packet.sender, packet.receiver) == ("2001:db8::2:40000", "2001:db8:10::1:80")
    assert (packet.seq, packet.payload, packet.payload_bytes) == (7, b"GET /", 5)
    assert packet.traffic_class == 3
    cut = read_frame(5, bytes(frame[:60]), len(frame))
    assert (cut.protocol, cut.source) == ("IP6", CLIENTS[1])


@pytest.mark.parametrize("ip", ["4", "6"])
def test_a_packet_of_the_other_ip(ip: Ip) -> None:
    (other,) = {"4", "6"} - {ip}
    assert check(ip, [*opening(ip)]) == []
    said = check(ip, [*opening(ip), (other, RST, False, 30)])
    assert said == [f"1 of 3 packets are not of IPv{ip}, and link.ip = {ip}"]


def test_a_copy_of_no_use_is_refused_by_icmp() -> None:
    said = b"\1\4" + bytes(6)
    ends = CLIENTS[1] + pack_address("2001:db8::1")
    head = struct.pack("!IHBB", 6 << 28, len(said), 58, 64) + ends
    capture, flows = read([*opening("6")], [frame_of("6", head + said)])
    none, one = (
        found(
            check_strangers, LinkSpec(ip="6"), capture=capture, flows=flows, load=None,
            counted={"down.duplicated": copies},
        )
        for copies in (0, 1)
    )  # fmt: skip
    assert (len(none), len(one)) == (1, 0)
    assert "IP6 from 2001:db8::2:0" in none[0]


def test_where_both_are_offered_either_may_be_chosen() -> None:
    for seen in ([*opening("4")], [*opening("6")], [*opening("6"), *opening("4", 5)]):
        assert check("dual", seen, answer(28, 1), answer(1, 1)) == []


def test_ipv6_that_gets_no_answer_is_broken_and_has_to_be_asked_for() -> None:
    silent: list[Seen] = [("6", SYN, True, 0), *opening("4", 300)]
    assert check("dual-broken", silent) == []
    said = "1 of 1 connections over IPv6 got no answer, and link.ip = dual"
    assert check("dual", silent) == [said]
    assert check("dual", silent, whole=False) == []
    said = "1 packets came down over IPv6, which was to be broken"
    assert check("dual-broken", [*opening("6")]) == [said]


def test_hosts_without_an_address_of_ipv6_offer_no_choice() -> None:
    said = check("dual", [*opening("4")], answer(28, 0), answer(28, 1), answer(1, 0))
    assert said == ["1 of 2 hosts have no address of IPv6, and link.ip = dual"]


def test_what_a_client_chose() -> None:
    seen: list[Seen] = [("6", SYN, True, 1), *opening("4", 301.25)]
    _, flows = read(seen)
    found = describe_choice(flows, "dual-broken", HOSTS)
    assert found == {"4": 1, "6": 0, "6.unanswered": 1, "fallback_ms": 300.25}
    # It is late only.
    late: list[Seen] = [("6", SYN, True, 100), ("4", SYN, True, 390),
                        ("6", SYN | ACK, False, 400), ("4", SYN | ACK, False, 420)]  # fmt: skip
    assert describe_choice(read(late)[1], "dual", HOSTS)["fallback_ms"] == 290
    assert describe_choice(read([*opening("6")])[1], "dual", HOSTS) == {
        "4": 0, "6": 1, "6.unanswered": 0,
    }  # fmt: skip
    assert [describe_choice(flows, ip, HOSTS) for ip in get_args(Ip)[:2]] == [{}, {}]
