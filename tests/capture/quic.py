"""QUIC connections made by hand, sealed as both ends do (RFC 9001 section 5)."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path

import dpkt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from testbed.capture.packets import read_capture
from testbed.capture.quic import QuicConnection, read_quic
from testbed.capture.quic_keys import expand, initial_keys
from tests.capture.packets import CLIENT, SERVER, START_NS, server_hello, write_frames

ID, SERVER_ID = bytes.fromhex("8394c8f03e515708"), bytes(range(20))
RANDOM = bytes(range(32))
SECRETS = {
    f"{end}_{label}": bytes((number,)) * 32
    for number, (end, label) in enumerate(
        (
            ("CLIENT", "EARLY_TRAFFIC_SECRET"),
            ("CLIENT", "HANDSHAKE_TRAFFIC_SECRET"),
            ("SERVER", "HANDSHAKE_TRAFFIC_SECRET"),
            ("CLIENT", "TRAFFIC_SECRET_0"),
            ("SERVER", "TRAFFIC_SECRET_0"),
        )
    )
}
KINDS = {"initial": 0, "0-rtt": 1, "handshake": 2}
LABELS = {"0-rtt": "EARLY_TRAFFIC_SECRET", "handshake": "HANDSHAKE_TRAFFIC_SECRET"}


def number(value: int) -> bytes:
    """A number of variable length (RFC 9000 section 16)."""
    if value < 64:
        return bytes((value,))
    return (value | 0x4000).to_bytes(2) if value < 16384 else (value | 0x8000_0000).to_bytes(4)


def crypto(data: bytes, offset: int = 0) -> bytes:
    return b"\x06" + number(offset) + number(len(data)) + data


def stream(data: bytes, stream: int = 0, offset: int = 0, *, fin: bool = False) -> bytes:
    return bytes((0x0E | fin,)) + number(stream) + number(offset) + number(len(data)) + data


def ack(first: int, last: int) -> bytes:
    """An ACK frame of one range."""
    return b"\x02" + number(last) + b"\0\0" + number(last - first)


def hello(*extensions: tuple[int, bytes]) -> bytes:
    block = b"".join(k.to_bytes(2) + len(d).to_bytes(2) + d for k, d in extensions)
    body = b"\x03\x03" + RANDOM + b"\0" + b"\0\x02\x13\x01" + b"\x01\0"
    body += len(block).to_bytes(2) + block
    return b"\x01" + len(body).to_bytes(3) + body


def answer(*extensions: tuple[int, bytes]) -> bytes:
    return server_hello(*extensions)[5:]


def encrypted(*extensions: tuple[int, bytes]) -> bytes:
    block = b"".join(k.to_bytes(2) + len(d).to_bytes(2) + d for k, d in extensions)
    return b"\x08" + (len(block) + 2).to_bytes(3) + len(block).to_bytes(2) + block


def share(*groups: int) -> tuple[int, bytes]:
    entries = b"".join(group.to_bytes(2) + b"\0\x02ab" for group in groups)
    return 51, len(entries).to_bytes(2) + entries


CHOSEN = (51, b"\0\x1d\0\x02ab")
TLS13 = (43, b"\x03\x04")


@dataclass
class Made:
    """Datagrams between a client and a server, a millisecond apart.

    Those from the one numbered ``moves_at`` on are from another port of the client.
    """

    datagrams: list[tuple[int, bool, bytes]] = field(default_factory=list)
    port: int = 50_000
    moves_at: int | None = None

    def add(self, *packets: bytes, by_client: bool) -> None:
        at_ns = START_NS + len(self.datagrams) * 1_000_000
        self.datagrams.append((at_ns, by_client, b"".join(packets)))

    def read(self, folder: Path, *, secrets: bool = True) -> tuple[QuicConnection, ...]:
        frames = []
        for place, (at, by_client, data) in enumerate(self.datagrams):
            moved = self.moves_at is not None and place >= self.moves_at
            frames.append((at, self._frame(data, by_client, self.port + moved)))
        capture = read_capture(write_frames(folder / "client.pcap", frames))
        known = {RANDOM: SECRETS} if secrets else {}
        return read_quic(capture, [socket.inet_aton(CLIENT)], known)

    def _frame(self, data: bytes, by_client: bool, port: int) -> bytes:
        ends = ((CLIENT, port), (SERVER, 443))
        source, target = ends if by_client else ends[::-1]
        udp = dpkt.udp.UDP(sport=source[1], dport=target[1], data=data)
        udp.ulen = len(udp)
        addresses = {"src": socket.inet_aton(source[0]), "dst": socket.inet_aton(target[0])}
        ip = dpkt.ip.IP(p=17, data=udp, **addresses)
        ip.len = len(ip)
        return bytes(dpkt.ethernet.Ethernet(data=ip))


def long(
    kind: str, count: int, content: bytes, *, by_client: bool, target: bytes = ID, version: int = 1
) -> bytes:
    """A sealed packet with a long header."""
    secret = _secret(kind, by_client)
    ids = (target, b"") if by_client else (b"", SERVER_ID)
    head = bytes((0xC3 | KINDS[kind] << 4,)) + version.to_bytes(4)
    head += b"".join(bytes((len(each),)) + each for each in ids)
    head += b"\0" if kind == "initial" else b""
    content += bytes(max(0, 20 - len(content)))
    head += (0x4000 | 4 + len(content) + 16).to_bytes(2)
    return seal(secret, head, count, content)


def short(
    count: int, content: bytes, *, by_client: bool, generation: int = 0, size: int = 4
) -> bytes:
    """A sealed packet with a short header, after ``generation`` updates of its keys."""
    hiding = secret = _secret("1-rtt", by_client)
    for _ in range(generation):
        secret = expand(secret, "quic ku", 32)
    first = 0x40 | generation % 2 << 2 | size - 1
    head = bytes((first,)) + (SERVER_ID if by_client else b"")
    return seal(secret, head, count, content + bytes(max(0, 20 - len(content))), hiding, size)


def seal(
    secret: bytes, head: bytes, count: int, content: bytes, hiding: bytes = b"", size: int = 4
) -> bytes:
    """Encrypt a packet, and hide its header by the secret ``hiding``."""
    head += (count & (1 << 8 * size) - 1).to_bytes(size)
    nonce = int.from_bytes(expand(secret, "quic iv", 12)) ^ count
    sealed = AESGCM(expand(secret, "quic key", 16)).encrypt(nonce.to_bytes(12), content, head)
    start = len(head) - size
    sample = (head + sealed)[start + 4 : start + 20]
    key = expand(hiding or secret, "quic hp", 16)
    hiding_mode = modes.ECB()  # noqa: S305 - what RFC 9001 hides headers by
    mask = Cipher(algorithms.AES(key), hiding_mode).encryptor().update(sample)
    first = head[0] ^ mask[0] & (0x0F if head[0] & 0x80 else 0x1F)
    hidden = int.from_bytes(head[start:]) ^ int.from_bytes(mask[1 : 1 + size])
    return bytes((first,)) + head[1:start] + hidden.to_bytes(size) + sealed


def _secret(kind: str, by_client: bool) -> bytes:
    if kind == "initial":
        return initial_keys(ID)[by_client].secret
    label = LABELS.get(kind, "TRAFFIC_SECRET_0")
    return SECRETS[f"{'CLIENT' if by_client else 'SERVER'}_{label}"]


def conversation(*early: bytes, accepted: bool = True) -> Made:
    """A handshake, with ``early`` frames in a 0-RTT packet each."""
    made = Made()
    offers = [TLS13, share(0x1D, 0x11EC), (16, b"\0\x03\x02h3")]
    offers += [(42, b""), (41, bytes(8))] if early else []
    said = hello(*offers)
    first = long("initial", 0, crypto(said[40:], 40), by_client=True)
    made.add(first, by_client=True)  # its halves come in another order
    made.add(long("initial", 1, crypto(said[:40]), by_client=True),
             *(long("0-rtt", at, frame, by_client=True) for at, frame in enumerate(early)),
             by_client=True)  # fmt: skip
    told = answer(TLS13, CHOSEN, *([(41, b"\0\0")] if early else []))
    extensions = [(16, b"\0\x03\x02h3"), *([(42, b"")] if early and accepted else [])]
    made.add(
        long("initial", 0, crypto(told), by_client=False),
        long("handshake", 0, crypto(encrypted(*extensions)), by_client=False),
        by_client=False,
    )
    return made
