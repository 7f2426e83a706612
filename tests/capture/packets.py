"""Captures made by hand: TCP packets between one client and its servers, times in nanoseconds."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import dpkt

from testbed.capture import packets as wire
from testbed.capture.flows import Flows, read_flows

CLIENT = "10.0.0.2"
SERVER = "10.10.0.1"
REQUEST = b"GET / HTTP/1.1\r\nHost: www.page.test\r\n\r\n"
COOKIE = bytes.fromhex("0123456789abcdef")
SYN, ACK, PUSH = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK, dpkt.tcp.TH_PUSH
FIN, RST = dpkt.tcp.TH_FIN, dpkt.tcp.TH_RST
MSS_OPTION = b"\x02\x04\x05\xb4"
OPENING = MSS_OPTION + b"\x01\x03\x03\x07"
"""The options of a SYN: its MSS, and by how much windows are scaled."""
OPENING_WINDOW = 64_240
START_NS = 1_700_000_000_000_000_007
SUITE = b"\x13\x01"


def tls_record(message: int, content: bytes, declared: int | None = None) -> bytes:
    """A handshake record with one message; ``declared`` is what its header says instead."""
    size = len(content) + 4 if declared is None else declared
    header = b"\x16\x03\x01" + size.to_bytes(2, "big")
    return header + bytes([message]) + (size - 4).to_bytes(3, "big") + content


def client_hello(size: int) -> bytes:
    """A ClientHello whose record has ``size`` bytes in all (RFC 8446 section 4.1.2)."""
    return tls_record(1, b"\x03\x03" + bytes(size - 11))


def server_hello(
    *extensions: tuple[int, bytes], version: bytes = b"\x03\x03", session: bytes = bytes(32)
) -> bytes:
    """A ServerHello with these extensions (RFC 8446 section 4.1.3)."""
    block = b"".join(
        kind.to_bytes(2, "big") + len(data).to_bytes(2, "big") + data for kind, data in extensions
    )
    return tls_record(
        2,
        version + bytes(32) + bytes([len(session)]) + session + SUITE + b"\0"
        + len(block).to_bytes(2, "big") + block,
    )  # fmt: skip


def fastopen_option(cookie: bytes) -> bytes:
    """The Fast Open option (RFC 7413 section 4.1.1), padded to a multiple of 4 bytes."""
    option = bytes([34, 2 + len(cookie)]) + cookie
    return option + b"\x01" * (-len(option) % 4)


def write_frames(path: Path, frames: Iterable[tuple[int, bytes]], snap: int = 65535) -> Path:
    """Write ``frames``, each with its time in ns, as a capture; they are cut at ``snap`` bytes."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap, 1))
        for time_ns, frame in frames:
            kept = frame[:snap]
            file.write(struct.pack("<IIII", *divmod(time_ns, 10**9), len(kept), len(frame)) + kept)
    return path


@dataclass
class Capture:
    """Packets in order; each is a microsecond after the one before unless ``at_ms`` says when."""

    packets: list[tuple[int, bytes]] = field(default_factory=list)
    snap: int = 65535

    def add(
        self, source: tuple[str, int], target: tuple[str, int], flags: int, seq: int, ack: int = 0,
        payload: bytes = b"", options: bytes = MSS_OPTION, at_ms: float | None = None,
    ) -> None:  # fmt: skip
        tcp = dpkt.tcp.TCP(
            sport=source[1], dport=target[1], seq=seq & 0xFFFFFFFF, ack=ack & 0xFFFFFFFF,
            flags=flags, opts=options, off=5 + len(options) // 4, data=payload,
            win=OPENING_WINDOW if flags & SYN else 65_535,
        )  # fmt: skip
        ip = dpkt.ip.IP(
            src=socket.inet_aton(source[0]), dst=socket.inet_aton(target[0]), p=6, data=tcp
        )
        ip.len = len(ip)
        frame = bytes(dpkt.ethernet.Ethernet(data=ip))
        last = self.packets[-1][0] if self.packets else START_NS
        time_ns = last + 1000 if at_ms is None else START_NS + round(at_ms * 1e6)
        self.packets.append((time_ns, frame))

    def write(self, path: Path) -> Path:
        """Write the packets as a capture with nanosecond times; frames are cut at ``snap``."""
        return write_frames(path, self.packets, self.snap)

    def read(self, folder: Path) -> wire.Capture:
        """The packets as the testbed reads them, from a file in ``folder``."""
        return wire.read_capture(self.write(folder / "client.pcap"))

    def flows(self, folder: Path) -> Flows:
        """The client's connections as the testbed reads them, from a file in ``folder``."""
        return read_flows(self.read(folder), [socket.inet_aton(CLIENT)])


@dataclass
class Visit:
    """One connection of the client, packet by packet; sequence numbers run over 2^32."""

    capture: Capture
    port: int
    server: str = SERVER
    isn: int = 0xFFFFFFF0
    server_isn: int = 5000
    server_port: int = 80

    def syn(
        self, payload: bytes = b"", cookie: bytes | None = None, at_ms: float | None = None
    ) -> None:
        """The client's SYN; ``cookie=b""`` asks for one."""
        options = OPENING + (b"" if cookie is None else fastopen_option(cookie))
        self._send(SYN, self.isn, 0, payload, options, at_ms)

    def synack(self, acked: int, cookie: bytes | None = None, at_ms: float | None = None) -> None:
        """The server's SYN-ACK, which acknowledges ``acked`` bytes beyond the SYN."""
        options = OPENING + (b"" if cookie is None else fastopen_option(cookie))
        ends = ((self.server, self.server_port), (CLIENT, self.port))
        ack = self.isn + 1 + acked
        self.capture.add(*ends, SYN | ACK, self.server_isn, ack, b"", options, at_ms)

    def send(self, offset: int, payload: bytes) -> None:
        """Data of the client, ``offset`` bytes after the SYN's number."""
        self._send(ACK | PUSH, self.isn + 1 + offset, self.server_isn + 1, payload, b"", None)

    def answer(self, payload: bytes) -> None:
        """The server's first data."""
        ends = ((self.server, self.server_port), (CLIENT, self.port))
        self.capture.add(*ends, ACK | PUSH, self.server_isn + 1, self.isn + 1, payload, b"")

    def refuse(self, acked: int) -> None:
        """The RST of a client without a socket for a SYN-ACK that acknowledges ``acked`` bytes."""
        self._send(RST, self.isn + 1 + acked, 0, b"", b"", None)

    def leave(self, offset: int, flags: int = FIN | ACK) -> None:
        """The client's end, ``offset`` bytes after the SYN's number."""
        self._send(flags, self.isn + 1 + offset, self.server_isn + 1, b"", b"", None)

    def end(self, acked: int, flags: int = FIN | ACK) -> None:
        """The server's end, which acknowledges ``acked`` bytes after the SYN's number."""
        ends = ((self.server, self.server_port), (CLIENT, self.port))
        self.capture.add(*ends, flags, self.server_isn + 1, self.isn + 1 + acked, b"", b"")

    def open(self, payload: bytes = b"", acked: int | None = None, at_ms: float = 0.0) -> None:
        """SYN, SYN-ACK a millisecond later, ACK."""
        self.syn(payload, COOKIE if payload else None, at_ms)
        self.synack(len(payload) if acked is None else acked, at_ms=at_ms + 1)
        self.send(len(payload), b"")

    def _send(
        self, flags: int, seq: int, ack: int, payload: bytes, options: bytes, at_ms: float | None
    ) -> None:
        ends = ((CLIENT, self.port), (self.server, self.server_port))
        self.capture.add(*ends, flags, seq, ack, payload, options, at_ms)
