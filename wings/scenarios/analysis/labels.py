"""Labels of packets in a ladder, in tcpdump's words; numbers count from the first byte."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.capture.flights import describe_flight
from testbed.capture.packets import (
    ACK,
    FAST_OPEN,
    FIN,
    RST,
    SYN,
    Packet,
    behind,
    find_option,
    read_options,
)
from wings.scenarios.words import ADDRESSES, OPTION_KINDS, describe_end

End = tuple[bytes, int]
OPTION_NAMES = {"mss": "MSS", "scale": "window scale", "sack": "SACK", "timestamps": "timestamps",
                "md5": "MD5", "fastopen": "Fast Open",
                "experimental": "experimental Fast Open"}  # fmt: skip
_BY_KIND = {kind: OPTION_NAMES[name] for name, kind in OPTION_KINDS.items()}
_COOKIE_BYTES = 8
_SHOWN_BYTES = 2


class Labels:
    """What is known of all connections: their numbers, their first bytes, and what was sent."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._numbers: dict[frozenset[End], int] = {}
        self._first: dict[tuple[End, End], int] = {}
        self._again: set[int] = set()
        self._sent: dict[tuple[End, End], list[tuple[int, int]]] = {}
        self.connections = 0

    def note(self, packet: Packet, copies: Sequence[Packet]) -> None:
        """Take a packet in, and what arrived of it, in the order of sending."""
        keys = [_ends(each) for each in (packet, *copies)]
        known = next((self._numbers[key] for key in keys if key in self._numbers), None)
        if known is None:
            self.connections += 1
            known = self.connections
        self._numbers |= dict.fromkeys(keys, known)
        for each in (packet, *copies):
            if each.flags & SYN:
                self._first[_way(each)] = each.seq
        used = packet.payload_bytes + bool(packet.flags & (SYN | FIN))
        if used:
            sent = self._sent.setdefault(_way(packet), [])
            if any(first <= packet.seq < last for first, last in sent):
                self._again.add(id(packet))
            sent.append((packet.seq, packet.seq + used))

    def connection_of(self, packet: Packet) -> int:
        """Return the number of its connection, from 1."""
        return self._numbers[_ends(packet)]

    def describe(self, packet: Packet) -> str:
        """Return the label: its connection's number if there are several, then what it is."""
        if packet.protocol != "TCP":
            return packet.protocol
        again = " (again)" if id(packet) in self._again else ""
        return f"{self._number(packet)}{self._describe(packet)}{again}"

    def kind_of(self, packet: Packet) -> str:
        """Return what is the same of packets that are alike: all but numbers that count on."""
        return self._describe(packet, acked="") if packet.protocol == "TCP" else packet.protocol

    def describe_change(self, packet: Packet, copy: Packet) -> str:
        """Return what a packet had become when it arrived; empty if it was still the same."""
        if packet.protocol != "TCP":
            return ""
        became = f"{self._number(packet)}{self._describe(copy)}"
        before, after = _options(packet), _options(copy)
        lost = [_BY_KIND.get(k, f"option {k}") for k, _ in before if k not in dict(after)]
        if lost:
            return f"{became}, {' and '.join(lost)} stripped"
        if before != after or (packet.flags, packet.payload) != (copy.flags, copy.payload):
            return became
        if packet.opens and packet.source != copy.source:
            return f"{became}, from {describe_end(copy.source)}"
        return ""

    def host_of(self, packet: Packet, sender: str) -> str:
        """Return the host that a packet is for, or one on the other side if it is for none."""
        name = describe_end(packet.target)
        if name in ADDRESSES:
            return name
        return "client" if sender.startswith("server") else "server"

    def _number(self, packet: Packet) -> str:
        return f"{self.connection_of(packet)}: " if self.connections > 1 else ""

    def _describe(self, packet: Packet, acked: str | None = None) -> str:
        flags = packet.flags
        acked = self._acked(packet) if acked is None else acked
        cookie = find_option(packet, FAST_OPEN)
        parts = []
        if flags & SYN:
            parts.append(f"SYN-ACK {acked}" if flags & ACK else "SYN")
        if flags & RST:
            parts.append("RST")
        if flags & FIN:
            parts.append("FIN")
        if cookie is not None:
            parts.append(_cookie(cookie))
        if find_option(packet, OPTION_KINDS["md5"]) is not None:
            parts.append("MD5")
        if packet.payload_bytes:
            flight = describe_flight(packet.payload).replace(",", ", ")
            parts.append(flight or f"data {packet.payload_bytes}")
        if flags & ACK and not flags & SYN:
            parts.append(f"ACK {acked}")
        return ", ".join(parts) or "no flags"

    def _acked(self, packet: Packet) -> str:
        source, target = _way(packet)
        first = self._first.get((target, source))
        return "?" if first is None else str(behind(packet.ack, first))


def _cookie(value: bytes) -> str:
    if not value:
        return "cookie request"
    size = "" if len(value) == _COOKIE_BYTES else f" ({len(value)} B)"
    return f"cookie {value[:_SHOWN_BYTES].hex()}…{size}"


def _options(packet: Packet) -> list[tuple[int, bytes]]:
    return [(kind or 0, data) for kind, data in read_options(packet.options)]


def _ends(packet: Packet) -> frozenset[End]:
    return frozenset(_way(packet))


def _way(packet: Packet) -> tuple[End, End]:
    return (packet.source, packet.source_port), (packet.target, packet.target_port)
