"""Segments that a middlebox or an attacker makes: read back, with their sums (RFC 1071)."""

from __future__ import annotations

import struct
from socket import AF_INET6, inet_aton, inet_pton

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.capture.packets import (
    ACK,
    FAST_OPEN,
    MSS,
    SYN,
    Packet,
    find_option,
    read_frame,
    read_unreachable,
)
from testbed.capture.segments import (
    make_segment,
    make_unreachable,
    options_of,
    pack_options,
    with_ends,
    with_options,
)

CLIENT, SERVER = (inet_aton("192.0.2.1"), 40_000), (inet_aton("198.51.100.1"), 80)
NAT = (inet_aton("203.0.113.1"), 1024)
ETHERNET = bytes(12) + b"\x08\x00"


def read(packet: bytes) -> Packet:
    frame = ETHERNET + packet
    return read_frame(0, frame, len(frame))


def total(data: bytes) -> int:
    """The sum over 16-bit words; 0xFFFF where the sum in it is right."""
    data += b"\0" * (len(data) % 2)
    found: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while found >> 16:
        found = (found & 0xFFFF) + (found >> 16)
    return found


def sums(packet: bytes) -> tuple[int, int]:
    head, segment = packet[:20], packet[20:]
    return total(head), total(head[12:20] + struct.pack("!HH", 6, len(segment)) + segment)


@given(st.binary(max_size=1460), st.binary(min_size=4, max_size=16), st.integers(0, 2**32 - 1))
def test_what_is_made_reads_as_asked(payload: bytes, cookie: bytes, seq: int) -> None:
    packet = make_segment(
        CLIENT, SERVER, SYN, seq=seq, options=[(MSS, b"\x05\xb4"), (FAST_OPEN, cookie)],
        payload=payload,
    )  # fmt: skip
    found = read(packet)
    assert (found.sender, found.receiver) == ("192.0.2.1:40000", "198.51.100.1:80")
    assert (found.flags, found.seq, found.payload) == (SYN, seq, payload)
    assert (find_option(found, FAST_OPEN), found.ip_bytes) == (cookie, len(packet))
    assert sums(packet) == (0xFFFF, 0xFFFF)


def test_ends_and_options_are_changed_and_nothing_else() -> None:
    packet = make_segment(CLIENT, SERVER, SYN | ACK, seq=1, ack=2, options=[(FAST_OPEN, b"x" * 8)])
    moved = with_ends(packet, source=NAT)
    assert (read(moved).sender, read(moved).receiver) == ("203.0.113.1:1024", "198.51.100.1:80")
    assert (read(moved).options, sums(moved)) == (read(packet).options, (0xFFFF, 0xFFFF))
    assert with_ends(moved, source=CLIENT) == packet
    bare = with_options(packet, [])
    assert (read(bare).options, read(bare).ip_bytes, sums(bare)) == (b"", 40, (0xFFFF, 0xFFFF))
    assert options_of(with_options(bare, options_of(packet))) == [(FAST_OPEN, b"x" * 8)]


@pytest.mark.parametrize("size", [0, 5, 1400])
def test_a_router_quotes_what_it_cannot_deliver(size: int) -> None:
    packet = make_segment(SERVER, CLIENT, SYN | ACK, seq=1, ack=2, payload=bytes(size))
    told = make_unreachable(packet, NAT[0])
    head, said = told[:20], told[20:]
    assert (head[12:16], head[16:20], head[9]) == (NAT[0], SERVER[0], 1)
    assert (said[:2], said[8:]) == (b"\3\1", packet[:548])
    assert (total(head), total(said), read(told).ip_bytes) == (0xFFFF, 0xFFFF, len(told))
    assert read_unreachable(read(told)) == 1


def test_a_router_of_ipv6_quotes_it_too() -> None:
    ends = [(inet_pton(AF_INET6, f"2001:db8::{n}"), 80) for n in (1, 2)]
    router = inet_pton(AF_INET6, "2001:db8::3")
    packet = make_segment(ends[0], ends[1], SYN, seq=1, payload=bytes(1400))
    told = make_unreachable(packet, router)
    head, said = told[:40], told[40:]
    assert (head[8:24], head[24:40], head[6]) == (router, ends[0][0], 58)
    assert (said[:2], said[8:], len(told)) == (b"\1\3", packet[:1232], 1280)
    assert total(head[8:] + struct.pack("!HH", 58, len(said)) + said) == 0xFFFF


def test_more_options_than_a_header_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="44 bytes; a header has room for 40"):
        pack_options([(FAST_OPEN, bytes(40))])
