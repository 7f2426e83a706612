"""Captures of one conversation, made by hand: numbers relative, so that other boots can be made."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import dpkt

from tests.capture.packets import ACK, PUSH, SYN, write_frames

CLIENT, SERVER = b"\x02\x00\x00\x00\x00\x01", b"\x02\x00\x00\x00\x00\x02"
ADDRESSES = {"client": bytes((10, 0, 0, 2)), "server": bytes((10, 0, 0, 7))}
MSS_SACK_TS = b"\x02\x04\x05\xb4\x04\x02\x08\x0a\x00\x00\x00\x01\x00\x00\x00\x00\x01\x03\x03\x07"


@dataclass(frozen=True, slots=True)
class Sent:
    """One TCP packet; ``seq`` and ``ack`` are relative to ``isn`` of each end."""

    at_ns: int
    sender: str
    flags: int
    seq: int = 0
    ack: int = 0
    data: bytes = b""
    window: int = 502
    options: bytes = b""
    port: int = 40001
    isn: dict[str, int] = field(default_factory=lambda: {"client": 1000, "server": 5000})


MS = 1_000_000


def conversation(segments: int = 3) -> list[Sent]:
    """A handshake, a request, and a response of ``segments`` segments that is acknowledged."""
    body = [
        Sent(230 * MS + i * 3 * MS, "server", ACK, 1 + i * 100, 21, bytes([65 + i]) * 100)
        for i in range(segments)
    ]
    return [Sent(0, "client", SYN, options=MSS_SACK_TS),
            Sent(100 * MS, "server", SYN | ACK, 0, 1, options=MSS_SACK_TS),
            Sent(100 * MS + 5, "client", ACK, 1, 1),
            Sent(101 * MS, "client", ACK | PUSH, 1, 1, b"GET / HTTP/1.1\r\n\r\n ."), *body,
            Sent(300 * MS, "client", ACK, 21, 1 + segments * 100)]  # fmt: skip


def another_boot(packets: list[Sent]) -> list[Sent]:
    """The same packets with what every boot chooses anew."""
    isn = {"client": 4_294_967_200, "server": 77}
    return [replace(packet, isn=isn, port=51999, at_ns=packet.at_ns + 12345) for packet in packets]


def write_capture(
    path: Path, packets: Iterable[Sent], extra: tuple[tuple[int, bytes], ...] = ()
) -> str:
    """Write ``packets`` (and ``extra`` frames, which come first); return the file's SHA-256."""
    frames = (*extra, *((packet.at_ns, frame_of(packet)) for packet in packets))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_frames(path, [(at_ns + 10**18, frame) for at_ns, frame in frames])
    return hashlib.sha256(path.read_bytes()).hexdigest()


def frame_of(sent: Sent) -> bytes:
    other = "server" if sent.sender == "client" else "client"
    ports = {"client": sent.port, "server": 80}
    acked = sent.flags & ACK
    segment = dpkt.tcp.TCP(
        sport=ports[sent.sender], dport=ports[other],
        seq=(sent.isn[sent.sender] + sent.seq) % 2**32,
        ack=(sent.isn[other] + sent.ack) % 2**32 if acked else 0,
        flags=sent.flags, win=sent.window, opts=sent.options, data=sent.data,
    )  # fmt: skip
    segment.off = 5 + len(sent.options) // 4
    packet = dpkt.ip.IP(src=ADDRESSES[sent.sender], dst=ADDRESSES[other], p=6, data=segment)
    packet.len = len(packet)
    return ethernet(sent.sender, bytes(packet))


def query(port: int, dns_id: int, name: bytes = b"www") -> bytes:
    datagram = dpkt.udp.UDP(sport=port, dport=53, data=struct.pack(">H", dns_id) + name)
    datagram.ulen = 8 + 2 + len(name)
    packet = dpkt.ip.IP(
        src=ADDRESSES["client"], dst=ADDRESSES["server"], p=17, data=datagram
    )  # fmt: skip
    packet.len = len(packet)
    return ethernet("client", bytes(packet))


def ethernet(sender: str, packet: bytes) -> bytes:
    """``packet`` in a frame of ``sender``."""
    ends = (SERVER, CLIENT) if sender == "client" else (CLIENT, SERVER)
    return b"".join(ends) + b"\x08\x00" + packet
