"""Packing by servers: responses leave in segments and in TLS records as full as they can be.

nginx gathers the head of a response and the first bytes of its file in one segment (tcp_nopush), so
in clear text only the last segment of a response is short.  Over TLS it fills records of 16 KiB
(ssl_buffer_size), and frames of HTTP/2 of 8 KiB (http2_chunk_size).  What the servers of the lab
are told beside that would change them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from sys import maxsize
from urllib.parse import urlsplit

from testbed.base.addresses import format_address
from testbed.capture.application import METHODS
from testbed.capture.flows import Flow, payloads, speaks_tls
from testbed.capture.handshakes import start_of
from testbed.capture.http2 import (
    DATA,
    END_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Http2Connection,
    read_settings,
)
from testbed.capture.tls import APPLICATION_DATA, read_records
from testbed.client.page_coverage import without_fragment
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

RECORD_BYTES = 16_384
"""nginx's ssl_buffer_size, and the most that a record may hold (RFC 8446 section 5.1)."""
FRAME_BYTES = 8192
"""nginx's http2_chunk_size."""
_FIRST_WINDOW, _INITIAL_WINDOW_SIZE = 65_535, 4
FILE_BYTES = 32_768
"""So much of a file nginx reads at a time (output_buffers)."""
CONTROLS = 2
"""What a server says on a WebSocket besides messages: that it is open, and closed."""
SURE_BYTES = 3 * RECORD_BYTES
"""A response of that many bytes fills a record, wherever it begins."""


@check(
    "segments",
    "virtual_time",
    "load",
    "condition",
    "at_server",
    "undamaged",
    source="nginx: tcp_nopush",
)
def check_segments(seen: Evidence) -> Iterator[str]:
    """In clear text no more segments are short than there are responses, as servers sent them.

    A piece of a body that was recorded so, and a message of a WebSocket, is like a response.
    What is sent again may be cut anew, to a path that turned out to be narrower.
    """
    if seen.link.gso or seen.link.gro or seen.counted.get("down.too_long"):
        return  # what is captured then is no segment, or was cut once more
    short = [(flow, found) for flow in seen.flows_at_server.flows
             if not speaks_tls(flow) and (found := _surplus(flow)) > 0]  # fmt: skip
    if short and sum(surplus for _, surplus in short) > _count_pieces(seen):
        flow, surplus = max(short, key=lambda each: each[1])
        yield (
            f"servers of {len(short)} connections sent more short segments than responses, that of "
            f"{flow.syn.sender} {surplus} more"
        )


def _surplus(flow: Flow) -> int:
    """Return by how many the server's short segments are more than the client's requests."""
    asked = sum(p.payload.startswith(METHODS) for _, p in payloads(flow, by_client=True))
    sizes, reached = [], 0
    for offset, packet in payloads(flow, by_client=False):
        if offset >= reached:
            sizes.append(packet.payload_bytes)
            reached = offset + packet.payload_bytes
    short, longest = 0, 0
    # A path that turns out to be narrower makes all that follows shorter.
    for size in reversed(sizes):
        short, longest = short + (size < longest), max(size, longest)
    return short - asked


@check("records", "load", "condition", "flows", "hosts", source="nginx: ssl_buffer_size")
def check_records(seen: Evidence) -> Iterator[str]:
    """Over TLS long responses fill records."""
    if seen.condition.web_server == "aioquic":
        return
    longest, carried = defaultdict[str, int](int), defaultdict[str, int](int)
    for flow in seen.flows.flows:
        if speaks_tls(flow):
            address = format_address(flow.syn.target)
            host = seen.hosts.get(address, address)
            sent = start_of(flow, by_client=False, most=maxsize)
            sizes = [size for kind, size, _ in read_records(sent) if kind == APPLICATION_DATA]
            longest[host] = max(longest[host], *sizes, 0)
            carried[host] += sum(sizes)
    pieces = _pieces_by_url(seen)
    for request in seen.load.requests:
        if pieces.get(without_fragment(request.url)):
            continue
        host, size = urlsplit(request.url).hostname or "", request.transfer_bytes or 0
        if SURE_BYTES <= size <= carried[host] and longest[host] < RECORD_BYTES:
            yield (
                f"{host} sent {size} bytes of {request.url} in records of no more than "
                f"{longest[host]} bytes; they hold {RECORD_BYTES}"
            )
            return


@check("frames of HTTP/2", "http2", "condition", source="nginx: http2_chunk_size; RFC 9113, 6.9")
def check_data(seen: Evidence) -> Iterator[str]:
    """Over HTTP/2 DATA frames are as full as they can be, but for bodies that came in pieces."""
    other = [(each.name, *frame) for each in seen.http2 for frame in _other_frames(each)]
    if other and len(other) > _count_pieces(seen):
        name, stream, size = other[0]
        yield (
            f"servers sent {len(other)} DATA frames that are not as full as can be, the first on "
            f"stream {stream} of {name} with {size} bytes; they hold {FRAME_BYTES}"
        )


def _count_pieces(seen: Evidence) -> int:
    """Return how many pieces and messages there may be of what was recorded in such."""
    pieces = _pieces_by_url(seen)
    visits = seen.load.visits if seen.has("load") else ()
    asked = (request.url for visit in visits for request in visit.requests)
    messages = sum(CONTROLS + each.said for each in seen.replay.talks) if seen.has("replay") else 0
    return messages + sum(pieces.get(without_fragment(url), 0) for url in asked)


def _pieces_by_url(seen: Evidence) -> dict[str, int]:
    entries = seen.archive.entries if seen.has("archive") else ()
    return {entry.url: len(entry.pieces) for entry in entries if entry.pieces}


def _other_frames(connection: Http2Connection) -> Iterator[tuple[int, int]]:
    """Yield stream and size of each frame that neither is full nor ends with its response.

    A frame may also end where a window does, of its stream or of the connection, or what was read
    of a file.
    """
    firsts, more = {_FIRST_WINDOW}, defaultdict[int, list[int]](list)
    for frame in connection.asked:
        if frame.kind == SETTINGS:
            firsts |= {read_settings(frame.payload).get(_INITIAL_WINDOW_SIZE, _FIRST_WINDOW)}
        elif frame.kind == WINDOW_UPDATE:
            more[frame.stream].append(int.from_bytes(frame.payload) & 0x7FFF_FFFF)
    sent = defaultdict[int, int](int)
    for frame in (each for each in connection.answered if each.kind == DATA):
        size = len(frame.payload)
        sent[frame.stream] += size
        sent[0] += size
        windows = (
            (sent[of], accumulate((first, *more[of])))
            for of, begin in ((frame.stream, firsts), (0, {_FIRST_WINDOW}))
            for first in begin
        )
        full = size == FRAME_BYTES or not sent[frame.stream] % FILE_BYTES
        ends = frame.flags & END_STREAM or any(reached in grown for reached, grown in windows)
        if size > FRAME_BYTES or not (full or ends):
            yield frame.stream, size
