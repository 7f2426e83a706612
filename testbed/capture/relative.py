"""Packets of a capture as its ends mean them: relative times and numbers, connections in order.

What every boot chooses anew is left out or made relative: initial sequence numbers, timestamps,
cookies, ports of the client, ids of DNS queries.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from testbed.capture.lookups import is_lookup
from testbed.capture.packets import (
    ACK,
    CWR,
    ECE,
    ETHERNET_BYTES,
    FAST_OPEN,
    FIN,
    HTTPS_PORT,
    MSS,
    PSH,
    RST,
    SACK,
    SACK_PERMITTED,
    SYN,
    TIMESTAMPS,
    WINDOW_SCALE,
    Capture,
    Packet,
    is_quic,
    read_options,
)
from testbed.capture.quic import read_quic
from testbed.capture.quic_keys import read_secrets
from testbed.model import KEYS_FILE

DNS_ID_BYTES = 2
_SOURCE = slice(6, 12)
"""Where a frame has the Ethernet address of its sender."""
CIRCLE = 1 << 32
"""Sequence numbers are modulo this."""
FLAGS = (
    (SYN, "S"), (FIN, "F"), (RST, "R"), (PSH, "P"), (ECE, "E"), (CWR, "W"), (ACK, "."),
)  # fmt: skip
"""In tcpdump's letters and order."""


@dataclass(frozen=True, slots=True)
class RelativePacket:
    """One packet of a capture, as its ends mean it."""

    number: int
    """The packet's place in the capture, from 1."""
    time_ns: int
    """Its time since the first SYN."""
    protocol: str
    """TCP, UDP, or the kind of another packet."""
    sender: str
    """`client` or `server`."""
    connection: int
    """Its connection, from 1 in the order of their first packets; 0 for other packets."""
    endpoint: str
    """The server's address and port."""
    flags: str
    """TCP flags, in tcpdump's letters."""
    seq: int
    """The sequence number, relative to the sender's first."""
    ack: int
    """The acknowledgement number, relative to the other side's first."""
    length: int
    """The length of the payload, in bytes."""
    window: int
    """The receive window, as in the header: not scaled."""
    options: tuple[str, ...]
    """TCP options in words, without what differs in every boot."""
    traffic_class: int
    """The byte of DSCP and ECN."""
    payload: str
    """The digest of as much of the payload as was captured."""
    quic: tuple[str, ...] = ()
    """Of QUIC: the packets in the datagram, with type, number and streams as far as `keys.log`
    beside the capture opens them."""

    @property
    def kind(self) -> str:
        """The flags without PSH, which says how the sender's application wrote and no more."""
        return self.flags.replace("P", "")


def relative_packets(capture: Capture) -> Iterator[RelativePacket]:
    """Yield every packet in the order of the file; the client is who sends the first SYN."""
    packets = capture.packets
    first = next((packet for packet in packets if packet.opens), packets[0] if packets else None)
    if first is None:
        return
    flows: dict[tuple[str, str, str], _Flow] = {}
    words = _name_quic(capture)
    for number, packet in enumerate(packets, 1):
        sender = "client" if packet.frame[_SOURCE] == first.frame[_SOURCE] else "server"
        time_ns = packet.at_ns - first.at_ns
        if packet.protocol in ("TCP", "UDP"):
            related = _relate(flows, number, time_ns, sender, packet)
            yield replace(related, quic=tuple(words[number])) if number in words else related
        else:
            payload = _hash(packet.frame[ETHERNET_BYTES:])
            size = len(packet.frame)
            yield RelativePacket(
                number, time_ns, packet.protocol, sender, 0, "", "", 0, 0, size, 0, (), 0, payload
            )


def _name_quic(capture: Capture) -> dict[int, list[str]]:
    """Return the QUIC packets in words, by the place of their datagram."""
    clients = {p.source for p in capture.packets if is_quic(p) and p.target_port == HTTPS_PORT}
    words: dict[int, list[str]] = {}
    if clients:
        secrets = read_secrets(capture.path.with_name(KEYS_FILE))
        for connection in read_quic(capture, clients, secrets):
            for packet in connection.packets:
                words.setdefault(packet.place, []).append(packet.text)
    return words


@dataclass(slots=True)
class _Flow:
    number: int
    starts: dict[str, int] = field(default_factory=dict)
    """The initial sequence number of each sender."""

    def relative(self, sender: str, number: int) -> int:
        """``number`` counted from the sender's first one, which it is if none was seen."""
        return (number - self.starts.setdefault(sender, number)) % CIRCLE


def _relate(
    flows: dict[tuple[str, str, str], _Flow],
    number: int,
    time_ns: int,
    sender: str,
    packet: Packet,
) -> RelativePacket:
    client, server = packet.sender, packet.receiver
    other = "server"
    if sender == other:
        client, server, other = server, client, "client"
    flow = flows.setdefault((packet.protocol, client, server), _Flow(len(flows) + 1))
    if packet.flags & SYN:
        flow.starts[sender] = packet.seq
    return RelativePacket(
        number, time_ns, packet.protocol, sender, flow.number, endpoint=server,
        flags="".join(letter for bit, letter in FLAGS if packet.flags & bit),
        seq=flow.relative(sender, packet.seq),
        ack=flow.relative(other, packet.ack) if packet.flags & ACK else 0,
        length=packet.payload_bytes,
        window=packet.window,
        options=_options(packet, flow, other),
        traffic_class=packet.traffic_class,
        payload=_hash(packet.payload[DNS_ID_BYTES * is_lookup(packet) :]),
    )  # fmt: skip


def _options(packet: Packet, flow: _Flow, other: str) -> tuple[str, ...]:
    """The options in words, without what differs from boot to boot (timestamps, cookies)."""
    words = []
    for kind, data in read_options(packet.options):
        if kind == SACK and len(data) % 8 == 0:
            edges = struct.unpack(f">{len(data) // 4}I", data)
            pairs = zip(edges[::2], edges[1::2], strict=True)
            blocks = (f"{flow.relative(other, a)}:{flow.relative(other, b)}" for a, b in pairs)
            words.append(f"sack {' '.join(blocks)}")
        else:
            words.append(_option(kind, data))
    return tuple(words)


def _option(kind: int | None, data: bytes) -> str:
    if kind is None:
        return "unreadable"
    if kind == FAST_OPEN:
        return f"tfo cookie of {len(data)} bytes" if data else "tfo cookie request"
    value = int.from_bytes(data, "big")
    return {
        MSS: f"mss {value}",
        WINDOW_SCALE: f"wscale {value}",
        SACK_PERMITTED: "sackOK",
        TIMESTAMPS: "TS",
    }.get(kind, f"option {kind} {data.hex()}".rstrip())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16] if content else ""
