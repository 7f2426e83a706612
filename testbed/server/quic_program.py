"""Program that replays recorded responses over HTTP/3 alone: aioquic, in a process of its own.

The Python of a root's component runs it, so it imports nothing of ours.  ``quic`` writes the order
that it is given as a file, and says what is in it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from email.utils import formatdate
from pathlib import Path
from typing import Any

import aioquic
import aioquic.quic.connection
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.congestion import base, cubic
from aioquic.quic.events import HandshakeCompleted, ProtocolNegotiated, QuicEvent
from aioquic.tls import SessionTicket

GROUP = "X25519"
CONDITIONS = ("if-none-match", "if-modified-since")


class Origin:
    """What one origin answers: the locations of its requests, as ``matching`` makes them."""

    def __init__(self, listener: dict[str, Any], order: dict[str, Any]) -> None:
        """Take a listener of an order."""
        self.host: str = listener["host"]
        self.miss = {"match": "miss", "answer": None, "think_ms": listener["miss_ms"]}
        self.exact = {each["name"]: each for each in listener["locations"] if not each["prefix"]}
        self.prefixes = {each["name"]: each for each in listener["locations"] if each["prefix"]}
        self.answers_head = bool(listener["has_head"])
        self.order = order
        self.port = "" if listener["port"] == 443 else f":{listener['port']}"

    def find(self, fields: dict[str, str]) -> dict[str, Any]:
        """Return the location of the request with ``fields``: what answers it, and after what."""
        method, length = fields[":method"], fields.get("content-length", "0")
        if method == "HEAD" and not self.answers_head:
            method = "GET"
        host = fields.get(":authority", "").partition(":")[0].lower()
        key = f"{method}{'' if length == '0' else f':{length}'}:{host}{fields[':path']}"
        mark = self.order["mark"]
        if any(fields.get(name) for name in CONDITIONS):
            found = self._longest(mark + self.order["condition"] + key)
            if found["match"] in ("exact", "inexact"):
                return found
        return self._longest(mark + key)

    def _longest(self, key: str) -> dict[str, Any]:
        if key in self.exact:
            return self.exact[key]
        lengths = range(len(key), 0, -1)
        return next((self.prefixes[key[:n]] for n in lengths if key[:n] in self.prefixes), self.miss)


class Connection(QuicConnectionProtocol):
    """A connection: each request is answered when all of it is there, and logged."""

    def __init__(self, *words: Any, origin: Origin, server: str, log: list[Any]) -> None:
        """Serve ``origin`` at the address ``server``; ``log`` gets what is answered."""
        super().__init__(*words)
        self._origin, self._server, self._log = origin, server, log
        self._http: H3Connection | None = None
        self._client = ""
        self._is_open = False
        self._requests: dict[int, tuple[dict[str, str], bool]] = {}

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        """Note whose the connection is."""
        self._client = self._client or f"{addr[0]}:{addr[1]}"
        super().datagram_received(data, addr)

    def quic_event_received(self, event: QuicEvent) -> None:
        """Take requests.  Until the handshake has ended they came as early data."""
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
        self._is_open = self._is_open or isinstance(event, HandshakeCompleted)
        for each in () if self._http is None else self._http.handle_event(event):
            if isinstance(each, HeadersReceived):
                fields = {name.decode("latin-1"): of.decode("latin-1") for name, of in each.headers}
                self._requests.setdefault(each.stream_id, (fields, not self._is_open))
            if isinstance(each, HeadersReceived | DataReceived) and each.stream_ended:
                fields, early = self._requests.pop(each.stream_id)
                self._think(each.stream_id, fields, early)

    def _think(self, stream: int, fields: dict[str, str], early: bool) -> None:
        found = self._origin.find(fields)
        if found["think_ms"]:
            self._loop.call_later(
                found["think_ms"] / 1000, self._answer, stream, fields, early, found
            )
        else:
            self._answer(stream, fields, early, found)

    def _answer(
        self, stream: int, fields: dict[str, str], early: bool, found: dict[str, Any]
    ) -> None:
        sender = self._quic._streams[stream].sender
        answer = {"status": 404, "headers": [["x-replay", "miss"]], "body": None}
        if found["answer"] is not None:
            answer = self._origin.order["answers"][str(found["answer"])]
        body = b"" if answer["body"] is None else Path(answer["body"]).read_bytes()
        headers = [
            (":status", str(answer["status"])),
            *(("server", "aioquic"), ("date", formatdate(usegmt=True))),
            *([] if answer["status"] in (204, 304) else [("content-length", str(len(body)))]),
            *answer["headers"],
        ]
        body = b"" if fields[":method"] == "HEAD" else body
        if sender._reset_error_code is None and self._http is not None:
            encoded = [(name.encode("latin-1"), of.encode("latin-1")) for name, of in headers]
            self._http.send_headers(stream, encoded, end_stream=not body)
            if body:
                self._http.send_data(stream, body, end_stream=True)
        self._log.append((sender, {
            "match": found["match"] if found["answer"] is not None else "",
            "request": f"{fields[':method']} {fields[':path']} HTTP/3.0",
            "scheme": "https",
            "host": self._origin.host + self._origin.port
            if not fields.get(":authority") else fields[":authority"],
            "uri": fields[":path"],
            "answer": f"//{found['answer']}" if found["answer"] is not None else fields[":path"],
            "status": answer["status"],
            "body": len(body),
            "connection": self._client,
            "number": stream // 4 + 1,
            "upgrade": "",
            "client": self._client,
            "server": self._server,
            "asked": "",
            "resumed": "r" if self._quic.tls.session_resumed else ".",
            "group": GROUP,
            "early": "1" if early else "",
        }))  # fmt: skip
        self.transmit()


def finished(sender: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a request's line of the log, now that the server ends: what of its answer was sent."""
    whole = sender._reset_error_code is None and sender.highest_offset == sender._buffer_stop
    return fields | {"bytes": sender.highest_offset, "complete": "OK" if whole else ""}


async def listen(order: dict[str, Any], log: list[Any]) -> list[QuicServer]:
    """Listen at every address; what was set is in effect for all connections."""
    tickets: dict[bytes, SessionTicket] = {}
    servers = []
    for listener in order["listeners"]:
        configuration = QuicConfiguration(
            alpn_protocols=H3_ALPN,
            is_client=False,
            congestion_control_algorithm=order["congestion_control"],
            idle_timeout=order["kept_alive_s"],
        )
        configuration.load_cert_chain(listener["certificate"], listener["key"])
        origin = Origin(listener, order)
        for address in listener["addresses"]:
            server = f"{address}:{listener['port']}"

            def connect(
                *words: Any, origin: Origin = origin, server: str = server, **_: Any
            ) -> Connection:
                return Connection(*words, origin=origin, server=server, log=log)

            servers.append(
                await serve(
                    *(address, listener["port"]),
                    configuration=configuration,
                    create_protocol=connect,
                    session_ticket_fetcher=tickets.get if order["tickets"] else None,
                    session_ticket_handler=(
                        (lambda ticket: tickets.__setitem__(ticket.ticket, ticket))
                        if order["tickets"]
                        else None
                    ),
                )
            )
    return servers


def set_knobs(order: dict[str, Any]) -> dict[str, Any]:
    """Set what is asked of aioquic, and return what it then is, by its own constants."""
    if order["initcwnd_packets"] is not None:
        base.K_INITIAL_WINDOW = cubic.K_INITIAL_WINDOW = order["initcwnd_packets"]
    if not order["early_data"]:
        aioquic.quic.connection.MAX_EARLY_DATA = None
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
    servers = await listen(order, log)
    (scratch / order["ready"]).write_text(json.dumps(made), "utf-8")
    await end.wait()
    lines = [json.dumps(finished(sender, fields)) + "\n" for sender, fields in log]
    (scratch / order["log"]).write_text("".join(lines), "utf-8")
    del servers


if __name__ == "__main__":
    place = Path(sys.argv[1])
    asyncio.run(run(json.loads(place.read_text("utf-8")), place.parent))
