"""QUIC connections of a capture, their packets opened by the client's secrets (RFC 9000, RFC 9001).

A datagram holds one packet or several.  Initial packets are opened by keys that follow from what
they show, so that hellos can be read without any secret; of what cannot be opened it is known which
type it has.  Packets may be lost, come again or in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from testbed.capture.packets import Capture, Packet, is_quic
from testbed.capture.quic_frames import (
    ACK,
    CLOSE,
    CRYPTO,
    STREAM,
    Coverage,
    Frame,
    join_start,
    read_frames,
    read_number,
)
from testbed.capture.quic_keys import (
    APPLICATION,
    EARLY,
    HANDSHAKE,
    SAMPLE_BYTES,
    Keys,
    candidates,
    initial_keys,
)
from testbed.capture.tls import Hello, message_bytes, read_hello, read_messages, read_tickets

INITIAL, ZERO_RTT, HANDSHAKES, RETRY = _LONG = "initial", "0-rtt", "handshake", "retry"
ONE_RTT, NEGOTIATION = "1-rtt", "version-negotiation"
_SPACES = {INITIAL: INITIAL, HANDSHAKES: HANDSHAKES, ZERO_RTT: ONE_RTT, ONE_RTT: ONE_RTT}
"""Packets of a space are numbered together (RFC 9000 section 12.3)."""
_LABELS = {ZERO_RTT: EARLY, HANDSHAKES: HANDSHAKE, ONE_RTT: APPLICATION}
_IS_LONG, _KEY_PHASE = 0x80, 0x04
OTHER = 0x03
"""Bits of a stream's number that a request's does not have (RFC 9000 section 2.1)."""


class QuicPacket(NamedTuple):
    """A QUIC packet: its type, its number and frames if it could be opened, and its bytes.

    ``place`` is that of its datagram in the capture, from 1.
    """

    at_ns: int
    by_client: bool
    kind: str
    size: int
    number: int | None = None
    frames: tuple[Frame, ...] | None = None
    place: int = 0

    @property
    def space(self) -> str:
        """The packets with which it is numbered, by the type that they have in the end."""
        return _SPACES.get(self.kind, self.kind)

    @property
    def requests(self) -> Iterator[Frame]:
        """The frames of requests' streams (RFC 9114 section 6.1) in it."""
        frames = self.frames or ()
        return (f for f in frames if f.kind == STREAM and not f.stream & OTHER)

    @property
    def text(self) -> str:
        """The packet in words, such as ``1-rtt 7 stream 4 0:1200``."""
        frames = self.frames or ()
        spans = [
            f"{'crypto' if f.kind == CRYPTO else f'stream {f.stream}'} "
            f"{f.offset}:{f.offset + len(f.data)}"
            for f in frames
            if f.kind in (CRYPTO, STREAM)
        ]
        named = [word for kind, word in ((ACK, "ack"), (CLOSE, "close"))
                 if any(f.kind == kind for f in frames)]  # fmt: skip
        number = [] if self.number is None else [str(self.number)]
        return " ".join((self.kind, *number, *spans, *named))


class RawPacket(NamedTuple):
    """A packet as it is in its datagram; ``number_at`` is where its hidden number is."""

    at_ns: int
    by_client: bool
    kind: str
    version: int
    target: bytes
    source: bytes
    content: bytes
    number_at: int
    place: int = 0

    @property
    def named(self) -> tuple[int, bool, str, int]:
        """What is known of it without any key."""
        return self.at_ns, self.by_client, self.kind, len(self.content)


@dataclass(slots=True)
class QuicConnection:
    """A connection that the client opened, its packets in the order of the capture.

    ``hellos`` are the client's, ``answer`` is the server's, and ``told`` are the other messages of
    its handshake, by type, as far as they were captured and could be opened.  It gave
    ``tickets``, for early data or not.
    """

    client: str
    server: str
    began_ns: int
    packets: list[QuicPacket] = field(default_factory=list)
    versions: set[int] = field(default_factory=set)
    hellos: list[Hello] = field(default_factory=list)
    answer: Hello | None = None
    told: Mapping[int, bytes] = field(default_factory=dict)
    tickets: tuple[bool, ...] = ()

    @property
    def name(self) -> str:
        """The connection's name in sentences."""
        return f"QUIC {self.client} to {self.server}"

    @property
    def unopened(self) -> int:
        """How many packets are numbered and could not be opened."""
        return sum(1 for p in self.packets if p.frames is None and p.kind in _SPACES)

    @property
    def hello_ns(self) -> int | None:
        """When the last of the client's hellos left, for the first time."""
        reached = [
            (frame.offset + len(frame.data), -packet.at_ns)
            for packet in self.packets
            for frame in packet.frames or ()
            if packet.by_client and packet.kind == INITIAL and frame.kind == CRYPTO
        ]
        return -max(reached)[1] if reached else None

    def asked_ns(self) -> Iterator[int]:
        """Yield when new bytes of requests left (RFC 9114 section 6.1)."""
        return (at for at, stream in self.stream_bytes(by_client=True) if not stream & OTHER)

    def answered_ns(self) -> Iterator[int]:
        """Yield when new bytes of responses came."""
        return (at for at, stream in self.stream_bytes(by_client=False) if not stream & OTHER)

    def told_ns(self) -> Iterator[int]:
        """Yield when new bytes came that headers of responses may wait for (RFC 9204, 2.1.2)."""
        return (at for at, stream in self.stream_bytes(by_client=False) if stream & OTHER)

    def stream_bytes(self, *, by_client: bool) -> Iterator[tuple[int, int]]:
        """Yield time and stream of each packet that brought new bytes of one, or its new end."""
        covered: dict[int, Coverage] = {}
        ended: set[int] = set()
        for packet in self.packets:
            if packet.by_client != by_client or packet.frames is None:
                continue
            for frame in packet.frames:
                if frame.kind != STREAM:
                    continue
                reach = covered.setdefault(frame.stream, Coverage())
                is_new = reach.add(frame.offset, frame.offset + len(frame.data))
                if is_new or (frame.fin and frame.stream not in ended):
                    yield packet.at_ns, frame.stream
                if frame.fin:
                    ended.add(frame.stream)


def read_quic(
    capture: Capture, clients: Collection[bytes], secrets: Mapping[bytes, Mapping[str, bytes]]
) -> tuple[QuicConnection, ...]:
    """Return the connections of ``capture`` in their order.

    ``clients`` are the client's addresses, ``secrets`` those by the random of each hello.
    """
    readers: dict[tuple[str, str], _Reader] = {}
    ordered: list[_Reader] = []
    for place, packet in enumerate(capture.packets, 1):
        if not is_quic(packet):
            continue
        by_client = packet.source in clients
        ends = (packet.sender, packet.receiver)
        ends = ends if by_client else (ends[1], ends[0])
        raws = list(_split(packet, by_client))
        if ends not in readers and by_client and raws and raws[0].kind == ONE_RTT:
            # Nothing begins so: its client goes on from another port (RFC 9000 section 9), as
            # Chromium does where nothing comes back.  That its keys open it shows that it is so.
            earlier = [each for (_, server), each in readers.items() if server == ends[1]]
            if earlier:
                readers[ends] = earlier[-1]
        reader = readers.get(ends)
        if reader is None or (raws and reader.is_foreign(raws[0])):
            reader = readers[ends] = _Reader(QuicConnection(*ends, packet.at_ns))
            ordered.append(reader)
        reader.take([raw._replace(place=place) for raw in raws])
    return tuple(reader.finish(secrets) for reader in ordered)


class _Reader:
    """What reads one connection: first Initial packets, then what they tell how to open."""

    def __init__(self, connection: QuicConnection) -> None:
        self._connection = connection
        self._raws: list[RawPacket] = []
        self._ids: set[bytes] = set()
        self._initial: dict[bool, Keys] = {}
        self._largest: dict[tuple[bool, str], int] = {}
        self._crypto: dict[tuple[bool, str], list[Frame]] = {}

    def is_foreign(self, raw: RawPacket) -> bool:
        """Whether a packet opens another connection between the same ends."""
        return raw.by_client and raw.kind == INITIAL and raw.target not in self._ids

    def take(self, raws: list[RawPacket]) -> None:
        for raw in raws:
            self._raws.append(raw)
            if raw.version:
                self._connection.versions.add(raw.version)
            if not raw.by_client:
                self._ids.add(raw.source)
            elif not self._ids:
                self._ids.add(raw.target)
                self._initial = initial_keys(raw.target)
            if raw.kind == RETRY:
                self._initial = initial_keys(raw.source)

    def finish(self, secrets: Mapping[bytes, Mapping[str, bytes]]) -> QuicConnection:
        connection = self._connection
        opened = [
            self._open(raw, KeyRing([self._initial[raw.by_client]]))
            if raw.kind == INITIAL and self._initial else None for raw in self._raws
        ]  # fmt: skip
        connection.hellos, answers = self._hellos(by_client=True), self._hellos(by_client=False)
        connection.answer = answers[-1] if answers else None
        known = secrets.get(connection.hellos[0].random, {}) if connection.hellos else {}
        keyring = {
            (by_client, kind): KeyRing(candidates(known[name]))
            for by_client, end in ((True, "CLIENT"), (False, "SERVER"))
            for kind, label in _LABELS.items()
            if (name := f"{end}_{label}") in known
        }
        raws = self._raws
        sizes = {  # of connection ids, which short headers do not tell: what the other end chose
            by_client: max((len(r.source) for r in raws if r.by_client != by_client), default=0)
            for by_client in (True, False)
        }
        for raw, initial in zip(raws, opened, strict=True):
            ring = keyring.get((raw.by_client, raw.kind))
            made = initial
            if ring is not None:
                if raw.kind == ONE_RTT:
                    raw = raw._replace(number_at=1 + sizes[raw.by_client])
                made = self._open(raw, ring)
            connection.packets.append(made or QuicPacket(*raw.named, place=raw.place))
        connection.told = read_messages(self._crypto_of(HANDSHAKES, by_client=False))
        connection.tickets = read_tickets(self._crypto_of(ONE_RTT, by_client=False))
        return connection

    def _open(self, raw: RawPacket, ring: KeyRing) -> QuicPacket | None:
        place = raw.by_client, _SPACES[raw.kind]
        found = ring.open(raw, self._largest.get(place, -1))
        if found is None:
            return None
        number, plain = found
        self._largest[place] = max(number, self._largest.get(place, -1))
        try:
            frames = read_frames(plain)
        except ValueError:
            return None
        pieces = [frame for frame in frames if frame.kind == CRYPTO]
        if pieces:
            self._crypto.setdefault((raw.by_client, raw.kind), []).extend(pieces)
        return QuicPacket(*raw.named, number, frames, raw.place)

    def _hellos(self, *, by_client: bool) -> list[Hello]:
        """The hellos of one end; a second one follows where the server asked for it."""
        messages, hellos = self._crypto_of(INITIAL, by_client=by_client), []
        while (hello := read_hello(messages)) is not None:
            hellos.append(hello)
            messages = messages[message_bytes(messages) :]
        return hellos

    def _crypto_of(self, kind: str, *, by_client: bool) -> bytes:
        """The start of what CRYPTO frames of one end carry."""
        frames = self._crypto.get((by_client, kind), [])
        return join_start((frame.offset, frame.data) for frame in frames)


class KeyRing:
    """The keys of one end's packets of a type: of which cipher is found by trying."""

    def __init__(self, keys: list[Keys]) -> None:
        self._keys = keys
        self._phase = 0
        self._before: Keys | None = None

    def open(self, raw: RawPacket, largest: int) -> tuple[int, bytes] | None:
        """Return the number and the plain text of a packet; ``None``: the keys are of others."""
        for keys in self._keys:
            header = _unveil(keys, raw, largest)
            if header is None:
                return None
            phase, number, associated, content = header
            if raw.kind != ONE_RTT or phase == self._phase:
                plain = keys.open(number, content, associated)
                if plain is not None:
                    self._keys = [keys]
                    return number, plain
                continue
            newer = keys.updated()
            plain = newer.open(number, content, associated)
            if plain is not None:
                self._keys, self._before, self._phase = [newer], keys, phase
                return number, plain
            if self._before is not None:
                plain = self._before.open(number, content, associated)
                return None if plain is None else (number, plain)
        return None


def _unveil(keys: Keys, raw: RawPacket, largest: int) -> tuple[int, int, bytes, bytes] | None:
    """Return key phase, number, header and content (RFC 9001 section 5.4, RFC 9000 A.3)."""
    content, place = raw.content, raw.number_at
    sample = content[place + 4 : place + 4 + SAMPLE_BYTES]
    if len(sample) < SAMPLE_BYTES:
        return None
    mask = keys.mask(sample)
    first = content[0] ^ mask[0] & (0x0F if content[0] & _IS_LONG else 0x1F)
    size = (first & 3) + 1
    hidden = int.from_bytes(content[place : place + size]) ^ int.from_bytes(mask[1 : 1 + size])
    header = bytes((first,)) + content[1:place] + hidden.to_bytes(size)
    window = 1 << (8 * size)
    number = (largest + 1) & ~(window - 1) | hidden
    if number <= largest + 1 - window // 2 and number < (1 << 62) - window:
        number += window
    elif number > largest + 1 + window // 2 and number >= window:
        number -= window
    return first & _KEY_PHASE, number, header, content[place + size :]


def _split(packet: Packet, by_client: bool) -> Iterator[RawPacket]:
    """Yield the packets of a datagram, the last one cut where the datagram was."""
    rest = packet.payload
    while rest and rest[0] & (_IS_LONG | 0x40):
        if not rest[0] & _IS_LONG:
            yield RawPacket(packet.at_ns, by_client, ONE_RTT, 0, b"", b"", rest, 0)
            return
        try:
            version, kind = int.from_bytes(rest[1:5]), _LONG[rest[0] >> 4 & 3]
            position = 6 + rest[5]
            target, source_end = rest[6:position], position + 1 + rest[position]
            source, end = rest[position + 1 : source_end], len(rest)
            position = source_end
            if version and kind != RETRY:
                if kind == INITIAL:
                    size, position = read_number(rest, position)
                    position += size
                size, position = read_number(rest, position)
                end = position + size
        except IndexError:
            return
        yield RawPacket(
            *(packet.at_ns, by_client, kind if version else NEGOTIATION, version),
            *(target, source, rest[:end], position),
        )
        rest = rest[end:]
