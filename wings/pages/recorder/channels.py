"""Channels of a recorded page: its WebSockets as exchanges, and the pieces of streamed bodies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from testbed.archive.head import MESSAGES, SWITCHED
from testbed.client.page_coverage import EVENT_STREAM
from testbed.server.channels import PROTOCOL, TEXT
from wings.pages.exchange import PageExchange
from wings.pages.recorder.devtools import BrowserReport, PageSocket
from wings.pages.recorder.sockets import NetTransfer

EVENT_PAUSE_S, PAUSE_S = 0.02, 0.2
"""What is read sooner behind something is of the same piece; of a body that is no stream of events
a shorter pause may be a round trip of TCP's."""


def pieces_of(transfer: NetTransfer) -> tuple[tuple[float, int], ...]:
    """Return how a body came that its server sent bit by bit; nothing, if it did not.

    That is for each piece how many ms behind the one before, or the head, and how many bytes.
    """
    if transfer.declared_bytes is not None or transfer.body is None or transfer.head_s is None:
        return ()
    events = transfer.header("content-type").startswith(EVENT_STREAM)
    pieces: list[list[float]] = []
    before_s = transfer.head_s
    for at_s, size in transfer.reads or ([(before_s, 0)] if events else []):
        wait_s = max(at_s - before_s, 0.0)
        if pieces and wait_s < (EVENT_PAUSE_S if events else PAUSE_S):
            pieces[-1][1] += size
        else:
            pieces.append([wait_s * 1000, size])
        before_s = at_s
    if not events and len(pieces) < 2:
        return ()
    return tuple((round(ms, 3), int(size)) for ms, size in pieces)


def socket_exchanges(report: BrowserReport) -> Iterator[PageExchange]:
    """Yield an exchange for each WebSocket that was opened: its body is what was said on it.

    A load need not open it: it is no request of the page's.
    """
    for socket in report.sockets:
        if socket.opened_s is None or socket.asked_s is None:
            continue
        body = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in _lines(socket))
        data = body.encode("utf-8", "replace")
        ended_s = socket.closed_s or max((at_s for _, at_s, *_ in socket.frames), default=None)
        yield PageExchange(
            url=socket.url.replace("ws", "http", 1), status=SWITCHED, mime=MESSAGES, how="script",
            headers=tuple(each for each in socket.headers if each[0].lower() == PROTOCOL),
            body=data, body_size=len(data), decoded_size=len(data), initiator=socket.initiator,
            start_ms=(socket.asked_s - report.start_s) * 1000, after_load=True,
            dur_ms=((ended_s or socket.opened_s) - socket.asked_s) * 1000,
        )  # fmt: skip


def _lines(socket: PageSocket) -> Iterator[dict[str, Any]]:
    """Yield each message, and the end: whether the page sent it, and what the server waited.

    An answer came a round trip after what it answers; the opening handshake took as long.
    """
    before_s = opened_s = socket.opened_s or 0.0
    round_trip_s = opened_s - (socket.asked_s or opened_s)
    by_page = False
    for sent, at_s, opcode, payload in (*socket.frames, (False, socket.closed_s, None, "")):
        if at_s is None:
            continue
        wait_s = max(at_s - before_s - (round_trip_s if by_page else 0.0), 0.0)
        line: dict[str, Any] = {"sent": sent, "wait_ms": 0.0 if sent else round(wait_s * 1000, 3)}
        if opcode is not None:
            line |= {"opcode": opcode, "data": payload}
            line |= {} if opcode == TEXT else {"base64": True}
        yield line
        before_s, by_page = at_s, sent
