"""Handshakes of TLS 1.3, over TCP and in QUIC: resumed or not, early data, groups (RFC 8446).

What stands in clear is read from the hellos; what the server told after that, and which records
were early data, the client's secrets tell.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from testbed.capture.flows import Flow, Flows, payloads
from testbed.capture.quic import ZERO_RTT, QuicConnection
from testbed.capture.quic_frames import join_start
from testbed.capture.quic_keys import (
    APPLICATION,
    EARLY,
    HANDSHAKE,
    MASTER,
    Keys,
    OldKeys,
    candidates,
    old_candidates,
)
from testbed.capture.tls import (
    APPLICATION_DATA,
    CERTIFICATE,
    CHANGE_CIPHER_SPEC,
    EARLY_DATA,
    ENCRYPTED_EXTENSIONS,
    NEW_TICKET,
    RANDOM_BYTES,
    RECORD_HEADER_BYTES,
    Hello,
    count_certificates,
    read_alpn,
    read_extensions,
    read_hello_record,
    read_messages,
    read_records,
    read_second,
    read_tickets,
    record_bytes,
)
from testbed.capture.tls import HANDSHAKE as HANDSHAKE_RECORD

_UPGRADE = b"\r\nConnection: Upgrade\r\n"
_START_BYTES = 1 << 16
"""So much of what an end sent is read for its handshake."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """How a connection that the client opened began.

    ``hellos`` are the client's, ``answer`` the server's last; ``None``: it has none.  ``accepted``
    says whether the server took early data, ``alpn`` which protocol it chose, and ``certificates``
    how many it sent, none where a session is resumed; ``None``: that cannot be told.
    ``early_bytes`` are those of records or of packets with early data.  Of QUIC ``early_requests``
    are the requests in it.  ``asked_ns`` is when the first request left, and ``hello_ns`` when the
    first hello had, of which a SYN carried ``syn_bytes``.  ``tickets`` are the places, first byte
    and end, of what the server told behind early data: tickets, no answer.  ``given`` are
    the tickets that it gave, by whether each is for early data; ``None``: the connection carried
    no request, or that cannot be told.
    """

    client: str
    server: str
    quic: bool
    began_ns: int
    hellos: tuple[Hello, ...]
    answer: Hello | None
    accepted: bool | None
    alpn: str | None
    certificates: int | None
    early_bytes: int
    early_requests: int
    asked_ns: int | None
    tickets: tuple[tuple[int, int], ...] = ()
    hello_ns: int | None = None
    syn_bytes: int = 0
    given: tuple[bool, ...] | None = None

    @property
    def name(self) -> str:
        """The connection's name in sentences."""
        return f"{'QUIC' if self.quic else 'TCP'} {self.client} to {self.server}"

    @property
    def hello_bytes(self) -> int:
        """The bytes of all hellos, with their record headers over TCP."""
        header = 0 if self.quic else RECORD_HEADER_BYTES
        return sum(hello.size + header for hello in self.hellos)

    @property
    def resumed(self) -> bool:
        """Whether the server took up a session that the client offered."""
        return self.answer is not None and self.answer.ticket

    @property
    def offers_early(self) -> bool:
        """Whether the client offers early data."""
        return any(hello.early_data for hello in self.hellos)


class OldSession(NamedTuple):
    """How a connection over TLS 1.2 began, by what is in clear (RFC 5246 section 7.3, RFC 5077).

    ``resumed``: the server sent no certificate behind its hello.  ``given``: it gave a ticket, and
    ``refused``: it finished without one that the client would take.
    """

    client: str
    server: str
    began_ns: int
    resumed: bool
    given: bool
    refused: bool

    @property
    def name(self) -> str:
        """The connection's name in sentences."""
        return f"TCP {self.client} to {self.server}"


def read_old_sessions(flows: Flows) -> tuple[OldSession, ...]:
    """Return the connections over TLS 1.2 whose handshake came to the second message."""
    found = []
    for flow in flows.flows:
        sent, told = (start_of(flow, by_client=by_client) for by_client in (True, False))
        hello, answer, second = read_hello_record(sent), read_hello_record(told), read_second(told)
        if hello is None or answer is None or answer.version != "1.2" or second is None:
            continue
        # Frames may be cut: what follows the client's finish begins a segment of its own.
        begins = {(p.payload[0], p.payload[RECORD_HEADER_BYTES : RECORD_HEADER_BYTES + 1])
                  for _, p in payloads(flow, by_client=False) if p.payload}  # fmt: skip
        given = second == NEW_TICKET or (HANDSHAKE_RECORD, bytes((NEW_TICKET,))) in begins
        refused = any(kind == CHANGE_CIPHER_SPEC for kind, _ in begins) and not given
        begin = *flow.ends, flow.syn.at_ns
        refused = refused and hello.takes_tickets
        found.append(OldSession(*begin, second != CERTIFICATE, given, refused))
    return tuple(found)


def read_handshakes(
    flows: Flows,
    connections: Sequence[QuicConnection],
    secrets: Mapping[bytes, Mapping[str, bytes]],
) -> tuple[Handshake, ...]:
    """Return the handshakes of ``flows`` over TLS and of QUIC ``connections``, by their start."""
    over_tcp = (_of_flow(flow, secrets) for flow in flows.flows)
    found = [*filter(None, over_tcp), *(_of_quic(connection) for connection in connections)]
    return tuple(sorted(found, key=lambda handshake: handshake.began_ns))


def _of_quic(connection: QuicConnection) -> Handshake:
    early = [p for p in connection.packets if p.kind == ZERO_RTT]
    requests = {f.stream for packet in early for f in packet.requests if f.offset == 0}
    asked_ns = next(connection.asked_ns(), None)
    return Handshake(
        connection.client,
        connection.server,
        True,
        connection.began_ns,
        tuple(connection.hellos),
        connection.answer,
        *_told(connection.told),
        early_bytes=sum(packet.size for packet in early),
        early_requests=len(requests),
        asked_ns=asked_ns,
        hello_ns=connection.hello_ns,
        given=None if asked_ns is None else connection.tickets,
    )


def _of_flow(flow: Flow, secrets: Mapping[bytes, Mapping[str, bytes]]) -> Handshake | None:
    """Return the handshake of ``flow``; ``None``: its client does not begin with TLS."""
    sent = start_of(flow, by_client=True)
    hello = read_hello_record(sent)
    if hello is None:
        return None
    received = start_of(flow, by_client=False)
    known = secrets.get(hello.random, {})
    answer = read_hello_record(received)
    told = [record.content for record in _open_records(received, known.get(f"SERVER_{HANDSHAKE}"))]
    sealed = _open_records(sent, known.get(f"CLIENT_{EARLY}")) if hello.early_data else ()
    # EndOfEarlyData is a message of the handshake.
    early = list(takewhile(lambda record: record.kind == APPLICATION_DATA, sealed))
    # The first request is early data, or the first data behind the handshake.
    data = early or _open_records(sent, known.get(f"CLIENT_{APPLICATION}"))
    asked = next((record.begin for record in data), None)
    records = _told_behind(flow, known.get(f"SERVER_{APPLICATION}"), whole=bool(early))
    return Handshake(
        *(*flow.ends, False, flow.syn.at_ns, (hello,), answer),
        *_told(read_messages(b"".join(told)) if told else _read_clear(received)),
        early_bytes=sum(record.end - record.begin for record in early),
        early_requests=0,
        asked_ns=None if asked is None else _sent_ns(flow, asked),
        tickets=_places(records) if early else (),
        hello_ns=_sent_ns(flow, record_bytes(sent) - 1),
        syn_bytes=min(flow.syn.payload_bytes, record_bytes(sent)),
        given=None
        if asked is None or f"SERVER_{APPLICATION}" not in known
        else read_tickets(b"".join(record.content for record in records)),
    )


def read_sent(flow: Flow, secrets: Mapping[bytes, Mapping[str, bytes]]) -> int | None:
    """Return how many bytes a client sent in clear, or over HTTP/1.1 in TLS.

    ``None``: it cannot be told, or it is HTTP/2 or a WebSocket.
    """
    begin = start_of(flow, by_client=True)
    hello = read_hello_record(begin)
    if hello is None:
        sent = payloads(flow, by_client=True)
        size = max((offset + packet.payload_bytes for offset, packet in sent), default=0)
        return None if _UPGRADE in begin else size
    texts = list(read_data(flow, secrets, by_client=True))
    if not texts or texts[0].startswith(b"PRI * HTTP/2") or _UPGRADE in texts[0]:
        return None
    return sum(map(len, texts))


def _told(messages: Mapping[int, bytes]) -> tuple[bool | None, str | None, int | None]:
    """Whether the server took early data, its protocol and certificates, if messages are open."""
    block, chain = messages.get(ENCRYPTED_EXTENSIONS), messages.get(CERTIFICATE, b"")
    if block is None:
        return None, None, count_certificates(chain, old=True) if chain else None
    extensions = dict(read_extensions(block))
    alpn = next(iter(read_alpn(extensions)), "")
    return EARLY_DATA in extensions, alpn, count_certificates(chain)


def _read_clear(stream: bytes) -> dict[int, bytes]:
    """The messages of a handshake that TLS 1.2 does not hide, or TLS 1.3."""
    clear = takewhile(lambda each: each[0] == HANDSHAKE_RECORD, read_records(stream))
    return read_messages(b"".join(content for _, _, content in clear))


def start_of(flow: Flow, *, by_client: bool, most: int = _START_BYTES) -> bytes:
    """The beginning of what one end sent, up to the first hole."""
    sent = payloads(flow, by_client=by_client)
    return join_start(((offset, packet.payload) for offset, packet in sent), most)


class _Record(NamedTuple):
    """A record that was opened: its first byte and its end, its type, and what it hides."""

    begin: int
    end: int
    kind: int
    content: bytes


def read_data(
    flow: Flow, secrets: Mapping[bytes, Mapping[str, bytes]], *, by_client: bool
) -> Iterator[bytes]:
    """Yield what one end's records with application data hide, up to the first hole."""
    stream = start_of(flow, by_client=by_client, most=sys.maxsize)
    hellos = [read_hello_record(start_of(flow, by_client=of)) for of in (False, True)]
    randoms = b"".join(hello.random for hello in hellos if hello is not None)
    known = secrets.get(randoms[-RANDOM_BYTES:], {})
    labels = (
        [f"CLIENT_{EARLY}", f"CLIENT_{APPLICATION}"] if by_client else [f"SERVER_{APPLICATION}"]
    )
    for label in (*labels, MASTER):
        if secret := known.get(label):
            old = label == MASTER
            ways = old_candidates(secret, randoms, by_client=by_client) if old else []
            records = _open_records(stream, secret, ways)
            yield from (each.content for each in records if each.kind == APPLICATION_DATA)


def _open_records(
    stream: bytes, secret: bytes | None, old: Sequence[OldKeys] = ()
) -> Iterator[_Record]:
    """Yield the records of ``stream`` that ``secret`` or ``old`` keys open: one run of them."""
    ways: Sequence[Keys | OldKeys] = old or (candidates(secret, prefix="") if secret else ())
    number = position = 0
    for kind, size, content in read_records(stream):
        begin, position = position, position + RECORD_HEADER_BYTES + size
        if kind == CHANGE_CIPHER_SPEC or len(content) != size:
            continue
        header = stream[begin : begin + RECORD_HEADER_BYTES]
        opened = [(keys, plain) for keys in ways
                  if (plain := keys.open(number, content, header)) is not None]  # fmt: skip
        if opened:
            (keys, plain), *_ = opened
            ways, number, inner = [keys], number + 1, plain.rstrip(b"\0")
            yield _Record(begin, position, int.from_bytes(inner[-1:]), inner[:-1])
        elif number:
            return


def _told_behind(flow: Flow, secret: bytes | None, *, whole: bool) -> list[_Record]:
    """What the server told behind its handshake, up to its first answer or in the ``whole`` flow.

    An answer to early data comes before its tickets.
    """
    most = sys.maxsize if whole else _START_BYTES
    records = _open_records(start_of(flow, by_client=False, most=most), secret)
    first = records if whole else takewhile(lambda each: each.kind == HANDSHAKE_RECORD, records)
    return [record for record in first if record.kind == HANDSHAKE_RECORD]


def _places(records: Sequence[_Record]) -> tuple[tuple[int, int], ...]:
    """Where each run of ``records`` begins and ends."""
    found: list[tuple[int, int]] = []
    for record in records:
        joins = bool(found) and found[-1][1] == record.begin
        found.append((found.pop()[0] if joins else record.begin, record.end))
    return tuple(found)


def _sent_ns(flow: Flow, place: int) -> int | None:
    """When the byte at ``place`` of the client's was sent first."""
    return next(
        (
            packet.at_ns
            for offset, packet in payloads(flow, by_client=True)
            if offset <= place < offset + packet.payload_bytes
        ),
        None,
    )
