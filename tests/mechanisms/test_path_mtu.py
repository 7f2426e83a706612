"""Path MTU by both ends' captures: what is too long, what routers say of it, and who heeds it."""

from __future__ import annotations

import socket
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.capture.flows import read_flows
from testbed.capture.packets import Capture as Captured
from testbed.capture.packets import Packet, read_capture
from testbed.capture.routers import count_first_flights
from testbed.capture.transits import Transit
from testbed.mechanisms.path_mtu.proof import check_path_mtu
from testbed.model import LinkSpec
from testbed.proof.captures import check_strangers
from tests.capture.packets import ACK, CLIENT, SERVER, START_NS, Capture, write_frames
from tests.evidence import found

LINK = LinkSpec(rtt_ms=20, path_mtu_bytes=1400)
HOLE = replace(LINK, path_mtu_discovery="black-hole")
ROUTER = "10.0.2.1"
DOWN = ((SERVER, 80), (CLIENT, 2000))


def message(mtu_bytes: int = 1400, code: int = 4, port: int = 80) -> bytes:
    """A frame with an ICMP message to the server about a packet of ``DOWN``."""
    quoted = struct.pack(
        "!BBHIBBH4s4sHHI", 0x45, 0, 1500, 0, 64, 6, 0, *map(socket.inet_aton, (SERVER, CLIENT)),
        port, 2000, 1,
    )  # fmt: skip
    icmp = struct.pack("!BBHHH", 3, code, 0, 0, mtu_bytes) + quoted
    ip = struct.pack(
        "!BBHIBBH4s4s", 0x45, 0, 20 + len(icmp), 0, 64, 1, 0,
        *map(socket.inet_aton, (ROUTER, SERVER)),
    )  # fmt: skip
    return bytes(12) + b"\x08\x00" + ip + icmp


def captured(folder: Path, sizes: dict[float, int], messages: dict[float, bytes]) -> Captured:
    """The server's capture: packets of a connection by time and IP bytes, and messages."""
    capture = Capture()
    for at_ms, size in sizes.items():
        capture.add(*DOWN, ACK, 1, 1, bytes(size - 40), b"", at_ms=at_ms)
    frames = [*capture.packets, *((START_NS + round(ms * 1e6), f) for ms, f in messages.items())]
    return read_capture(write_frames(folder / "server.pcap", sorted(frames), snap=78))


def said(
    folder: Path, link: LinkSpec = LINK, counted: int = 1, passed: bool = False, **seen: Any
) -> list[str]:
    sizes = seen.get("sizes", {0: 1500, 11: 1400, 40: 1000})
    messages = seen.get("messages", {10: message()})
    capture = captured(folder, sizes, messages)
    transits = [
        Transit(
            START_NS + round(ms * 1e6),
            START_NS if passed or size <= 1400 else None,
            size,
            False,
            0,
            Packet(0, b"", size, "IP"),
            None,
        )
        for ms, size in sizes.items()
    ]
    traffic = {"down.too_long": counted, **seen.get("traffic", {})}
    return found(
        check_path_mtu, link, capture=Captured(folder, ()), at_server=capture,
        transits={"down": transits}, counted=traffic,
    )  # fmt: skip


def test_as_asked(tmp_path: Path) -> None:
    assert said(tmp_path) == []
    assert said(tmp_path, HOLE, messages={}) == []
    assert said(tmp_path, LinkSpec(), counted=9) == []


def test_a_message_that_is_still_on_its_way(tmp_path: Path) -> None:
    sizes = {0: 1500, 0.1: 1500, 30: 1500, 40: 1000}
    messages = {30.1: message(), 30.2: message()}
    assert said(tmp_path, sizes=sizes, counted=3, messages=messages) == []


def test_a_message_that_the_line_lost_or_doubled(tmp_path: Path) -> None:
    assert said(tmp_path, messages={}, traffic={"up.lost": 1}) == []
    twice = {10: message(), 12: message()}
    assert said(tmp_path, messages=twice, traffic={"up.duplicated": 1}) == []
    assert len(said(tmp_path, messages=twice, traffic={"down.duplicated": 1})) == 1


@pytest.mark.parametrize(
    ("seen", "says"),
    [({"passed": True}, "1 packets of up to 1500 bytes passed a line whose path MTU is 1400"),
     ({"counted": 0}, "1 packets were too long for the line, its router has 0"),
     ({"messages": {}}, "0 messages came back of 1 packets"),
     ({"messages": {10: message(), 12: message()}}, "2 messages came back of 1"),
     ({"messages": {10: message(code=3)}}, "0 messages came back of 1"),
     ({"link": HOLE}, "1 messages came back of 1 packets that were too long, asked was"),
     ({"messages": {10: message(1300)}}, "messages name an MTU of 1300, asked was 1400"),
     ({"sizes": {0: 1500, 11: 1500, 60: 40}, "counted": 2,
       "messages": {10: message(), 21: message()}},
      "1 packets were still too long when their sender had been told")],
)  # fmt: skip
def test_what_contradicts(tmp_path: Path, seen: dict[str, Any], says: str) -> None:
    (sentence,) = said(tmp_path, **seen)
    assert says in sentence


def test_another_connection_was_not_told(tmp_path: Path) -> None:
    sizes = {0: 1500, 11: 1500, 60: 40}
    messages = {10: message(port=81), 21: message(port=81)}
    assert said(tmp_path, sizes=sizes, counted=2, messages=messages) == []


@pytest.mark.parametrize(("code", "narrow", "strange"), [(4, True, 0), (4, False, 1), (3, True, 1)])
def test_who_tells_of_a_narrow_path_is_no_stranger(
    tmp_path: Path, code: int, narrow: bool, strange: int
) -> None:
    capture = captured(tmp_path, {}, {1: message(code=code)})
    flows = read_flows(capture, {socket.inet_aton(CLIENT)})
    link = LINK if narrow else LinkSpec()
    said = found(check_strangers, link, capture=capture, flows=flows, load=None)
    assert len(said) == strange


def test_a_first_flight_that_was_too_long_is_counted_where_it_was_sent(tmp_path: Path) -> None:
    """What comes behind the router's word, or a round trip later, was not sent at once."""
    capture = Capture()
    for number in range(4):
        capture.add(*DOWN, ACK, 1 + 1460 * number, 1, bytes(1460), b"", at_ms=0.1 * number)
    sent_again = ((10.1, 1, 1360), (10.2, 5841, 1360))
    for at_ms, seq, size in sent_again:
        capture.add(*DOWN, ACK, seq, 1, bytes(size), b"", at_ms=at_ms)
    frames = [*capture.packets, (START_NS + 10_000_000, message())]
    path = write_frames(tmp_path / "server.pcap", sorted(frames), snap=78)
    ends = (f"{CLIENT}:2000", f"{SERVER}:80")
    assert count_first_flights(read_capture(path), LINK) == {ends: 4}
    wide = replace(LINK, path_mtu_bytes=1500)
    assert count_first_flights(read_capture(path), wide) == {}
