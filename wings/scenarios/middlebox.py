"""Middlebox of a scenario: rules that lose, refuse, change, repeat or delay packets, a NAT, a farm.

Standard library only: this is what a guest executes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from testbed.base.addresses import pack_address
from testbed.capture.packets import SYN, Packet, find_option
from testbed.capture.segments import make_unreachable, options_of, with_ends, with_options
from wings.scenarios.words import OPTION_KINDS, address_of, describe_end, parse_flags, parse_time

_FIRST_PORT, _LAST_PORT = 1024, 65_535

End = tuple[bytes, int]


@dataclass(slots=True)
class Rule:
    """A rule of a script: what it does, to which packets, and how often it still does it."""

    verb: str
    sender: str
    receiver: str
    flags: int | None = None
    data: bool = False
    over: int = 0
    option: int | None = None
    left: int | None = None
    value: bytes = b""
    seconds: float = 0.0

    def takes(self, packet: Packet, sender: str, receiver: str) -> bool:
        """Return whether it is for ``packet``, and count that."""
        fits = (
            self.left != 0
            and (self.sender, self.receiver) == (sender, receiver)
            and self.flags in (None, packet.flags)
            and not (self.data and not packet.payload_bytes)
            and packet.ip_bytes > self.over
            and (self.option is None or find_option(packet, self.option) is not None)
        )
        if fits and self.left is not None:
            self.left -= 1
        return fits


@dataclass(slots=True)
class Middlebox:
    """The rules that hold, the NAT's mappings, the farm's connections, and the payload copied."""

    ip: str = "4"
    rules: list[Rule] = field(default_factory=list)
    clients: tuple[str, ...] = ()
    outside: bytes = b""
    mappings: dict[End, End] = field(default_factory=dict)
    servers: tuple[str, ...] = ()
    connections: dict[End, str] = field(default_factory=dict)
    copied: bytes = b""

    def obey(self, verb: str, words: tuple[str, ...], options: dict[str, str]) -> None:
        """Add a rule of a script, or take rules back."""
        if verb == "clear":
            self.rules.clear()
        elif verb == "forget":
            self.mappings.clear()
        elif verb == "nat":
            self.clients = words
            self.outside = pack_address(options.get("address", address_of("nat", self.ip)))
            self.mappings.clear()
        elif verb == "farm":
            self.servers = words
        else:
            self.rules.insert(0, _read_rule(verb, words, options))

    def pass_on(self, packet: Packet, sender: str) -> list[tuple[float, bytes]]:
        """Return what becomes of an IP packet (``packet.frame`` has it) that ``sender`` sent.

        These are its copies, each with how much later it goes on, in seconds; none is a loss.  What
        is refused goes back instead, as an ICMP message to its sender.
        """
        receiver = describe_end(packet.target) if packet.target else ""
        data = packet.frame[14:]
        delays = [0.0]
        for rule in self.rules if packet.protocol == "TCP" else ():
            if not rule.takes(packet, sender, receiver):
                continue
            if rule.verb == "drop":
                return []
            if rule.verb == "unreachable":
                router = pack_address(address_of("nat", self.ip))
                return [(0.0, make_unreachable(data, router))]
            if rule.verb == "repeat":
                delays.append(rule.seconds)
            elif rule.verb == "copy":
                self.copied += packet.payload
            elif rule.verb == "delay":
                delays = [delay + rule.seconds for delay in delays]
            else:
                data = _change(rule, data)
        translated = self._translate(packet, sender, data)
        return [] if translated is None else [(delay, translated) for delay in delays]

    def server_of(self, packet: Packet) -> str:
        """Return the server of the farm that the connection of ``packet`` goes to."""
        end = (packet.source, packet.source_port)
        if packet.opens and end not in self.connections:
            turn = len(self.connections) % len(self.servers)
            self.connections[end] = self.servers[turn]
        return self.connections.get(end, self.servers[0])

    def _translate(self, packet: Packet, sender: str, data: bytes) -> bytes | None:
        """Return ``data`` with the addresses that a NAT gives it; ``None``: it has no mapping."""
        if sender in self.clients:
            inside = (packet.source, packet.source_port)
            if inside not in self.mappings:
                if not packet.flags & SYN:
                    return None
                self.mappings[inside] = self._free_port(packet.source_port)
            return with_ends(data, source=self.mappings[inside])
        if packet.target == self.outside:
            outside = (packet.target, packet.target_port)
            back = next((i for i, o in self.mappings.items() if o == outside), None)
            return None if back is None else with_ends(data, target=back)
        return data

    def _free_port(self, wanted: int) -> End:
        taken = {port for _, port in self.mappings.values()}
        ports = (*range(wanted, _LAST_PORT + 1), *range(_FIRST_PORT, wanted))
        return self.outside, next(port for port in ports if port not in taken)


def _read_rule(verb: str, words: tuple[str, ...], options: dict[str, str]) -> Rule:
    at = words.index(">")
    what, behind = words[: at - 1], words[at + 2 :]
    flags = [bits for word in behind if (bits := parse_flags(word)) is not None]
    changed = {"strip": what[0] if what else "", "cookie": "fastopen"}.get(verb, "")
    return Rule(
        verb,
        words[at - 1],
        words[at + 1],
        flags[0] if flags else None,
        "data" in behind,
        int(options.get("over", 0)),
        OPTION_KINDS.get(options.get("option", changed)),
        int(options["times"]) if "times" in options else None,
        bytes.fromhex(what[0]) if verb == "cookie" else b"",
        parse_time(options.get("after") or options.get("by") or "10ms") or 0.0,
    )


def _change(rule: Rule, data: bytes) -> bytes:
    """Return ``data`` without the rule's option, or with another value of it."""
    options: Iterable[tuple[int, bytes]] = options_of(data)
    if rule.verb == "strip":
        return with_options(data, [option for option in options if option[0] != rule.option])
    changed = [(kind, rule.value if kind == rule.option else value) for kind, value in options]
    return with_options(data, changed)
