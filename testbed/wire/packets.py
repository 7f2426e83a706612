"""Packets of a capture file, times exact in nanoseconds (pcap-savefile(5))."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import dpkt
from dpkt.tcp import TH_ACK, TH_FIN, TH_RST, TH_SYN

# Nanosecond times, little-endian: what the capture room writes.
PCAP_MAGIC = b"\x4d\x3c\xb2\xa1"
PCAP_HEADER_BYTES = 24
RECORD_HEADER = struct.Struct("<IIII")


def read_ip(pcap: Path) -> Iterator[tuple[int, dpkt.ip.IP]]:
    """Time in ns and packet of every IPv4 packet in ``pcap``.

    Raises:
        OSError, ValueError: the capture cannot be read.
    """
    for time_ns, frame in read_frames(pcap):
        packet = _parse(pcap, frame)
        if isinstance(packet, dpkt.ip.IP):
            yield time_ns, packet


def read_tcp(pcap: Path) -> Iterator[tuple[int, dpkt.ip.IP]]:
    """The TCP packets of ``read_ip``."""
    return (item for item in read_ip(pcap) if isinstance(item[1].data, dpkt.tcp.TCP))


def read_control(pcap: Path) -> Iterator[tuple[int, dpkt.ip.IP]]:
    """UDP, what opens and ends TCP connections, and what clients send: a small part of ``read_ip``.

    The rest is bulk, and to parse it takes most of the time that a capture takes.

    Raises:
        OSError, ValueError: the capture cannot be read.
    """
    clients: set[bytes] = set()
    for time_ns, frame in read_frames(pcap):
        if frame[12:14] != b"\x08\x00":
            continue
        protocol, source, upper = frame[23], frame[26:30], 14 + (frame[14] & 15) * 4
        if protocol == dpkt.ip.IP_PROTO_TCP and upper + 14 <= len(frame):
            flags = frame[upper + 13]
            if flags & (TH_SYN | TH_ACK) == TH_SYN:
                clients.add(source)
            bare = int.from_bytes(frame[16:18], "big") <= upper - 14 + (frame[upper + 12] >> 4) * 4
            if not flags & (TH_SYN | TH_FIN | TH_RST) and (bare or source not in clients):
                continue
        elif protocol != dpkt.ip.IP_PROTO_UDP:
            continue
        packet = _parse(pcap, frame)
        if isinstance(packet.data, dpkt.udp.UDP | dpkt.tcp.TCP):
            yield time_ns, packet


def _parse(pcap: Path, frame: bytes) -> dpkt.ip.IP:
    try:
        return dpkt.ethernet.Ethernet(frame).data
    except dpkt.Error as error:
        raise ValueError(f"{pcap}: a frame cannot be read: {error}") from error


def count_cut(pcap: Path, needed: int) -> int:
    """How many frames have less than ``needed`` bytes in ``pcap``, and had more on the wire.

    Raises:
        OSError, ValueError: the capture cannot be read.
    """
    return sum(1 for _, frame, size in _read_records(pcap) if len(frame) < min(size, needed))


def read_frames(pcap: Path) -> Iterator[tuple[int, bytes]]:
    """Time and captured bytes of each frame (dpkt's own reader does not see a cut file)."""
    return ((time_ns, frame) for time_ns, frame, _ in _read_records(pcap))


def _read_records(pcap: Path) -> Iterator[tuple[int, bytes, int]]:
    """Time, captured bytes and size on the wire of each frame."""
    content = pcap.read_bytes()
    if content[:4] != PCAP_MAGIC or len(content) < PCAP_HEADER_BYTES:
        raise ValueError(f"{pcap}: not a capture with nanosecond times")
    position = PCAP_HEADER_BYTES
    while position < len(content):
        start = position + RECORD_HEADER.size
        if start > len(content):
            raise ValueError(f"{pcap}: the capture is cut off")
        seconds, nanoseconds, captured, size = RECORD_HEADER.unpack_from(content, position)
        position = start + captured
        if position > len(content):
            raise ValueError(f"{pcap}: the capture is cut off")
        yield seconds * 1_000_000_000 + nanoseconds, content[start:position], size


def payload_bytes(packet: dpkt.ip.IP) -> int:
    """TCP payload by the lengths in the headers: the capture may hold less of it."""
    return int(packet.len - packet.hl * 4 - packet.data.off * 4)
