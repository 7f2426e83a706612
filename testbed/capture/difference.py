"""The first packet in which two captures differ: in order, in content, and in time.

Packets are compared as their ends mean them: whatever every boot chooses anew does not count.
Times drift by nanoseconds long before anything else does, and say little.  What tells where two
loads took different ways is the first packet that is another one, or that comes as itself but a
round trip sooner.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import NamedTuple

from testbed.capture.packets import Capture
from testbed.capture.relative import RelativePacket, relative_packets

CONTEXT = 3
"""So many packets before the difference are kept."""
ORDER = ("protocol", "sender", "connection", "endpoint", "kind", "seq", "ack", "length", "quic")
CONTENT = ("flags", "window", "options", "traffic_class", "payload")
ANOTHER = frozenset(("protocol", "sender", "connection", "endpoint"))
"""What makes it a packet of something else, of which other numbers say nothing."""
MISSING = "missing"
JUMP_NS = 1_000_000
"""A packet that moves by so much against the one before it was waited for: more than drift."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A packet that differs between two captures."""

    base: RelativePacket | None
    """The packet in the base; null where its capture has ended."""
    new: RelativePacket | None
    """The packet in the new results; null where their capture has ended."""
    fields: tuple[str, ...]
    """The names of the packet's fields that differ, or `missing`."""
    before: tuple[RelativePacket, ...]
    """The packets before it, as they are in the base."""

    @property
    def number(self) -> int:
        """The packet's place in the capture, from 1."""
        packet = self.base or self.new
        return packet.number if packet else 0

    @property
    def later_ns(self) -> int | None:
        """How much later the packet comes in the new capture, if it is in both."""
        return self.new.time_ns - self.base.time_ns if self.base and self.new else None


@dataclass(frozen=True, slots=True)
class PacketDifference:
    """Where two captures differ first, in each of four ways; at least one is given."""

    order: Spot | None
    """Where another packet comes, or none; nothing is compared after it."""
    content: Spot | None
    """Where the same packet has other contents."""
    time: Spot | None
    """Where the same packet comes at another time since the first SYN."""
    base_packets: int
    """How many packets the base's capture has."""
    new_packets: int
    """How many packets the new capture has."""
    jump: Spot | None = None
    """Where the same packet moves by 1 ms or more against the packet before it."""

    @property
    def telling(self) -> Spot:
        """The most telling spot: the first change of order or jump in time, else any difference.

        Raises:
            ValueError: nothing differs, which makes no difference.
        """
        partings = [spot for spot in (self.order, self.jump) if spot is not None]
        spot = min(
            partings, key=lambda candidate: candidate.number, default=self.content or self.time
        )
        if spot is None:
            raise ValueError("a difference without a packet that differs")
        return spot


def first_difference(base: Capture, new: Capture) -> PacketDifference | None:
    """Go through two captures in step; ``None``: they hold the same packets at the same times.

    Times are compared to the nanosecond and count from the first SYN.
    """
    before: deque[RelativePacket] = deque(maxlen=CONTEXT)
    spots: dict[str, Spot] = {}
    later_ns = 0
    for base_packet, new_packet in zip_longest(relative_packets(base), relative_packets(new)):
        if base_packet is None or new_packet is None:
            spots["order"] = Spot(base_packet, new_packet, (MISSING,), tuple(before))
            break
        fields = _differing(base_packet, new_packet)
        if fields:
            spot = Spot(base_packet, new_packet, fields, tuple(before))
            for way in _ways(spot, later_ns):
                spots.setdefault(way, spot)
            if "order" in spots:
                break
        later_ns = new_packet.time_ns - base_packet.time_ns
        before.append(base_packet)
    if not spots:
        return None
    return PacketDifference(
        spots.get("order"),
        spots.get("content"),
        spots.get("time"),
        len(base.packets),
        len(new.packets),
        spots.get("jump"),
    )


class Shifts(NamedTuple):
    """By how many ns each packet comes later in a new capture, up to the first that is another.

    ``whole``: there is none.  ``asked``: there the clients open a connection, send data or look up
    an address in both captures, and the packets differ.  Times count from the first SYN.
    """

    later_ns: tuple[int, ...]
    whole: bool = False
    asked: bool = False


def read_shifts(base: Capture, new: Capture) -> Shifts:
    """Return how the packets that are the same in order and in contents moved."""
    later_ns: list[int] = []
    for base_packet, new_packet in zip_longest(relative_packets(base), relative_packets(new)):
        if base_packet is None or new_packet is None:
            return Shifts(tuple(later_ns))
        if {*_differing(base_packet, new_packet)} - {"time_ns"}:
            asked = _asks(base_packet) and _asks(new_packet)
            return Shifts(tuple(later_ns), asked=asked)
        later_ns.append(new_packet.time_ns - base_packet.time_ns)
    return Shifts(tuple(later_ns), whole=True)


def is_asked_otherwise(base: Capture, new: Capture, difference: PacketDifference | None) -> bool:
    """Return whether the client's data differs in a packet in the same place in both.

    ``difference`` is that of the two captures.  Once their order differs, places no longer
    correspond, and the rest is not compared.
    """
    order = difference.order if difference is not None else None
    steps = zip(relative_packets(base), relative_packets(new), strict=False)
    return any(
        base_packet.sender == new_packet.sender == "client"
        and base_packet.length and new_packet.length
        and base_packet.payload != new_packet.payload
        for base_packet, new_packet in islice(steps, order.number if order is not None else None)
    )  # fmt: skip


def describe_difference(difference: PacketDifference) -> str:
    """Return the difference in lines as tcpdump would show them, under a sentence or two."""
    telling = difference.telling
    lines = [_headline(difference), *(_line("both", packet) for packet in telling.before)]
    lines += [_line("base", telling.base), _line("new", telling.new)]
    others = [
        (spot.number, f"  {words} at packet {spot.number}: {say(spot)}.")
        for spot, words, say in (
            (difference.order, "The order first differs", _content),
            (difference.jump, "The first jump in time is", _lateness),
            (difference.content, "Contents first differ", _content),
            (difference.time, "Times first differ", _lateness),
        )
        if spot is not None and spot is not telling
    ]
    return "\n".join([*lines, *(text for _, text in sorted(others))])


def _ways(spot: Spot, before_ns: int) -> list[str]:
    """In which ways a packet that is in both captures differs; the one before it by so much."""
    fields = set(spot.fields)
    if not fields.isdisjoint(ORDER):
        return ["order"]
    ways = [] if fields.isdisjoint(CONTENT) else ["content"]
    ways += ["time"] if "time_ns" in fields else []
    return ways + (["jump"] if abs((spot.later_ns or 0) - before_ns) >= JUMP_NS else [])


def _differing(base_packet: RelativePacket, new_packet: RelativePacket) -> tuple[str, ...]:
    names = (*ORDER, *CONTENT, "time_ns")
    return tuple(name for name in names if getattr(base_packet, name) != getattr(new_packet, name))


def _asks(packet: RelativePacket) -> bool:
    wants = "S" in packet.flags or packet.length > 0
    return packet.sender == "client" and wants and packet.protocol in ("TCP", "UDP")


def _headline(difference: PacketDifference) -> str:
    spot = difference.telling
    counts = f"{difference.base_packets} in base, {difference.new_packets} in new"
    if spot.base is None or spot.new is None:
        which, more = ("base", "new") if spot.base is None else ("new", "base")
        return f"The {which} capture ends before packet {spot.number}, {more} goes on ({counts})."
    place = f"packet {spot.number}"
    if spot is difference.order:
        return f"The captures part at {place} ({counts}): {_content(spot)}."
    if spot is difference.jump:
        return f"The same packets ({counts}), until {place} comes {_lateness(spot)}."
    if spot is difference.content:
        return f"The same packets in the same order ({counts}), but for {place}: {_content(spot)}."
    return f"The same packets ({counts}); times differ from {place} on: {_lateness(spot)}."


def _lateness(spot: Spot) -> str:
    later_ns = spot.later_ns or 0
    return f"{_duration(abs(later_ns))} {'later' if later_ns >= 0 else 'sooner'} in new"


def _content(spot: Spot) -> str:
    """What differs but for the time, with both values."""
    if MISSING in spot.fields:
        return f"it is only in {'new' if spot.base is None else 'base'}"
    if spot.base and spot.new and not ANOTHER.isdisjoint(spot.fields):
        return "another packet comes"
    parts = []
    for name in spot.fields:
        if name in ("time_ns", "kind"):  # other flags say the latter
            continue
        base, new = (_value(getattr(packet, name)) for packet in (spot.base, spot.new))
        values = f"{name.replace('_', ' ')} {base} in base and {new} in new"
        parts.append("other payload" if name == "payload" else values)
    return "; ".join(parts)


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]" if value else "none"
    return str(value) or "none"


def _duration(nanoseconds: int) -> str:
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.6g} {unit}"
    return f"{nanoseconds} ns"


def _line(side: str, packet: RelativePacket | None) -> str:
    if packet is None:
        return f"  {side:<4} (no packet)"
    sign = "-" if packet.time_ns < 0 else "+"
    seconds, rest = divmod(abs(packet.time_ns), 1_000_000_000)
    return f"  {side:<4} #{packet.number:<5} {sign}{seconds}.{rest:09d} s  {_sentence(packet)}"


def _sentence(packet: RelativePacket) -> str:
    client, server = f"client.{packet.connection}", packet.endpoint
    way = f"{client} > {server}" if packet.sender == "client" else f"{server} > {client}"
    if packet.protocol == "UDP":
        named = f"QUIC [{', '.join(packet.quic)}]" if packet.quic else "UDP"
        return f"{way}: {named}, length {packet.length}"
    if packet.protocol != "TCP":
        return f"{packet.protocol} from the {packet.sender}, length {packet.length}"
    parts: list[str] = [f"Flags [{packet.flags}]"]
    if packet.length or set(packet.flags) & set("SF"):
        span = f"{packet.seq}:{packet.seq + packet.length}" if packet.length else f"{packet.seq}"
        parts.append(f"seq {span}")
    parts += [f"ack {packet.ack}"] * ("." in packet.flags) + [f"win {packet.window}"]
    parts += [f"options [{', '.join(packet.options)}]"] * bool(packet.options)
    return f"{way}: {', '.join([*parts, f'length {packet.length}'])}"
