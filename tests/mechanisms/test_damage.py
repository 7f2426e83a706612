"""Frames with a wrong bit are told from others, wherever the bit is."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest

from testbed.capture.damage import split_damaged
from testbed.capture.packets import Capture, read_frame
from testbed.lab.topology import CLIENT_MAC
from testbed.mechanisms.impairments.proof import check_damage
from tests.capture.packets import ACK, CLIENT, SERVER
from tests.capture.packets import Capture as Made
from tests.evidence import found

HARMLESS = range(6 * 8, 12 * 8)
"""The bits of the sender's hardware address, which nobody looks at."""


def frame(*, left_out: bool = False) -> bytes:
    """A segment to the client, its checksum complete, or with the payload's part left out."""
    made = Made()
    made.add((SERVER, 80), (CLIENT, 40000), ACK, 1, 1, b"odd" * 7)
    ((_, data),) = made.packets
    data = CLIENT_MAC + data[6:]
    if not left_out:
        return data
    tcp_bytes = len(data) - 34
    pseudo = data[26:34] + struct.pack("!HH", 6, tcp_bytes)
    total = sum(struct.unpack("!6H", pseudo))
    return data[:50] + struct.pack("!H", total % 0xFFFF) + data[52:]


def damaged(data: bytes) -> bool:
    packet = read_frame(0, data, len(data))
    capture = Capture(Path("client.pcap"), (packet,))
    whole, wrong = split_damaged(capture, CLIENT_MAC)
    assert (*whole.packets, *wrong) == (packet,)
    return bool(wrong)


@pytest.mark.parametrize("left_out", [False, True])
def test_a_frame_as_it_was_sent(left_out: bool) -> None:
    assert not damaged(frame(left_out=left_out))


def test_each_bit_but_those_of_the_sender() -> None:
    data = frame()
    for bit in range(len(data) * 8):
        wrong = bytearray(data)
        wrong[bit // 8] ^= 1 << bit % 8
        # One that makes it a packet of the client itself is not of the way down.
        if read_frame(0, bytes(wrong), len(data)).source != socket.inet_aton(CLIENT):
            assert damaged(bytes(wrong)) is (bit not in HARMLESS), bit


def test_more_damage_than_the_link_did() -> None:
    packet = read_frame(0, frame(), len(frame()))
    counted = {"down.corrupted": 1}
    assert not found(check_damage, damaged=(packet,), counted=counted)
    said = "2 frames came down damaged, the link damaged 1"
    assert found(check_damage, damaged=(packet, packet), counted=counted) == [said]
