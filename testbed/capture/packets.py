"""Reader of capture files: packets with their headers, times exact in nanoseconds.

The file is tcpdump's (pcap-savefile(5)); the headers are those of IPv4, IPv6, TCP and UDP (RFC 791,
RFC 8200, RFC 9293, RFC 768).  Read by ``struct`` and not by a library, which takes six times as
long: a long load has ten thousands of packets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from testbed.base.addresses import format_address

FIN, SYN, RST, PSH, ACK, ECE, CWR, AE = (1 << bit for bit in (0, 1, 2, 3, 4, 6, 7, 8))
MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS, FAST_OPEN = 2, 3, 4, 5, 8, 34
"""Kinds of TCP options (RFC 9293 section 3.2, RFC 7323, RFC 2018, RFC 7413)."""

ETHERNET_BYTES = 14
HTTPS_PORT = 443
# Nanosecond times, little-endian: what the testbed's captures are.
_MAGIC = b"\x4d\x3c\xb2\xa1"
_FILE_HEADER_BYTES = 24
_RECORD = struct.Struct("<IIII")  # seconds, nanoseconds, bytes captured, bytes on the wire
_IPV4, _IPV6 = b"\x08\x00", b"\x86\xdd"
_OTHERS = {b"\x08\x06": "ARP", _IPV6: "IP6"}
_IP = struct.Struct("!BBH2xHxB2x4s4s")  # length, class, total length, fragment, protocol, addresses
_IP6 = struct.Struct("!IHBx16s16s")  # class and flow, length behind it, next header, addresses
_TCP = struct.Struct("!HHIIHH4x")  # ports, sequence, acknowledgement, offset and flags, window
_UDP = struct.Struct("!HHH2x")  # ports, length
_IP_TCP, _IP_UDP = 6, 17
PORT_UNREACHABLE, TOO_LONG = 3, 4
"""Codes of ICMP's destination unreachable."""
_UNREACHABLE = 3
_FRAGMENT_OFFSET = 0x1FFF
_END_OF_OPTIONS, _NO_OPERATION = 0, 1
_HALF = 1 << 31


class Packet(NamedTuple):
    """One frame of a capture, and its headers; what it does not have is zero or empty.

    ``frame`` is what was captured of the ``frame_bytes`` on the wire.  ``protocol`` is ``TCP``,
    ``UDP``, ``IP`` or ``IP6`` (whatever else they carry, and headers that were not captured),
    ``ARP`` or ``frame``.  Addresses are of 4 bytes or 16, ``ip_bytes`` is the IP packet's length.
    ``payload`` is what was captured of ``payload_bytes``, which the lengths in the headers say.
    """

    at_ns: int
    frame: bytes
    frame_bytes: int
    protocol: str
    source: bytes = b""
    target: bytes = b""
    ip_bytes: int = 0
    traffic_class: int = 0
    source_port: int = 0
    target_port: int = 0
    payload: bytes = b""
    payload_bytes: int = 0
    seq: int = 0
    ack: int = 0
    flags: int = 0
    window: int = 0
    options: bytes = b""

    @property
    def sender(self) -> str:
        """``address:port`` of an IP packet's source, as nginx writes it: without brackets."""
        return f"{format_address(self.source)}:{self.source_port}"

    @property
    def receiver(self) -> str:
        """``address:port`` of an IP packet's target."""
        return f"{format_address(self.target)}:{self.target_port}"

    @property
    def ip(self) -> str:
        """The version of IP: 4 or 6."""
        return "6" if len(self.source) == 16 else "4"

    @property
    def opens(self) -> bool:
        """Whether it is a SYN and no SYN-ACK."""
        return self.flags & (SYN | ACK) == SYN


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture file in memory, its packets in the order of the file."""

    path: Path
    packets: tuple[Packet, ...]


def read_capture(pcap: Path) -> Capture:
    """Read ``pcap``; a frame whose headers cannot be read is in it all the same.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no capture with times in ns, or is cut off.
    """
    content = pcap.read_bytes()
    if content[:4] != _MAGIC or len(content) < _FILE_HEADER_BYTES:
        raise ValueError(f"{pcap}: not a capture with nanosecond times")
    packets: list[Packet] = []
    position = _FILE_HEADER_BYTES
    while position < len(content):
        start = position + _RECORD.size
        if start > len(content):
            raise ValueError(f"{pcap}: the capture is cut off")
        seconds, nanoseconds, captured, size = _RECORD.unpack_from(content, position)
        position = start + captured
        if position > len(content):
            raise ValueError(f"{pcap}: the capture is cut off")
        at_ns = seconds * 1_000_000_000 + nanoseconds
        packets.append(read_frame(at_ns, content[start:position], size))
    return Capture(pcap, tuple(packets))


def read_frame(at_ns: int, frame: bytes, frame_bytes: int) -> Packet:
    """Return the headers of a frame, of which ``frame`` was captured.

    An IPv6 packet with extension headers is no more than ``IP6``: the lab sends none.
    """
    name, fragment = "IP", 0
    if frame[12:14] == _IPV4 and len(frame) >= ETHERNET_BYTES + _IP.size:
        head, traffic_class, ip_bytes, fragment, carried, source, target = _IP.unpack_from(
            frame, ETHERNET_BYTES
        )
        start = ETHERNET_BYTES + (head & 0xF) * 4
    elif frame[12:14] == _IPV6 and len(frame) >= ETHERNET_BYTES + _IP6.size:
        head, behind_bytes, carried, source, target = _IP6.unpack_from(frame, ETHERNET_BYTES)
        name, traffic_class = "IP6", head >> 20 & 0xFF
        ip_bytes, start = behind_bytes + _IP6.size, ETHERNET_BYTES + _IP6.size
    else:
        return Packet(at_ns, frame, frame_bytes, _OTHERS.get(frame[12:14], "frame"))
    # What is behind is padding; no length at all is left to a device that segments.
    end = min(ETHERNET_BYTES + ip_bytes, len(frame)) if ip_bytes else len(frame)
    if not fragment & _FRAGMENT_OFFSET:
        if carried == _IP_TCP and start + _TCP.size <= end:
            source_port, target_port, seq, ack, offset_flags, window = _TCP.unpack_from(
                frame, start
            )
            data = start + (offset_flags >> 12) * 4
            return Packet(
                at_ns, frame, frame_bytes, "TCP", source, target, ip_bytes, traffic_class,
                source_port, target_port, frame[data:end], ip_bytes + ETHERNET_BYTES - data,
                seq, ack, offset_flags & 0x1FF, window, frame[start + _TCP.size : data],
            )  # fmt: skip
        if carried == _IP_UDP and start + _UDP.size <= end:
            source_port, target_port, length = _UDP.unpack_from(frame, start)
            return Packet(
                at_ns, frame, frame_bytes, "UDP", source, target, ip_bytes, traffic_class,
                source_port, target_port, frame[start + _UDP.size : end], length - _UDP.size,
            )  # fmt: skip
    return Packet(at_ns, frame, frame_bytes, name, source, target, ip_bytes, traffic_class)


def is_quic(packet: Packet) -> bool:
    """Whether a packet is a datagram of the port of https."""
    return packet.protocol == "UDP" and HTTPS_PORT in (packet.source_port, packet.target_port)


def read_unreachable(packet: Packet) -> int | None:
    """Return why a packet says that what it quotes could not be delivered; ``None``: it does not.

    That is the code of ICMP's destination unreachable, such as ``PORT_UNREACHABLE`` (RFC 792).
    Over IPv6 that is the only one which is read, by another number (RFC 4443).
    """
    at, number, begin = (6, 58, 40) if packet.ip == "6" else (9, 1, 20)
    header = packet.frame[ETHERNET_BYTES:]
    said = header[begin : begin + 2]
    is_icmp = packet.protocol in ("IP", "IP6") and header[at : at + 1] == bytes((number,))
    if not is_icmp or len(said) < 2:
        return None
    if packet.ip == "6":
        return PORT_UNREACHABLE if said == b"\1\4" else None
    return said[1] if said[0] == _UNREACHABLE else None


def read_options(options: bytes) -> Iterator[tuple[int | None, bytes]]:
    """Yield kind and data of each TCP option but padding; ``None``: the rest cannot be read."""
    position = 0
    while position < len(options) and options[position] != _END_OF_OPTIONS:
        kind = options[position]
        if kind == _NO_OPERATION:
            position += 1
            continue
        length = options[position + 1] if position + 1 < len(options) else 0
        if length < 2:
            yield None, b""
            return
        yield kind, options[position + 2 : position + length]
        position += length


def find_option(packet: Packet, wanted: int) -> bytes | None:
    """Return the data of the first TCP option of kind ``wanted``; ``None``: there is none."""
    return next((data for kind, data in read_options(packet.options) if kind == wanted), None)


def mss_of(packet: Packet) -> int | None:
    """Return the maximum segment size that a SYN announces; ``None``: none."""
    option = find_option(packet, MSS)
    return int.from_bytes(option) if option else None


def scale_of(packet: Packet) -> int | None:
    """Return by how much a SYN's sender scales its windows; ``None``: it does not (RFC 7323)."""
    option = find_option(packet, WINDOW_SCALE)
    return option[0] if option else None


def checksum(data: bytes) -> int:
    """Return the Internet checksum of ``data``; 0: they have the right one in them (RFC 1071)."""
    data += bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def behind(number: int, start: int) -> int:
    """Return how far a number is behind ``start``; negative: before it (RFC 9293 section 3.4)."""
    distance = (number - start) & 0xFFFFFFFF
    return distance - (1 << 32) if distance >= _HALF else distance
