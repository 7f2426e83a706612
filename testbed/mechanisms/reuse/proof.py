"""Reuse of connections: who ended each, and after how many requests (RFC 9112 section 9).

The server may end a connection for two reasons only: it has carried as many requests as it was
asked to, or was idle for ``KEPT_ALIVE_S``.  Clients end theirs as they like.  The capture shows who
was first, also where TLS hides the requests, which the server's log counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from testbed.base.addresses import format_address
from testbed.capture.flows import Flow, before_farewell
from testbed.capture.packets import FIN, RST, SYN, behind
from testbed.capture.tls import holds_alert
from testbed.client.page_coverage import list_silent, measure_coverage
from testbed.model.impairments import is_lossy
from testbed.proof.check import check
from testbed.proof.evidence import Evidence


@check("requests per connection", "application", "replay", "tcp")
def check_requests(seen: Evidence) -> Iterator[str]:
    """No connection carried more requests than asked, nor more than the server's log has.

    The log sees through TLS; the capture shows what is in plain text.
    """
    limit, most = seen.tcp.requests_per_connection, seen.replay.most_per_connection
    if limit is not None and most > limit:
        yield f"a connection carried {most} requests, asked was {limit} at the most"
    in_clear = max(seen.application.requests.values(), default=0)
    # A lossy link may take a request from the client and never hand it to the server.
    if (
        in_clear > most + _count_waiting(seen)
        and seen.has("own_client")
        and not (is_lossy(seen.link) or seen.link.changes)
    ):
        yield f"the capture shows {in_clear} requests on a connection, the server's log {most}"


@check("replay", "load", "served", "replay", "application", "tcp", "link")
def check_replay(seen: Evidence) -> Iterator[str]:
    """What the servers' log comes to is what it has of each connection, and of the page's archive.

    Of a connection in clear the capture shows how many requests it carried.
    """
    replay, counts = seen.replay, [each.requests for each in seen.served]
    spoken, answered = sum(replay.protocols.values()), replay.exact + len(replay.inexact)
    upgraded = len(replay.sockets) + len(replay.talks)
    if sum(counts) != spoken + upgraded or spoken > answered + len(replay.missed):
        yield f"the servers' log has {sum(counts)} requests, by protocol {spoken}"
    if not upgraded and max(counts, default=0) != replay.most_per_connection:
        yield f"most_per_connection is {replay.most_per_connection}, the log has {counts}"
    limit = seen.tcp.requests_per_connection
    if limit is None and not (is_lossy(seen.link) or seen.link.changes or seen.lost):
        logged, asked = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for each in seen.served:
            logged[each.client, each.server] += each.requests
        for ((source, port, target, far_port), _), times in seen.application.requests.items():
            asked[f"{format_address(source)}:{port}", f"{format_address(target)}:{far_port}"] += (
                times
            )
        waiting = _count_waiting(seen)
        for ends, times in asked.items():
            waiting -= max(0, times - logged[ends])
            if logged[ends] > times or waiting < 0:
                yield f"{ends[0]} asked {ends[1]} {times} times, logged are {logged[ends]}"
    if seen.has("archive") and replay.page is not None:
        page = measure_coverage(seen.archive, seen.load, replay)
        if page != replay.page:
            yield f"the load's coverage of the page is {page}, told is {replay.page}"


def _count_waiting(seen: Evidence) -> int:
    """Return how many requests had no answer, as recorded: a server logs what it has answered."""
    if not (seen.has("load") and seen.has("archive")):
        return 0
    silent = list_silent(seen.archive)
    return sum(each.url in silent for visit in seen.load.visits for each in visit.requests)


@check("reuse", "own_client", "flows", "served", "tcp", source="RFC 9112 section 9")
def check_reuse(seen: Evidence) -> Iterator[str]:
    """Connections were kept as long as asked: their server ended none before, nor did it say so."""
    flows, served, limit = seen.flows, seen.served, seen.tcp.requests_per_connection
    endings = {flow.ends: _is_ended_by_server(flow) for flow in flows.flows}
    by_ends = {(connection.client, connection.server): connection for connection in served}
    ended = [ends for ends, by_server in endings.items() if by_server]
    ended += [ends for ends, connection in by_ends.items() if connection.announced_close]
    setting = "no limit on requests per connection was asked"
    if limit is not None:
        setting = f"requests_per_connection = {limit}"
    early: dict[tuple[str, str], int] = {}
    for ends in ended:
        logged = by_ends.get(ends)
        requests = 0 if logged is None else logged.requests
        # The client may have asked for the end, or an unrecorded request caused it.
        excused = logged is not None and (logged.asked_close or logged.missed)
        if (limit is None or requests < limit) and not excused:
            early[ends] = requests
    if early:
        (_, server), requests = next(iter(early.items()))
        yield (
            f"{setting}, but the server ended {len(early)} of {len(endings)} connections by "
            f"itself, the first to {server} after {requests} requests"
        )
    closing = [
        connection
        for connection in served
        if connection.asked_close and (limit is None or connection.requests < limit)
    ]
    if closing:
        yield (
            f"{setting}, but the client asked to end {len(closing)} of {len(endings)} connections "
            f"with an answer, the first to {closing[0].server}"
        )


def _is_ended_by_server(flow: Flow) -> bool:
    """Whether the server ended the connection by itself, and not the client before it.

    A client begins to end one by RST, by FIN, or by the alert with which TLS does (RFC 8446
    section 6.1).
    """
    opened, client_end = False, None
    for by_client, packet in before_farewell(flow):
        if by_client:
            if packet.flags & RST:
                return False
            ends = packet.flags & FIN or holds_alert(packet.payload)
            if ends and client_end is None and not packet.opens:
                client_end = packet.seq
        elif packet.flags & SYN:
            opened = True
        elif opened and packet.flags & (FIN | RST):
            # Only the first counts: a server that is done with a connection resets what comes
            # later, such as the second acknowledgement of its FIN (RFC 9293 section 3.10.7.1).
            # An answer to the client's own end acknowledges that; else both ended it at once.
            return client_end is None or behind(packet.ack, client_end) <= 0
    return False
