"""Reuse of connections: who ended each, and after how many requests (RFC 9112 section 9).

The server may end a connection for one reason only: it has carried as many requests as it was
asked to.  Clients end theirs as they like.  The capture shows who was first, also where TLS hides
the requests, which the server's log counts.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import dpkt

from testbed.model import ServedConnection
from testbed.wire.tls import holds_alert

SYN, ACK, FIN, RST = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK, dpkt.tcp.TH_FIN, dpkt.tcp.TH_RST
HALF = 1 << 31
"""Of two sequence numbers one is behind the other if it is less than so far (RFC 9293 3.4)."""

Ends = tuple[str, str]
"""The client's end and the server's, each ``address:port``."""


@dataclass(slots=True)
class Ending:
    """How a connection came to its end.

    ``client_end`` is the sequence number at which the client began to end it, by FIN or by the
    alert with which TLS does (RFC 8446 section 6.1).  ``by_server`` says whether the server ended
    it by itself, ``None`` as long as it has not ended it at all.
    """

    opened: bool = False
    client_end: int | None = None
    reset: bool = False
    by_server: bool | None = None


def check_reuse(
    packets: Iterable[tuple[int, dpkt.ip.IP]],
    served: Sequence[ServedConnection],
    limit: int | None,
) -> Iterator[str]:
    """A sentence for each way in which connections were not kept as long as asked.

    ``packets`` are the capture's, as ``read_control`` gives them; ``served`` is what the server's
    log says.  ``limit`` is after how many requests the server is to end a connection; ``None``:
    never.
    """
    endings = read_endings(packets)
    known = {(one.client, one.server): one for one in served}
    counts = {ends: 0 for ends, ending in endings.items() if ending.by_server}
    counts |= {ends: one.requests for ends, one in known.items() if one.told_close}
    counts |= {ends: one.requests for ends, one in known.items() if ends in counts}
    asked = "no limit on requests per connection was asked"
    if limit is not None:
        asked = f"requests_per_connection = {limit}"
    early = {
        ends: requests
        for ends, requests in counts.items()
        if (limit is None or requests < limit) and not _excused(known.get(ends))
    }
    if early:
        (_, server), requests = next(iter(early.items()))
        yield (
            f"{asked}, but the server ended {len(early)} of {len(endings)} connections by itself, "
            f"the first to {server} after {requests} requests"
        )
    closing = [one for one in served if one.asked_close and (limit is None or one.requests < limit)]
    if closing:
        yield (
            f"{asked}, but the client asked to end {len(closing)} of {len(endings)} connections "
            f"with an answer, the first to {closing[0].server}"
        )


def read_endings(packets: Iterable[tuple[int, dpkt.ip.IP]]) -> dict[Ends, Ending]:
    """How each connection that the client opened came to its end, in the order of their SYNs."""
    found: dict[Ends, Ending] = {}
    for _, packet in packets:
        tcp = packet.data
        if not isinstance(tcp, dpkt.tcp.TCP):
            continue
        source = f"{socket.inet_ntoa(packet.src)}:{tcp.sport}"
        target = f"{socket.inet_ntoa(packet.dst)}:{tcp.dport}"
        if tcp.flags & (SYN | ACK) == SYN:
            found.setdefault((source, target), Ending())
        elif (source, target) in found:
            _note_client(found[source, target], tcp)
        elif (target, source) in found:
            _note_server(found[target, source], tcp)
    return found


def _excused(one: ServedConnection | None) -> bool:
    """Whether the client wanted that end, or a request brought it about that nobody recorded."""
    return one is not None and (one.asked_close or one.missed)


def _note_client(ending: Ending, tcp: dpkt.tcp.TCP) -> None:
    if tcp.flags & RST:
        ending.reset = True
    elif ending.client_end is None and (tcp.flags & FIN or holds_alert(bytes(tcp.data))):
        ending.client_end = int(tcp.seq)


def _note_server(ending: Ending, tcp: dpkt.tcp.TCP) -> None:
    if tcp.flags & SYN:
        ending.opened = True
    elif (
        tcp.flags & (FIN | RST) and ending.opened and not ending.reset and ending.by_server is None
    ):
        # Only the first counts: a server that is done with a connection resets what comes later,
        # such as the second acknowledgement of its FIN (RFC 9293 section 3.10.7.1).
        # An answer to the client's own end acknowledges that; else both ended it at once.
        end = ending.client_end
        ending.by_server = end is None or not 0 < (tcp.ack - end) % (1 << 32) < HALF
