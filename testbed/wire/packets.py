"""Packets of a capture file, times exact in nanoseconds (pcap-savefile(5))."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import dpkt

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
        try:
            packet = dpkt.ethernet.Ethernet(frame).data
        except dpkt.Error as error:
            raise ValueError(f"{pcap}: a frame cannot be read: {error}") from error
        if isinstance(packet, dpkt.ip.IP):
            yield time_ns, packet


def read_tcp(pcap: Path) -> Iterator[tuple[int, dpkt.ip.IP]]:
    """The TCP packets of ``read_ip``."""
    return (item for item in read_ip(pcap) if isinstance(item[1].data, dpkt.tcp.TCP))


def read_frames(pcap: Path) -> Iterator[tuple[int, bytes]]:
    """Time and captured bytes of each frame (dpkt's own reader does not see a cut file)."""
    content = pcap.read_bytes()
    if content[:4] != PCAP_MAGIC or len(content) < PCAP_HEADER_BYTES:
        raise ValueError(f"{pcap}: not a capture with nanosecond times")
    position = PCAP_HEADER_BYTES
    while position < len(content):
        start = position + RECORD_HEADER.size
        if start > len(content):
            raise ValueError(f"{pcap}: the capture is cut off")
        seconds, nanoseconds, captured, _ = RECORD_HEADER.unpack_from(content, position)
        position = start + captured
        if position > len(content):
            raise ValueError(f"{pcap}: the capture is cut off")
        yield seconds * 1_000_000_000 + nanoseconds, content[start:position]


def payload_bytes(packet: dpkt.ip.IP) -> int:
    """TCP payload by the lengths in the headers: the capture may hold less of it."""
    return int(packet.len - packet.hl * 4 - packet.data.off * 4)
