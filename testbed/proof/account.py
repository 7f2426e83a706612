"""Account of a load: what each of its milliseconds was spent on, from its end back to its start.

A packet came because it was sent: its time on the link is propagation, the line, and what it waited
before the line.  A server sends because something came on that connection, a client because
something came on any.  So the load's end leads back, from packet to packet, to its first one: that
is its critical path, and its stretches add up to the load time.  Where nothing that came made an
end send, something else did: a loss, a timer, a think time, a gap of the page.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from testbed.capture.lookups import DNS_PORT
from testbed.capture.packets import FIN, SYN, Packet, behind
from testbed.capture.tls import record_bytes
from testbed.capture.transits import Transit, Transits, line_us
from testbed.model import LinkSpec
from testbed.model.impairments import ways
from testbed.model.owners import (
    CLIENT,
    LINE,
    LOOK_UP,
    OWNERS,
    QUEUE,
    RECOVERY,
    REQUEST,
    SERVER,
    TCP,
    TLS,
    WINDOW,
)
from testbed.proof.evidence import Evidence

_LONG_HEADER = 0x80
"""Of QUIC's packets those of its handshake have it (RFC 9000 section 17.2)."""
_HANDSHAKE_RECORD = b"\x16"
ORDER_NS = 20_000
"""A client may tell of an end so much before the capture has its last packet."""


class Stretch(NamedTuple):
    """A part of a load's time: from when to when, whose it is, and by which packet.

    What an end waited before it sent has the packet that it sent then, where it sent one.
    """

    since_ns: int
    until_ns: int
    owner: str
    packet: Packet | None = None

    @property
    def ms(self) -> float:
        """How long it is, in ms."""
        return (self.until_ns - self.since_ns) / 1e6


@dataclass(frozen=True, slots=True)
class LoadAccount:
    """The stretches of a load in their order, each beginning where the one before it ended."""

    stretches: tuple[Stretch, ...]

    def by_owner(self) -> dict[str, float]:
        """Return the ms of each owner that has any, in the order of ``OWNERS``."""
        spent = Counter[str]()
        for stretch in self.stretches:
            spent[stretch.owner] += stretch.until_ns - stretch.since_ns
        return {owner: spent[owner] / 1e6 for owner in OWNERS if spent[owner]}

    def handshakes(self) -> tuple[bytes, ...]:
        """Return the servers whose TCP handshakes the load waited for, in their order."""
        syns = (s.packet for s in self.stretches if s.owner == TCP and s.packet is not None)
        return tuple(dict.fromkeys(p.target for p in syns if p.opens))


_Connection = tuple[str, int, bytes, int]
"""Protocol, the client's port, the server's address and port."""


class _Way:
    """The packets of one direction, by when they came: of each connection and of all."""

    def __init__(self, transits: Sequence[Transit], link: LinkSpec, name: str) -> None:
        self.transits, self.name = transits, name
        self.delay_ns = round(ways(link)[name].delay_ms * 1e6)
        self.line_ns = [round(line_us(t.ip_bytes, link, name) * 1e3) for t in transits]
        self._came: defaultdict[_Connection | None, list[tuple[int, int]]] = defaultdict(list)
        self._first: dict[tuple[_Connection, int], int] = {}
        self._hello_ends: dict[_Connection, int] = {}
        for place, transit in enumerate(transits):
            connection = self.connection(place)
            if transit.came_ns is not None:
                for key in (None, connection):
                    self._came[key].append((transit.came_ns, place))
            if self._is_sent_again(place):
                self._first.setdefault((connection, self.packet(place).seq), place)
                self._note_hello(connection, self.packet(place))
        for came in self._came.values():
            came.sort()
        self._busy_ns = [0, *accumulate(self.line_ns[place] for _, place in self._came[None])]

    def packet(self, place: int) -> Packet:
        return self.transits[place].sent

    def came_ns(self, place: int) -> int:
        """Return when a packet came that did."""
        return self.transits[place].came_ns or 0

    def connection(self, place: int) -> _Connection:
        p = self.packet(place)
        if self.name == "up":
            return p.protocol, p.source_port, p.target, p.target_port
        return p.protocol, p.target_port, p.source, p.source_port

    def last_before(self, at_ns: int, connection: _Connection | None = None) -> int | None:
        """Return the packet that came last until ``at_ns``, on a connection or at all."""
        came = self._came[connection]
        index = bisect_right(came, (at_ns, len(self.transits))) - 1
        return came[index][1] if index >= 0 else None

    def first_of(self, place: int) -> int:
        """Return the first packet with the same bytes, which this one may be."""
        if not self._is_sent_again(place):
            return place
        return self._first[self.connection(place), self.packet(place).seq]

    def is_hello(self, place: int) -> bool:
        """Return whether it brings some of a hello, or of a handshake in clear (RFC 8446)."""
        packet, end = self.packet(place), self._hello_ends.get(self.connection(place))
        in_hello = end is not None and behind(packet.seq, end) < 0
        return in_hello or packet.payload.startswith(_HANDSHAKE_RECORD)

    def _note_hello(self, connection: _Connection, packet: Packet) -> None:
        if packet.payload.startswith(_HANDSHAKE_RECORD) and connection not in self._hello_ends:
            size = record_bytes(packet.payload)
            self._hello_ends[connection] = packet.seq + bool(packet.flags & SYN) + size

    def crossing(self, place: int, reason: str) -> Iterator[Stretch]:
        """Yield the stretches of one packet on the link, the last one first."""
        packet, sent_ns, came_ns = (
            self.packet(place),
            self.transits[place].sent_ns,
            self.came_ns(place),
        )
        on_line_ns = max(sent_ns, came_ns - self.delay_ns)
        yield Stretch(on_line_ns, came_ns, reason, packet)
        came = self._came[None]
        first = bisect_left(came, (sent_ns + self.delay_ns, 0))
        last = bisect_left(came, (came_ns, place)) + 1
        begun_ns = max(
            sent_ns, on_line_ns - (self._busy_ns[last] - self._busy_ns[min(first, last)])
        )
        yield Stretch(begun_ns, on_line_ns, LINE, packet)
        yield Stretch(sent_ns, begun_ns, QUEUE, packet)

    def _is_sent_again(self, place: int) -> bool:
        """Whether TCP sends it again until it is acknowledged."""
        packet = self.packet(place)
        carries = packet.payload_bytes or packet.flags & (SYN | FIN)
        return packet.protocol == "TCP" and bool(carries)


@lru_cache(maxsize=1)
def read_account(seen: Evidence) -> LoadAccount | None:
    """Return the account of the load that counts; ``None``: there is none.

    In real time ends take time of their own, and a command tells of no start.  That a load ended
    before anything came is for the checks of load times to say.
    """
    if not (seen.virtual_time and seen.transits and seen.load.requests):
        return None
    visit = seen.visits[-1]
    began_ns = visit.zero_ns(seen.capture, seen.clients)
    if began_ns is None:
        return None
    ended_ns = began_ns + round(visit.load.plt_ms * 1e6)
    try:
        return account_of(seen.transits, seen.link, began_ns, ended_ns)
    except ValueError:
        return None


def account_of(transits: Transits, link: LinkSpec, began_ns: int, ended_ns: int) -> LoadAccount:
    """Return the account of a load between two moments of the client's capture.

    Raises:
        ValueError: nothing came down, or a server sent before anything came.
    """
    up, down = (_Way(transits[name], link, name) for name in ("up", "down"))
    stretches = [s for s in _back(up, down, began_ns, ended_ns) if s.until_ns > began_ns]
    cut = (s._replace(since_ns=max(s.since_ns, began_ns)) for s in reversed(stretches))
    return LoadAccount(tuple(s for s in cut if s.until_ns > s.since_ns))


def _back(up: _Way, down: _Way, began_ns: int, ended_ns: int) -> Iterator[Stretch]:
    """Yield the stretches of the critical path from a load's end to its start."""
    answer = down.last_before(ended_ns + ORDER_NS)
    while answer is not None and not down.packet(answer).payload_bytes:
        answer = down.last_before(down.came_ns(answer) - 1)
    if answer is None:
        raise ValueError("no data came down the link")
    until_ns, sent = ended_ns, None
    while answer is not None:
        yield Stretch(down.came_ns(answer), until_ns, CLIENT, sent)
        first = down.first_of(answer)
        sent_ns = down.transits[first].sent_ns
        asked = up.last_before(sent_ns, down.connection(answer))
        if asked is None:
            raise ValueError("a server sent before anything came")
        reason = _reason(up, asked)
        yield from down.crossing(answer, reason)
        yield Stretch(sent_ns, down.transits[answer].sent_ns, RECOVERY, down.packet(answer))
        yield Stretch(up.came_ns(asked), sent_ns, SERVER, down.packet(first))
        yield from up.crossing(asked, reason)
        first = up.first_of(asked)
        until_ns, sent = up.transits[first].sent_ns, up.packet(first)
        yield Stretch(until_ns, up.transits[asked].sent_ns, RECOVERY, up.packet(asked))
        answer = down.last_before(until_ns) if until_ns > began_ns else None
    yield Stretch(began_ns, until_ns, CLIENT, sent)


def _reason(way: _Way, asked: int) -> str:
    """Return why a packet that an answer waited for had to cross the link."""
    up = way.packet(asked)
    if up.target_port == DNS_PORT:
        return LOOK_UP
    if up.protocol != "TCP":
        return TLS if up.payload and up.payload[0] & _LONG_HEADER else REQUEST
    if up.payload_bytes:
        return TLS if way.is_hello(asked) else REQUEST
    return TCP if up.flags & SYN else WINDOW
