"""The browser's network log: for each request the heads and the bytes as transferred.

Source: Chromium, net/log/net_log_event_type_list.h.  ``URL_REQUEST_JOB_BYTES_READ`` has bytes
before content decoding and exists only where there is something to decode, otherwise
``URL_REQUEST_JOB_FILTERED_BYTES_READ`` has them; transfer coding is undone in both.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from testbed.archive.head import NOT_MODIFIED
from wings.pages.exchange import Headers, HttpProtocol, find_header
from wings.pages.recorder.order import RecordError
from wings.pages.recorder.sockets import NetTransfer, Sockets, plain_url

MOST_BODY_BYTES = 1 << 30
# One event has at most one read of a socket or body, and there is one line with all constants.
LONGEST_LINE_BYTES = 1 << 26
BEGIN, END = 1, 2
ESCAPED = "%ESCAPED:\u200b "  # net/log/net_log_values.cc, NetLogStringValue
_SENDS: dict[str, HttpProtocol] = {
    "HTTP_TRANSACTION_SEND_REQUEST_HEADERS": "http/1.1",
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS": "h2",
    "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS": "h2",
}


@dataclass(frozen=True, slots=True)
class NetLog:
    """All transfers, in the order in which they were started; ``cut``: some may lack."""

    transfers: tuple[NetTransfer, ...]
    cut: bool = False


def read_netlog(path: Path, mark: str = "", most_body_bytes: int = MOST_BODY_BYTES) -> NetLog:
    """Read the log line by line, up to the event that holds ``mark``; only the bodies are kept.

    What comes behind the mark is how the browser ended, and on a busy machine may be torn.

    Raises:
        RecordError: it is no network log.
    """
    try:
        with path.open("rb") as file:
            return _read(file, mark.encode(), most_body_bytes)
    except OSError as error:
        raise RecordError(f"the browser wrote no network log: {path}: {error.strerror}") from None
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise RecordError(f"{path}: not a network log of a known form ({error!r})") from None


def _read(file: IO[bytes], mark: bytes, most_body_bytes: int) -> NetLog:
    constants = json.loads(_line(file).rstrip().rstrip(b",") + b"}")["constants"]
    names = {number: name for name, number in constants["logEventTypes"].items()}
    kinds = {number: name for name, number in constants["logSourceType"].items()}
    if not _line(file).startswith(b'"events"'):
        raise ValueError("no events")
    reader = _Reader(most_body_bytes)
    cut = True
    for event in _events(file, mark):
        if event is None:
            cut = False
            break
        source = event["source"]
        reader.take(
            names.get(event["type"], ""), kinds.get(source["type"], ""), source["id"],
            event["phase"], float(event["time"]) / 1000, event.get("params") or {},
        )  # fmt: skip
    return NetLog(tuple(reader.close()), cut)


def _events(file: IO[bytes], mark: bytes) -> Iterator[dict[str, Any] | None]:
    """Yield every event, then ``None`` if the log is complete."""
    while line := _line(file):
        if mark and mark in line:
            yield None
            return
        text = line.rstrip()
        last = text.endswith((b"],", b"]}"))
        text = text[:-2] if last else text.rstrip(b",")
        if text:
            try:
                yield json.loads(text)
            except ValueError:
                if line.endswith(b"\n"):
                    raise
                return  # the browser ended in the middle of a line
        if last:
            yield None
            return


def _line(file: IO[bytes]) -> bytes:
    line = file.readline(LONGEST_LINE_BYTES)
    if len(line) == LONGEST_LINE_BYTES:
        raise ValueError(f"a line of more than {LONGEST_LINE_BYTES} bytes")
    return line


class _Reader:
    def __init__(self, most_body_bytes: int) -> None:
        self._left = most_body_bytes
        self._all: list[NetTransfer] = []
        self._current: dict[int, NetTransfer] = {}
        self._bodies: dict[int, list[bytes]] = {}
        self._filtered: set[int] = set()
        self._sockets = Sockets()
        self._sent = 0

    def take(
        self, name: str, kind: str, source: int, phase: int, time_s: float, params: dict[str, Any]
    ) -> None:
        """Take one event: what happened, to which kind of source, and when."""
        self._sockets.take(name, source, params)
        if kind != "URL_REQUEST":
            return
        if name == "URL_REQUEST_START_JOB":
            self._start(source, phase, time_s, params)
        elif name in _SENDS and source in self._current:
            self._send(source, name, params)
        elif (transfer := self._current.get(source)) is not None:
            self._note(transfer, name, source, time_s, params)
            if name == "REQUEST_ALIVE" and phase == END:
                transfer.error = int(params.get("net_error", 0))
                self._finish(source, time_s)

    def close(self) -> list[NetTransfer]:
        """Return all transfers; those that go on have no end."""
        for source in tuple(self._current):
            self._finish(source, None)
        self._sockets.close()
        return self._all

    def _start(self, source: int, phase: int, time_s: float, params: dict[str, Any]) -> None:
        url = params.get("url", "")
        if phase == BEGIN and url.startswith(("http://", "https://")):
            self._finish(source, time_s)
            self._begin(source, NetTransfer(params["method"], plain_url(url), time_s))

    def _begin(self, source: int, transfer: NetTransfer) -> None:
        self._current[source] = transfer
        self._bodies[source] = []
        self._all.append(transfer)

    def _send(self, source: int, name: str, params: dict[str, Any]) -> None:
        transfer = self._current[source]
        if transfer.status is not None:  # once more, with credentials or over another connection
            self._finish(source, None)
            transfer = NetTransfer(transfer.method, transfer.url, transfer.start_s)
            self._begin(source, transfer)
        transfer.position = self._sent
        self._sent += 1
        transfer.protocol = _SENDS[name]
        transfer.request_headers = _headers(params["headers"])
        declared = find_header(transfer.request_headers, "content-length")
        transfer.request_body_size = int(declared or 0)
        if transfer.protocol == "http/1.1":
            self._sockets.begin(source)

    def _note(
        self, transfer: NetTransfer, name: str, source: int, time_s: float, params: dict[str, Any]
    ) -> None:
        match name:
            case "HTTP_TRANSACTION_SEND_REQUEST_BODY":
                if params.get("length"):
                    transfer.request_body_size = int(params["length"])
            case "HTTP_TRANSACTION_READ_RESPONSE_HEADERS":
                status, *lines = params["headers"]
                transfer.status = int(_unescape(status).split()[1])
                transfer.headers = _headers(lines)
                transfer.decoded_size, transfer.head_s = 0, time_s
            case "URL_REQUEST_JOB_BYTES_READ":
                self._filtered.add(source)
                self._keep(transfer, source, time_s, params)
            case "URL_REQUEST_JOB_FILTERED_BYTES_READ":
                transfer.decoded_size = (transfer.decoded_size or 0) + int(params["byte_count"])
                if source not in self._filtered:
                    self._keep(transfer, source, time_s, params)
            case "URL_REQUEST_REDIRECTED":
                transfer.redirected = True
            case "CANCELLED":
                transfer.cancelled = True

    def _keep(
        self, transfer: NetTransfer, source: int, time_s: float, params: dict[str, Any]
    ) -> None:
        if transfer.status == NOT_MODIFIED:
            return  # the browser's cache has it, and it is read like any other
        size = int(params["byte_count"])
        transfer.received_bytes += size
        transfer.reads.append((time_s, size))
        data = params.get("bytes")
        if transfer.body is None or data is None or size > self._left:
            transfer.body = None
            self._left += sum(map(len, self._bodies[source]))
            self._bodies[source] = []
            return
        self._left -= size
        self._bodies[source].append(base64.b64decode(data))

    def _finish(self, source: int, time_s: float | None) -> None:
        transfer = self._current.pop(source, None)
        if transfer is None:
            return
        transfer.ended_s = time_s
        pieces = self._bodies.pop(source)
        self._filtered.discard(source)
        if transfer.body is not None:
            transfer.body = b"".join(pieces)
        # Bytes of a redirect's body are read from the socket later, when it drains.
        self._sockets.claim(source, transfer)


def _headers(lines: list[str]) -> Headers:
    """Parse ``name: value`` lines; pseudo-headers of HTTP/2 (RFC 9113 section 8.3) are left out."""
    pairs = (line.partition(":") for line in map(_unescape, lines) if not line.startswith(":"))
    return tuple((name, value.strip(" \t")) for name, _, value in pairs)


def _unescape(line: str) -> str:
    """Return the line with one character for each byte; the log marks those that were not ASCII."""
    if not line.startswith(ESCAPED):
        return line
    return unquote_to_bytes(line.removeprefix(ESCAPED)).decode("latin-1")
