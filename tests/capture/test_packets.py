"""The reader of captures: what it makes of headers, and of files and frames that are damaged."""

from __future__ import annotations

from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.capture.packets import Packet, behind, read_capture, read_options
from tests.capture.packets import (
    ACK,
    CLIENT,
    COOKIE,
    MSS_OPTION,
    PUSH,
    REQUEST,
    SERVER,
    START_NS,
    SYN,
    Capture,
    Visit,
    fastopen_option,
    write_frames,
)

UP = ((CLIENT, 2000), (SERVER, 80))
PORTS, NUMBERS = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)


def read_one(frame: bytes, folder: Path, snap: int = 65535) -> Packet:
    path = write_frames(folder / "client.pcap", [(START_NS, frame)], snap)
    (packet,) = read_capture(path).packets
    return packet


def test_a_packet(tmp_path: Path) -> None:
    capture = Capture(snap=80)
    capture.add(*UP, ACK | PUSH, 7, 9, REQUEST, MSS_OPTION)
    (packet,) = capture.read(tmp_path).packets
    assert (packet.at_ns, packet.protocol) == (START_NS + 1000, "TCP")
    assert (packet.sender, packet.receiver) == ("10.0.0.2:2000", "10.10.0.1:80")
    assert (packet.seq, packet.ack, packet.flags, packet.window) == (7, 9, ACK | PUSH, 65535)
    assert (packet.options, packet.opens) == (MSS_OPTION, False)
    assert (packet.ip_bytes, packet.payload_bytes) == (44 + len(REQUEST), len(REQUEST))
    assert packet.payload == REQUEST[: 80 - 14 - 44]
    assert (len(packet.frame), packet.frame_bytes) == (80, 14 + 44 + len(REQUEST))


@given(
    ports=st.tuples(PORTS, PORTS), numbers=st.tuples(NUMBERS, NUMBERS), flags=st.integers(0, 0x1FF),
    words=st.integers(0, 10), ip_options=st.integers(0, 3), payload=st.binary(max_size=300),
    padding=st.integers(0, 20), snap=st.integers(14 + 60 + 60, 500),
)  # fmt: skip
def test_tcp_is_read_as_dpkt_reads_it(
    tmp_path_factory: pytest.TempPathFactory, ports: tuple[int, int], numbers: tuple[int, int],
    flags: int, words: int, ip_options: int, payload: bytes, padding: int, snap: int,
) -> None:  # fmt: skip
    tcp = dpkt.tcp.TCP(
        sport=ports[0], dport=ports[1], seq=numbers[0], ack=numbers[1], flags=flags,
        opts=b"\1" * 4 * words, off=5 + words, data=payload,
    )  # fmt: skip
    ip = dpkt.ip.IP(src=b"abcd", dst=b"efgh", p=6, tos=4, opts=b"\1" * 4 * ip_options, data=tcp)
    ip.hl = 5 + ip_options
    ip.len = len(ip)
    frame = bytes(dpkt.ethernet.Ethernet(data=ip)) + bytes(padding)
    packet = read_one(frame, tmp_path_factory.mktemp("tcp"), snap)
    same = dpkt.ethernet.Ethernet(frame[:snap]).data
    assert (packet.source, packet.target) == (same.src, same.dst)
    assert (packet.ip_bytes, packet.traffic_class) == (same.len, same.tos)
    assert (packet.source_port, packet.target_port) == (same.data.sport, same.data.dport)
    assert (packet.seq, packet.ack) == (same.data.seq, same.data.ack)
    assert (packet.flags, packet.window) == (same.data.flags, same.data.win)
    assert (packet.options, packet.payload) == (same.data.opts, same.data.data)
    assert packet.payload_bytes == len(payload)


def test_udp_and_what_is_neither(tmp_path: Path) -> None:
    udp = dpkt.udp.UDP(sport=4, dport=53, ulen=8 + 5, data=b"hello")
    ip = dpkt.ip.IP(src=b"abcd", dst=b"efgh", p=17, len=20 + 13, data=udp)
    packet = read_one(bytes(dpkt.ethernet.Ethernet(data=ip)) + bytes(13), tmp_path)
    assert (packet.protocol, packet.sender, packet.receiver) == (
        "UDP", "97.98.99.100:4", "101.102.103.104:53"
    )  # fmt: skip
    assert (packet.payload, packet.payload_bytes, packet.flags) == (b"hello", 5, 0)
    ip = dpkt.ip.IP(src=b"abcd", dst=b"efgh", p=1, len=24, data=b"ping")
    packet = read_one(bytes(dpkt.ethernet.Ethernet(data=ip)), tmp_path)
    assert (packet.protocol, packet.source, packet.ip_bytes) == ("IP", b"abcd", 24)
    for kind, name in ((b"\x08\x06", "ARP"), (b"\x86\xdd", "IP6"), (b"\x88\xcc", "frame")):
        assert read_one(bytes(12) + kind + bytes(40), tmp_path).protocol == name


@pytest.mark.parametrize(
    ("fragment", "protocol"), [(0x4000, "TCP"), (0x2000, "TCP"), (0x2001, "IP"), (0x0001, "IP")]
)
def test_of_fragments_only_the_first_has_a_header(
    tmp_path: Path, fragment: int, protocol: str
) -> None:
    capture = Capture()
    capture.add(*UP, SYN, 1)
    ((_, frame),) = capture.packets
    changed = frame[:20] + fragment.to_bytes(2, "big") + frame[22:]
    assert read_one(changed, tmp_path).protocol == protocol


@given(frame=st.binary(max_size=80), snap=st.integers(0, 80))
def test_no_frame_is_too_strange(
    tmp_path_factory: pytest.TempPathFactory, frame: bytes, snap: int
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    for whole in (frame, bytes(12) + b"\x08\x00" + frame, bytes(12) + b"\x08\x00\x45" + frame):
        assert read_one(whole, folder, snap).frame == whole[:snap]


@pytest.mark.parametrize("content", [b"", b"no capture at all, but long enough for one"])
def test_what_is_no_capture_is_a_value_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "client.pcap"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"client\.pcap: not a capture with nanosecond times"):
        read_capture(path)


def test_a_capture_with_times_in_microseconds_is_a_value_error(tmp_path: Path) -> None:
    path = Capture().write(tmp_path / "client.pcap")
    path.write_bytes(b"\xd4\xc3\xb2\xa1" + path.read_bytes()[4:])
    with pytest.raises(ValueError, match=r"client\.pcap: not a capture with nanosecond times"):
        read_capture(path)


@pytest.mark.parametrize("lost", [1, 20, 75, 80])
def test_a_capture_that_ends_in_a_packet_is_a_value_error(tmp_path: Path, lost: int) -> None:
    capture = Capture()
    Visit(capture, 2000).open(REQUEST)
    path = capture.write(tmp_path / "client.pcap")
    path.write_bytes(path.read_bytes()[:-lost])
    with pytest.raises(ValueError, match=r"client\.pcap: the capture is cut off"):
        read_capture(path)


def test_a_capture_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_capture(tmp_path / "client.pcap")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (b"", []),
        (MSS_OPTION, [(2, b"\x05\xb4")]),
        (b"\1\1" + fastopen_option(COOKIE) + MSS_OPTION, [(34, COOKIE), (2, b"\x05\xb4")]),
        (b"\x04\x02\0\x02\x04\x05\xb4", [(4, b"")]),  # the list has ended
        (b"\x04\x02\x08", [(4, b""), (None, b"")]),
        (b"\x08\x01\x01", [(None, b"")]),
    ],
)
def test_options(options: bytes, found: list[tuple[int | None, bytes]]) -> None:
    assert list(read_options(options)) == found


def test_a_syn_opens_and_a_syn_ack_does_not(tmp_path: Path) -> None:
    capture = Capture()
    capture.add(*UP, SYN, 1)
    capture.add(*UP, SYN | ACK, 1)
    assert [packet.opens for packet in capture.read(tmp_path).packets] == [True, False]


def test_sequence_numbers_are_on_a_circle() -> None:
    assert (behind(5, 2**32 - 5), behind(2**32 - 5, 5), behind(7, 7)) == (10, -10, 0)
