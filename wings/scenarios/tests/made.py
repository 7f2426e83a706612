"""Packets and performances of scenarios that no kernel had to make."""

from __future__ import annotations

from socket import inet_aton

from testbed.capture.packets import Packet, read_frame
from testbed.capture.segments import Option, make_segment
from wings.scenarios.measurement import Arrival, Call, Passage, Performance
from wings.scenarios.words import ADDRESSES

COOKIE = bytes(range(8))
_ETHERNET = bytes(12) + b"\x08\x00"
_PORTS = {"client": 40_000, "server": 80}


def packet(
    sender: str,
    receiver: str,
    flags: int,
    *,
    at_ms: float = 0.0,
    seq: int = 0,
    ack: int = 0,
    options: tuple[Option, ...] = (),
    payload: bytes = b"",
) -> Packet:
    """A segment between two hosts, as captured."""
    ends = [(inet_aton(ADDRESSES[name]), _PORTS.get(name, 80)) for name in (sender, receiver)]
    made = make_segment(
        ends[0], ends[1], flags, seq=seq, ack=ack, options=options, payload=payload
    )  # fmt: skip
    frame = _ETHERNET + made
    return read_frame(round(at_ms * 1e6), frame, len(frame))


def carried(*packets: tuple[str, str, Packet]) -> tuple[Performance, dict[str, list[Packet]]]:
    """What a network made of packets (sender, receiver or "" if lost, packet), and its captures."""
    captures: dict[str, list[Packet]] = {name: [] for name in ADDRESSES}
    passages = []
    for sender, receiver, segment in packets:
        passage = Passage(sender, len(captures[sender]), segment.at_ns)
        captures[sender].append(segment)
        if receiver:
            passage.arrivals.append(Arrival(receiver, len(captures[receiver]), segment.at_ns))
            captures[receiver].append(segment)
        passages.append(passage)
    return Performance((), tuple(passages)), captures


def call(line: int, result: str) -> Call:
    """A call that had this result."""
    return Call(line, "client", "", 0, 0, result)
