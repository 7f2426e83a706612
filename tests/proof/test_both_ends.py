"""Bytes at both ends: each flag and each byte of a header that is otherwise at one end is found."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from testbed.capture.packets import Capture, Packet, read_frame
from testbed.capture.segments import make_segment
from testbed.capture.transits import Crossings, read_crossings
from testbed.model import LinkSpec
from testbed.proof.both_ends import check_bytes
from tests.evidence import found

ENDS = {
    "4": ((bytes((10, 0, 0, 2)), 40_000), (bytes((10, 10, 0, 1)), 80)),
    "6": ((bytes(15) + b"\2", 40_000), (bytes(15) + b"\1", 80)),
}
TYPES = {"4": b"\x08\x00", "6": b"\x86\xdd"}
STAMPS = ((8, bytes(8)),)
CLASS_AT, LIMIT_AT = {"4": 15, "6": 15}, {"4": 22, "6": 21}
SYN, RST, ACK = 2, 4, 16
SENT = (
    (True, SYN, 100, b""),
    (False, SYN | ACK, 900, b""),
    (True, ACK, 101, b"GET /"),
    (False, ACK, 901, b"200"),
)


def frames(ip: str, passed: int, capable: int = 0) -> list[bytes]:
    """The packets of a beginning, which have ``passed`` so many routers by then."""
    made = []
    for up, flags, seq, payload in SENT:
        ends = ENDS[ip] if up else ENDS[ip][::-1]
        packet = bytearray(
            make_segment(*ends, flags, seq=seq, ack=1, options=STAMPS, payload=payload)
        )
        packet[LIMIT_AT[ip] - 14] -= passed
        made.append(summed(ip, bytes((2, 0, 0, 0, 0, up)) + bytes(6) + TYPES[ip] + packet, capable))
    return made


def summed(ip: str, frame: bytes, traffic_class: int = 0) -> bytes:
    """``frame`` with a class, and the right checksum of its header."""
    changed = bytearray(frame)
    if ip == "6":
        changed[15] = changed[15] & 0xF | traffic_class << 4 & 0xF0
        return bytes(changed)
    changed[15], changed[24:26] = traffic_class, b"\0\0"
    total = sum(struct.unpack_from("!10H", changed, 14)) % 0xFFFF
    changed[24:26] = struct.pack("!H", 0xFFFF - total)
    return bytes(changed)


def crossed(ip: str, client: list[bytes], server: list[bytes]) -> Crossings:
    def read(made: list[bytes]) -> Capture:
        packets = [read_frame(at, frame, len(frame)) for at, frame in enumerate(made)]
        return Capture(Path(), tuple(packets))

    return read_crossings(read(client), read(server), [ENDS[ip][0][0]])


def ends_of(ip: str, capable: int = 0) -> dict[str, list[bytes]]:
    """Both captures of what was sent by the client, by the server, and by both again."""
    new, old = frames(ip, 0, capable), frames(ip, 2, capable)
    return {
        "client": [new[0], old[1], new[2], old[3]],
        "server": [old[0], new[1], old[2], new[3]],
    }


def said(
    ip: str, ends: dict[str, list[bytes]], link: LinkSpec | None = None, **counted: int
) -> list[str]:
    names = {name.replace("_", "."): count for name, count in counted.items()}
    return found(check_bytes, link, own_crossings=crossed(ip, **ends), at_server=None,
                 line_shared=False, counted=names)  # fmt: skip


@pytest.mark.parametrize("ip", ["4", "6"])
@pytest.mark.parametrize("end", ["client", "server"])
@pytest.mark.parametrize("number", range(len(SENT)))
def test_each_bit_of_a_packet_in_one_capture(ip: str, end: str, number: int) -> None:
    assert said(ip, ends_of(ip)) == []
    frame = ends_of(ip)[end][number]
    for bit in range(8 * len(frame)):
        ends = ends_of(ip)
        changed = bytearray(frame)
        changed[bit // 8] ^= 1 << bit % 8
        ends[end][number] = bytes(changed)
        assert said(ip, ends), f"bit {bit % 8} of byte {bit // 8}"


@pytest.mark.parametrize("end", ["client", "server"])
def test_a_header_whose_checksum_is_right_again(end: str) -> None:
    for at in (*range(14, 24), *range(26, 34)):
        ends = ends_of("4")
        changed = bytearray(ends[end][2])
        changed[at] ^= 1 if at != CLASS_AT["4"] else 4
        ends[end][2] = summed("4", bytes(changed), changed[15])
        assert said("4", ends), f"byte {at}"


@pytest.mark.parametrize("ip", ["4", "6"])
@pytest.mark.parametrize(
    ("sent", "came", "fits"),
    [(0, 0, True), (2, 2, True), (2, 3, True), (1, 3, True), (0, 3, False), (2, 0, False),
     (2, 1, False), (3, 2, False)],
)  # fmt: skip
def test_only_what_is_capable_is_marked(ip: str, sent: int, came: int, fits: bool) -> None:
    ends = ends_of(ip, sent)
    ends["server"][2] = summed(ip, ends["server"][2], came)
    assert (said(ip, ends) == []) == fits


def test_only_cake_washes_a_code_point() -> None:
    ends = ends_of("4", 0xB8)
    ends["server"][2] = summed("4", ends["server"][2], 0)
    (sentence,) = said("4", ends)
    assert "the link damaged 0" in sentence and sentence.endswith(
        "came with the code point 0, and was sent with 46"
    )
    assert said("4", ends, LinkSpec(qdisc_up="cake wash")) == []
    assert said("4", ends, LinkSpec(qdisc_down="cake wash")) != []


def test_what_came_twice_or_otherwise_is_what_the_link_counts() -> None:
    ends = ends_of("4")
    ends["server"].append(ends["server"][2])
    assert said("4", ends) == ["up: 1 packets came once more than sent, the link copied 0"]
    assert said("4", ends, up_duplicated=1) == []
    assert said("4", ends, down_duplicated=1) != []
    ends["server"][4] = ends["server"][4][:50] + b"\xff" + ends["server"][4][51:]
    assert said("4", ends, up_corrupted=1) == []
    assert said("4", ends, up_duplicated=1) != []


def test_a_packet_from_nobody() -> None:
    ends = ends_of("4")
    stray = bytearray(ends["client"][1])
    stray[29] ^= 1
    ends["client"].append(summed("4", bytes(stray)))
    (sentence,) = said("4", ends)
    assert sentence.startswith("down: 1 packets came otherwise than they were sent")
    assert "TCP from 10.10.0.1:80" in sentence or "was not sent like that" in sentence


def test_other_ends_are_held_as_well() -> None:
    """Those of neighbours pass two routers more."""
    ends = ends_of("4")
    shared = crossed("4", **ends)
    wrong = found(check_bytes, crossings=(shared, shared), line_shared=True)
    assert [sentence.partition(";")[0] for sentence in wrong] == [
        "down: 4 packets came otherwise than they were sent, the link damaged 0",
        "up: 4 packets came otherwise than they were sent, the link damaged 0",
    ]
    assert all("passed 2 routers, there are 4" in sentence for sentence in wrong)


def test_flags_are_read_from_the_frame() -> None:
    """What this room plants is what a capture has: a RST in the frame is one of the packet."""
    frame = bytearray(ends_of("4")["client"][2])
    frame[14 + 20 + 13] |= RST
    packet: Packet = read_frame(0, bytes(frame), len(frame))
    assert packet.flags & RST
