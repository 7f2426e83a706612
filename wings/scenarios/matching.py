"""Matching of a script with what happened: its calls' results, and its packets in the captures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.capture.flights import describe_flight
from testbed.capture.packets import FAST_OPEN, SYN, Packet, find_option
from wings.scenarios.measurement import Call, Performance
from wings.scenarios.script import LOST, REFUSED, TWICE, Expectation, Script, Segment
from wings.scenarios.words import ATTACKER, OPTION_KINDS, describe_end, describe_flags

_BASIC_FLAGS = 0x1F
_COMPARED = 0x17  # all of them but PSH
_AROUND_S, _AROUND = 0.01, 0.05

Captures = Mapping[str, Sequence[Packet]]
"""The packets of each capture, by whose it is."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A packet on its way, as captured at both ends; ``copies`` are by the host that got each.

    ``refusal`` is the ICMP message that told its sender, who got it, of an unreachable target.
    """

    sender: str
    packet: Packet
    copies: tuple[tuple[str, Packet], ...]
    refusal: tuple[str, Packet] | None = None

    @property
    def text(self) -> str:
        """The packet as a script has it."""
        return f"{self.sender} > {describe_end(self.packet.target)} {describe(self.packet)}"


def see(performance: Performance, captures: Captures) -> tuple[Sight, ...]:
    """Return every packet of a performance as its captures have it, in the order of sending.

    Raises:
        KeyError, IndexError: a capture lacks a packet.
    """
    sights = []
    for passage in performance.passages:
        sent = captures[passage.sender][passage.number]
        came = [(each.host, captures[each.host][each.number]) for each in passage.arrivals]
        copies = tuple(each for each in came if each[1].protocol == sent.protocol)
        refusal = next((each for each in came if each not in copies), None)
        sights.append(Sight(passage.sender, sent, copies, refusal))
    return tuple(sights)


def match_calls(script: Script, calls: Sequence[Call]) -> Iterator[str]:
    """Yield a sentence for each call whose result is not the expected one.

    An error, or a wait in vain, is never expected where the script says nothing.
    """
    for action, call in zip(script.actions, calls, strict=True):
        expected = action.expected
        failed = call.result == "nothing" or (call.result[:1] == "E" and call.result.isupper())
        if expected is None and failed:
            yield f"line {action.line}: {action.text}: ended with {call.result}"
        elif expected is not None and call.result != expected:
            yield f"line {action.line}: {action.text}: was {call.result}"


def match_packets(script: Script, sights: Sequence[Sight]) -> Iterator[str]:
    """Yield a sentence for the first TCP packet that is not as expected; none is left out."""
    reader = _Reader([sight for sight in sights if sight.packet.protocol == "TCP"])
    anything = False
    for expected in script.expectations:
        if expected.segment is None:
            anything = True
            continue
        for _ in range(expected.times):
            problem = reader.take(expected, skipping=anything)
            anything = False
            if problem is not None:
                yield f"line {expected.line}: {expected.text}: {problem}"
                return
    if not anything and reader.rest:
        first = reader.rest[0]
        yield f"after the script's last packet: {first.text}, {reader.when(first)}"


class _Reader:
    """The packets that have not been matched yet, and what those before them settled."""

    def __init__(self, sights: Sequence[Sight]) -> None:
        self.rest = list(sights)
        self._began_ns = sights[0].packet.at_ns if sights else 0
        self._before_ns: int | None = None
        self._first: dict[tuple[bytes, int], int] = {}
        self._granted: dict[str, bytes] = {}

    def when(self, sight: Sight) -> str:
        """Return the time of a packet since the first one, in words."""
        return f"at {(sight.packet.at_ns - self._began_ns) / 1e6:.1f} ms"

    def take(self, expected: Expectation, *, skipping: bool) -> str | None:
        """Take the next packet, or ``skipping`` the next that fits; return what is wrong."""
        if skipping:
            for place, sight in enumerate(self.rest):
                if self._wrong(expected, sight) is None:
                    for passed in self.rest[: place + 1]:
                        self._remember(passed)
                    del self.rest[: place + 1]
                    return None
                self._note(sight)
            return "no such packet follows"
        if not self.rest:
            return "there is no further packet"
        sight = self.rest.pop(0)
        problem = self._wrong(expected, sight)
        self._remember(sight)
        return problem and f"{problem}; the capture has {sight.text}, {self.when(sight)}"

    def _wrong(self, expected: Expectation, sight: Sight) -> str | None:
        """Return in which respect a packet is not the expected one; ``None``: it is."""
        assert expected.segment is not None  # noqa: S101  what skips is never looked up
        receivers = {describe_end(sight.packet.target), *(host for host, _ in sight.copies)}
        if sight.sender != expected.sender or expected.receiver not in receivers:
            return "another packet is next"
        problem = self._differs(expected.segment, sight.packet, sight.sender)
        if problem is not None:
            return problem
        if expected.after_s is not None and self._before_ns is not None:
            passed = (sight.packet.at_ns - self._before_ns) / 1e9
            if abs(passed - expected.after_s) > _AROUND_S + _AROUND * expected.after_s:
                return f"it came after {passed * 1000:.1f} ms"
        return self._arrives_otherwise(expected, sight)

    def _arrives_otherwise(self, expected: Expectation, sight: Sight) -> str | None:
        copies = {LOST: 0, REFUSED: 0, TWICE: 2}.get(str(expected.arriving), 1)
        told = sight.refusal is not None
        if told != (expected.arriving == REFUSED):
            return f"its sender was {'' if told else 'not '}told that its target cannot be reached"
        if len(sight.copies) != copies:
            return f"it arrived {_times(len(sight.copies))}"
        for _, copy in sight.copies:
            if isinstance(expected.arriving, Segment):
                problem = self._differs(expected.arriving, copy, sight.sender)
                if problem is not None:
                    return f"it arrived as {describe(copy)}: {problem}"
            elif _content(copy) != _content(sight.packet):
                return f"it arrived as {describe(copy)}"
        return None

    def _differs(self, segment: Segment, packet: Packet, sender: str) -> str | None:
        flags = packet.flags & _BASIC_FLAGS
        if (flags ^ segment.flags) & _COMPARED:
            return f"its flags are {describe_flags(flags)}"
        if segment.data is not None and packet.payload_bytes != segment.data:
            return f"it has {packet.payload_bytes} bytes of data"
        flight = describe_flight(packet.payload)
        if segment.tls is not None and flight != segment.tls:
            return f"its records of TLS are {flight or 'none'}"
        if not self._has_cookie(segment.cookie, packet, sender):
            return f"its Fast Open option is {describe_cookie(packet)}"
        if segment.ack is not None:
            first = self._first.get((packet.target, packet.target_port))
            acked = None if first is None else (packet.ack - first) & 0xFFFFFFFF
            if acked != segment.ack:
                return f"it acknowledges {acked}"
        for name in sorted(segment.having | segment.lacking):
            there = find_option(packet, OPTION_KINDS[name]) is not None
            if there != (name in segment.having):
                return f"it has {'an' if there else 'no'} option {name}"
        return None

    def _has_cookie(self, wanted: str, packet: Packet, sender: str) -> bool:
        cookie = find_option(packet, FAST_OPEN)
        fits = {"none": cookie is None, "any": True, "request": cookie == b"", "new": bool(cookie)}
        if wanted in fits:
            return fits[wanted]
        if wanted != "cached":
            return cookie == bytes.fromhex(wanted)
        known = self._granted.values() if sender == ATTACKER else (self._granted.get(sender),)
        return bool(cookie) and cookie in known

    def _remember(self, sight: Sight) -> None:
        self._note(sight)
        self._before_ns = sight.packet.at_ns

    def _note(self, sight: Sight) -> None:
        """Keep what later packets are relative to: first sequence numbers, and granted cookies."""
        for packet in (sight.packet, *(copy for _, copy in sight.copies)):
            if packet.flags & SYN:
                self._first[packet.source, packet.source_port] = packet.seq
        for host, copy in sight.copies:
            cookie = find_option(copy, FAST_OPEN)
            if cookie and not copy.opens:
                self._granted[host] = cookie


def describe(packet: Packet) -> str:
    """Return a packet as a script has it, without its ends."""
    parts = [describe_flags(packet.flags & _BASIC_FLAGS)]
    if packet.payload_bytes:
        parts.append(f"data={packet.payload_bytes}")
    if flight := describe_flight(packet.payload):
        parts.append(f"tls={flight}")
    if find_option(packet, FAST_OPEN) is not None:
        parts.append(f"cookie={describe_cookie(packet)}")
    return " ".join(parts)


def describe_cookie(packet: Packet) -> str:
    """Return a packet's Fast Open option: ``none``, ``request``, or its cookie in hexadecimal."""
    cookie = find_option(packet, FAST_OPEN)
    return "none" if cookie is None else cookie.hex() or "request"


def _content(packet: Packet) -> tuple[object, ...]:
    """Return what nothing on the way may change: not the ends, which a NAT translates."""
    return packet.flags, packet.seq, packet.ack, packet.window, packet.options, packet.payload


def _times(number: int) -> str:
    return {0: "nowhere", 1: "once", 2: "twice"}.get(number, f"{number} times")
