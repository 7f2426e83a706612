"""Program that replays recorded responses over HTTP/3 alone: aioquic, in a process of its own.

The Python of a root's component runs it, so it imports nothing of ours.  ``quic`` writes the order
that it is given as a file, and says what is in it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any

import aioquic
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import connection
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.congestion import base, cubic
from aioquic.quic.events import HandshakeCompleted, ProtocolNegotiated, QuicEvent
from aioquic.tls import SessionTicket

INITIAL_RTT_S = 0.333
"""RFC 9002 section 6.2.2, as nginx has it.  By aioquic's 0.1 s a timer expires in handshakes over
200 ms, and halves the window before it was ever used."""
GRANULARITY_S = 0.001
"""That of timers (RFC 9002 section 6.1.2), to which asyncio rounds up by itself (epoll_wait(2))."""
MOST_EARLY_DATA = connection.MAX_EARLY_DATA
CONDITIONS = ("if-none-match", "if-modified-since")
MISS: dict[str, Any] = {"status": 404, "headers": [("x-replay", "miss")], "body": None}


@dataclass(frozen=True, slots=True)
class KeyedAnswer:
    """Requests whose key is ``name``, or begins with it, and what they get after how long."""

    name: str
    prefix: bool
    match: str
    answer: int | None
    think_ms: int


class Origin:
    """What one origin answers: the locations of its requests, as ``matching`` makes them."""

    def __init__(self, listener: dict[str, Any], order: dict[str, Any]) -> None:
        """Take a listener of an order."""
        self.miss = KeyedAnswer("", True, "", None, listener["miss_ms"])
        locations = [KeyedAnswer(**each) for each in listener["locations"]]
        self.exact = {each.name: each for each in locations if not each.prefix}
        self.prefixes = {each.name: each for each in locations if each.prefix}
        self.alternative = listener["alternative"]
        self.answers_head = bool(listener["has_head"])
        self.early_data = MOST_EARLY_DATA if listener["early_data"] else None
        self.order = order

    def find(self, fields: dict[str, str]) -> KeyedAnswer:
        """Return the location of the request with ``fields``: what answers it, and after what."""
        method, length = fields[":method"], fields.get("content-length", "0")
        if method == "HEAD" and not self.answers_head:
            method = "GET"
        host = fields.get(":authority", "").partition(":")[0].lower()
        key = f"{method}{'' if length == '0' else f':{length}'}:{host}{fields[':path']}"
        mark = self.order["mark"]
        if any(fields.get(name) for name in CONDITIONS):
            found = self._longest(mark + self.order["condition"] + key)
            if found.answer is not None:
                return found
        return self._longest(mark + key)

    def _longest(self, key: str) -> KeyedAnswer:
        if key in self.exact:
            return self.exact[key]
        lengths = range(len(key), 0, -1)
        return next(
            (self.prefixes[key[:n]] for n in lengths if key[:n] in self.prefixes), self.miss
        )


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """A request: its stream, what sends on it, its fields, and whether it came as early data."""

    stream: int
    sender: Any
    fields: dict[str, str]
    early: bool


class ReplayConnection(QuicConnectionProtocol):  # type: ignore[misc]  # its types are in the component
    """A connection: each request is answered when all of it is there, and logged."""

    _timer: asyncio.TimerHandle | None

    def __init__(self, *words: Any, origin: Origin, server: str, log: list[Any]) -> None:
        """Serve ``origin`` at the address ``server``; ``log`` gets what is answered."""
        super().__init__(*words)
        self._origin, self._server, self._log = origin, server, log
        self._http: H3Connection | None = None
        self._client = ""
        self._is_open = False
        self._requests: dict[int, StreamRequest] = {}

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        """Note whose the connection is, and whether it takes early data, if it begins now."""
        self._client = self._client or f"{addr[0]}:{addr[1]}"
        connection.MAX_EARLY_DATA = self._origin.early_data
        super().datagram_received(data, addr)

    def transmit(self) -> None:
        """Send, and see to timers no sooner than in ``GRANULARITY_S``.

        aioquic wants to acknowledge early data at once, cannot before the handshake has ended, and
        would try again without a pause.
        """
        super().transmit()
        soonest = self._loop.time() + GRANULARITY_S
        if self._timer is not None and self._timer.when() == self._timer_at < soonest:
            self._timer.cancel()
            self._timer = self._loop.call_at(soonest, self._handle_timer)

    def quic_event_received(self, event: QuicEvent) -> None:
        """Take requests.  Until the handshake has ended they came as early data."""
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
        self._is_open = self._is_open or isinstance(event, HandshakeCompleted)
        for each in () if self._http is None else self._http.handle_event(event):
            if isinstance(each, HeadersReceived) and each.stream_id not in self._requests:
                fields = {name.decode("latin-1"): of.decode("latin-1") for name, of in each.headers}
                sender = self._quic._streams[each.stream_id].sender
                request = StreamRequest(each.stream_id, sender, fields, not self._is_open)
                self._requests[each.stream_id] = request
            if isinstance(each, HeadersReceived | DataReceived) and each.stream_ended:
                request = self._requests[each.stream_id]
                found = self._origin.find(request.fields)
                if found.think_ms:
                    self._loop.call_later(found.think_ms / 1000, self._answer, request, found)
                else:
                    self._answer(request, found)

    def _answer(self, request: StreamRequest, found: KeyedAnswer) -> None:
        answer = MISS if found.answer is None else self._origin.order["answers"][str(found.answer)]
        if not answer["status"]:
            self._quic.reset_stream(request.stream, ErrorCode.H3_INTERNAL_ERROR)
        body = Path(answer["body"]).read_bytes() if answer["body"] else b""
        headers = [
            (":status", str(answer["status"])),
            *(("server", "aioquic"), ("date", formatdate(usegmt=True))),
            ("alt-svc", self._origin.alternative),
            *([] if answer["status"] in (204, 304) else [("content-length", str(len(body)))]),
            *answer["headers"],
        ]
        body = b"" if request.fields[":method"] == "HEAD" else body
        if not is_reset(request.sender) and self._http is not None:
            encoded = [(name.encode("latin-1"), of.encode("latin-1")) for name, of in headers]
            self._http.send_headers(request.stream, encoded, end_stream=not body)
            if body:
                self._http.send_data(request.stream, body, end_stream=True)
        self._log.append((request.sender, self._line(request, found, answer["status"], len(body))))
        self.transmit()

    def _line(
        self, request: StreamRequest, found: KeyedAnswer, status: int, body_bytes: int
    ) -> dict[str, Any]:
        """Return a line of the log but for what is known at the end; ``replay_log`` reads it."""
        path, tls = request.fields[":path"], self._quic.tls
        return {
            "match": "" if found.answer is None else found.match,
            "request": f"{request.fields[':method']} {path} HTTP/3.0",
            "scheme": "https",
            "host": request.fields.get(":authority", ""),
            "uri": path,
            "answer": path if found.answer is None else f"//{found.answer}",
            "status": status,
            "body": body_bytes,
            "connection": self._client,
            "number": request.stream // 4 + 1,
            "upgrade": "",
            "client": self._client,
            "server": self._server,
            "asked": "",
            "resumed": "r" if tls.session_resumed else ".",
            "group": "" if tls._x25519_private_key is None else "X25519",  # another is unknown
            "early": "1" if request.early else "",
        }


def is_reset(sender: Any) -> bool:
    """Return whether the client has given the answer up."""
    return sender._reset_error_code is not None


def finished(sender: Any, line: dict[str, Any]) -> dict[str, Any]:
    """Return a whole line of the log, now that the server ends: what of the answer was sent."""
    sent = sender.highest_offset
    whole = not is_reset(sender) and sent == sender._buffer_stop
    return line | {"bytes": sent, "complete": "OK" if whole else ""}


async def listen(order: dict[str, Any], scratch: Path, log: list[Any]) -> list[QuicServer]:
    """Return what listens at every address; all have one store of tickets, if any."""
    tickets: dict[bytes, SessionTicket] = {}

    def keep(ticket: SessionTicket) -> None:
        tickets[ticket.ticket] = ticket

    servers = []
    for listener in order["listeners"]:
        configuration = QuicConfiguration(
            alpn_protocols=H3_ALPN,
            is_client=False,
            congestion_control_algorithm=order["congestion_control"],
            idle_timeout=order["kept_alive_s"],
            initial_rtt=INITIAL_RTT_S,
        )
        configuration.load_cert_chain(scratch / listener["certificate"], scratch / listener["key"])
        origin, port = Origin(listener, order), listener["port"]
        for address in listener["addresses"]:
            named = {"origin": origin, "server": f"{address}:{port}", "log": log}
            server = await serve(
                *(address, port),
                configuration=configuration,
                create_protocol=lambda quic, named=named, **_: ReplayConnection(quic, **named),
                session_ticket_fetcher=tickets.get if order["tickets"] else None,
                session_ticket_handler=keep if order["tickets"] else None,
            )
            servers.append(server)
    return servers


def set_knobs(order: dict[str, Any]) -> dict[str, Any]:
    """Set what is asked of aioquic, and return what it then is, by its own constants."""
    if order["initcwnd_packets"] is not None:
        base.K_INITIAL_WINDOW = cubic.K_INITIAL_WINDOW = order["initcwnd_packets"]
    if order["congestion_control"] is None:
        order["congestion_control"] = QuicConfiguration().congestion_control_algorithm
    name = order["congestion_control"]
    packet = QuicConfiguration().max_datagram_size
    control = base.create_congestion_control(name, max_datagram_size=packet)
    return {
        "program": f"aioquic {aioquic.__version__}",
        "initcwnd_packets": control.congestion_window // packet,
        "packet_bytes": packet,
        "congestion_control": name,
    }


async def run(order: dict[str, Any], scratch: Path) -> None:
    """Serve until SIGTERM, and write the log then."""
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    made = set_knobs(order)
    log: list[Any] = []
    servers = await listen(order, scratch, log)
    (scratch / order["ready"]).write_text(json.dumps(made), "utf-8")
    await end.wait()
    lines = [json.dumps(finished(sender, fields)) + "\n" for sender, fields in log]
    (scratch / order["log"]).write_text("".join(lines), "utf-8")
    del servers


if __name__ == "__main__":
    place = Path(sys.argv[1])
    asyncio.run(run(json.loads(place.read_text("utf-8")), place.parent))
