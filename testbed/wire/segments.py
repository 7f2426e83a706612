"""TCP segments of a capture, connection by connection, from their headers alone (RFC 9293).

Read by ``struct`` and not by a library: a long load has ten thousands of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from testbed.wire.packets import read_frames

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
_ETHERNET_BYTES = 14
_IPV4 = b"\x08\x00"
_TCP = 6
_HEADER = struct.Struct("!IIHH")  # sequence, acknowledgement, offset and flags, window
_WINDOW_SCALE = 3
_HALF = 1 << 31


class Segment(NamedTuple):
    """One segment; ``payload`` is in bytes, by the lengths in the headers, ``at_ns`` its time."""

    at_ns: int
    seq: int
    ack: int
    flags: int
    window: int
    payload: int
    ip_bytes: int
    options: bytes


@dataclass(slots=True)
class Flow:
    """A connection that the client opened: its SYN, and all segments as (by the client, segment).

    ``synack`` is the server's first SYN-ACK.
    """

    syn: Segment
    segments: list[tuple[bool, Segment]] = field(default_factory=list)
    synack: Segment | None = None

    @property
    def window_shift(self) -> int:
        """By how much the client scales the windows that it tells after its SYN (RFC 7323)."""
        both = self.synack is not None and _find_option(self.synack.options, _WINDOW_SCALE)
        asked = _find_option(self.syn.options, _WINDOW_SCALE)
        return asked[0] if both and asked else 0


@dataclass(frozen=True, slots=True)
class Flows:
    """What a capture shows: connections in the order of their SYNs, and all TCP of each direction.

    ``up`` and ``down`` count segments by and to the clients; ``arrivals`` are the times and the
    IP bytes of every IPv4 packet that came down the link, in order.  What belongs to a connection
    whose SYN was not captured, a late farewell, is only counted.
    """

    flows: tuple[Flow, ...]
    up: int
    down: int
    arrivals: tuple[tuple[int, int], ...]


def read_flows(pcap: Path, client: bytes) -> Flows:
    """Go through ``pcap`` once; ``client`` is the client's IPv4 address.

    Raises:
        OSError, ValueError: the capture cannot be read.
    """
    found: list[Flow] = []
    flows: dict[bytes, Flow] = {}
    counts = {True: 0, False: 0}
    arrivals = []
    for at_ns, frame in read_frames(pcap):
        if frame[12:14] != _IPV4:
            continue
        by_client = frame[26:30] == client
        ip_bytes = int.from_bytes(frame[16:18], "big")
        if not by_client:
            arrivals.append((at_ns, ip_bytes))
        if frame[23] != _TCP:
            continue
        ends, segment = _parse(pcap, at_ns, frame, ip_bytes)
        counts[by_client] += 1
        key = ends if by_client else ends[4:8] + ends[:4] + ends[10:] + ends[8:10]
        flow = flows.get(key)
        opens = by_client and segment.flags & (SYN | ACK) == SYN
        if opens and (flow is None or flow.syn.seq != segment.seq):
            flow = flows[key] = Flow(segment)
            found.append(flow)
        if flow is None:
            continue
        if not by_client and segment.flags & SYN and flow.synack is None:
            flow.synack = segment
        flow.segments.append((by_client, segment))
    return Flows(tuple(found), counts[True], counts[False], tuple(arrivals))


def _parse(pcap: Path, at_ns: int, frame: bytes, ip_bytes: int) -> tuple[bytes, Segment]:
    start = _ETHERNET_BYTES + (frame[14] & 0xF) * 4
    try:
        seq, ack, offset_flags, window = _HEADER.unpack_from(frame, start + 4)
    except struct.error as error:
        raise ValueError(f"{pcap}: a TCP header was not captured") from error
    length = (offset_flags >> 12) * 4
    segment = Segment(
        at_ns, seq, ack, offset_flags & 0x1FF, window,
        ip_bytes - (start - _ETHERNET_BYTES) - length, ip_bytes,
        frame[start + 20 : start + length] if offset_flags & SYN else b"",
    )  # fmt: skip
    return frame[26:34] + frame[start : start + 4], segment


def _find_option(options: bytes, wanted: int) -> bytes | None:
    position = 0
    while position < len(options) and options[position]:
        if options[position] == 1:  # padding
            position += 1
            continue
        length = options[position + 1] if position + 1 < len(options) else 0
        if length < 2:
            return None
        if options[position] == wanted:
            return options[position + 2 : position + length]
        position += length
    return None


def behind(number: int, start: int) -> int:
    """How far a sequence number is behind ``start``; negative: before it (RFC 9293 section 3.4)."""
    distance = (number - start) & 0xFFFFFFFF
    return distance - (1 << 32) if distance >= _HALF else distance


def payloads(flow: Flow, *, by_client: bool) -> Iterator[tuple[int, Segment]]:
    """Segments of one side with payload, each with the offset of its first byte."""
    first = flow.syn if by_client else flow.synack
    if first is None:
        return
    for sender, segment in flow.segments:
        if sender == by_client and segment.payload > 0:
            offset = behind(segment.seq, first.seq) - (0 if segment.flags & SYN else 1)
            yield offset, segment
