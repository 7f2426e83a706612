"""Packets of a capture as its ends mean them: relative times and numbers, connections in order.

What every boot chooses anew is left out or made relative: initial sequence numbers, timestamps,
ports of the client, ids of DNS queries.  pcap-savefile(5); TCP options: RFC 9293 section 3.1,
RFC 7323, RFC 2018, RFC 7413.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import dpkt

# Nanosecond times, little-endian: what the testbed's captures are.
MAGIC = b"\x4d\x3c\xb2\xa1"
FILE_HEADER_BYTES = 24
RECORD_HEADER = struct.Struct("<IIII")
DNS_PORT = 53
DNS_ID_BYTES = 2
TFO_OPTION = 34
CIRCLE = 1 << 32
"""Sequence numbers are modulo this."""
FLAGS = (
    (dpkt.tcp.TH_SYN, "S"), (dpkt.tcp.TH_FIN, "F"), (dpkt.tcp.TH_RST, "R"),
    (dpkt.tcp.TH_PUSH, "P"), (dpkt.tcp.TH_ECE, "E"), (dpkt.tcp.TH_CWR, "W"),
    (dpkt.tcp.TH_ACK, "."),
)  # fmt: skip
"""In tcpdump's letters and order."""

Frame = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet of a capture."""

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

    @property
    def kind(self) -> str:
        """The flags without PSH, which says how the sender's application wrote and no more."""
        return self.flags.replace("P", "")


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture file in memory; its packets are taken apart only as far as they are asked for."""

    frames: tuple[Frame, ...]

    def packets(self) -> Iterator[Packet]:
        """Every packet in the order of the file."""
        start_ns, client = _first_syn(self.frames)
        flows = _Flows()
        for number, (time_ns, frame) in enumerate(self.frames, 1):
            sender = "client" if frame[6:12] == client else "server"
            yield flows.dissect(number, time_ns - start_ns, sender, frame)


def read_capture(pcap: Path) -> Capture:
    """Read ``pcap``.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no capture with times in ns, or is cut off.
    """
    # dpkt's own reader does not see that a file is cut off.
    content = pcap.read_bytes()
    if content[:4] != MAGIC or len(content) < FILE_HEADER_BYTES:
        raise ValueError(f"{pcap} is not a capture with times in nanoseconds")
    frames: list[Frame] = []
    position = FILE_HEADER_BYTES
    while position < len(content):
        start = position + RECORD_HEADER.size
        if start > len(content):
            raise ValueError(f"{pcap} is cut off")
        seconds, nanoseconds, captured, _ = RECORD_HEADER.unpack_from(content, position)
        position = start + captured
        if position > len(content):
            raise ValueError(f"{pcap} is cut off")
        frames.append((seconds * 1_000_000_000 + nanoseconds, content[start:position]))
    return Capture(tuple(frames))


def _first_syn(frames: tuple[Frame, ...]) -> tuple[int, bytes]:
    """Time and sender (MAC address) of the first SYN, else of the first frame."""
    for time_ns, frame in frames:
        packet = _parse(frame)
        segment = packet.data if isinstance(packet, dpkt.ip.IP) else None
        if isinstance(segment, dpkt.tcp.TCP) and segment.flags & 0x12 == dpkt.tcp.TH_SYN:
            return time_ns, frame[6:12]
    return (frames[0][0], frames[0][1][6:12]) if frames else (0, b"")


def _parse(frame: bytes) -> object:
    try:
        return dpkt.ethernet.Ethernet(frame).data
    except dpkt.Error:
        return None


@dataclass(slots=True)
class _Flow:
    number: int
    starts: dict[str, int] = field(default_factory=dict)
    """The initial sequence number of each sender."""

    def relative(self, sender: str, number: int) -> int:
        """``number`` counted from the sender's first one, which it is if none was seen."""
        return (number - self.starts.setdefault(sender, number)) % CIRCLE


class _Flows:
    """The flows of a capture so far, numbered as they appear."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], _Flow] = {}

    def dissect(self, number: int, time_ns: int, sender: str, frame: bytes) -> Packet:
        packet = _parse(frame)
        if isinstance(packet, dpkt.ip.IP) and isinstance(packet.data, dpkt.tcp.TCP):
            return self._tcp(number, time_ns, sender, packet)
        if isinstance(packet, dpkt.ip.IP) and isinstance(packet.data, dpkt.udp.UDP):
            return self._udp(number, time_ns, sender, packet)
        kind = type(packet).__name__ if isinstance(packet, dpkt.Packet) else "frame"
        return Packet(
            number, time_ns, kind, sender, 0, "", "", 0, 0, len(frame), 0, (), 0, _hash(frame[14:])
        )

    def _flow(self, sender: str, packet: dpkt.ip.IP) -> tuple[_Flow, str]:
        """The flow of ``packet``, and the address and port of its server."""
        ours, theirs = (packet.src, packet.data.sport), (packet.dst, packet.data.dport)
        client, server = (ours, theirs) if sender == "client" else (theirs, ours)
        flow = self._known.setdefault((packet.p, client, server), _Flow(len(self._known) + 1))
        return flow, f"{dpkt.utils.inet_to_str(server[0])}:{server[1]}"

    def _tcp(self, number: int, time_ns: int, sender: str, packet: dpkt.ip.IP) -> Packet:
        segment = packet.data
        flow, endpoint = self._flow(sender, packet)
        other = "server" if sender == "client" else "client"
        if segment.flags & dpkt.tcp.TH_SYN:
            flow.starts[sender] = segment.seq
        acked = segment.flags & dpkt.tcp.TH_ACK
        return Packet(
            number, time_ns, "TCP", sender, flow.number, endpoint,
            flags="".join(letter for bit, letter in FLAGS if segment.flags & bit),
            seq=flow.relative(sender, segment.seq),
            ack=flow.relative(other, segment.ack) if acked else 0,
            length=packet.len - packet.hl * 4 - segment.off * 4,
            window=segment.win,
            options=_options(segment, flow, other),
            traffic_class=packet.tos,
            payload=_hash(segment.data),
        )  # fmt: skip

    def _udp(self, number: int, time_ns: int, sender: str, packet: dpkt.ip.IP) -> Packet:
        datagram = packet.data
        flow, endpoint = self._flow(sender, packet)
        dns = DNS_PORT in (datagram.sport, datagram.dport)
        return Packet(
            number, time_ns, "UDP", sender, flow.number, endpoint, "", 0, 0,
            length=datagram.ulen - 8, window=0, options=(), traffic_class=packet.tos,
            payload=_hash(datagram.data[DNS_ID_BYTES if dns else 0 :]),
        )  # fmt: skip


def _options(segment: dpkt.tcp.TCP, flow: _Flow, other: str) -> tuple[str, ...]:
    """The options in words, without what differs from boot to boot (timestamps, cookies)."""
    words = []
    for option in dpkt.tcp.parse_opts(segment.opts):
        kind, data = option or (None, b"")  # None: the rest cannot be read
        if kind in (dpkt.tcp.TCP_OPT_EOL, dpkt.tcp.TCP_OPT_NOP):
            continue
        if kind == dpkt.tcp.TCP_OPT_SACK and len(data) % 8 == 0:
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
    if kind == TFO_OPTION:
        return f"tfo cookie of {len(data)} bytes" if data else "tfo cookie request"
    value = int.from_bytes(data, "big")
    return {
        dpkt.tcp.TCP_OPT_MSS: f"mss {value}",
        dpkt.tcp.TCP_OPT_WSCALE: f"wscale {value}",
        dpkt.tcp.TCP_OPT_SACKOK: "sackOK",
        dpkt.tcp.TCP_OPT_TIMESTAMP: "TS",
    }.get(kind, f"option {kind} {data.hex()}".rstrip())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16] if content else ""
