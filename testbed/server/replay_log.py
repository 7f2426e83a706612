"""Access log of the replay server: each request, and the coverage that they add up to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from testbed.archive.head import SWITCHED
from testbed.archive.reading import Entry
from testbed.model import Replay, Substitution
from testbed.server.asked import answer_of
from testbed.server.blocks import response_uri
from testbed.server.channels import read_talks

LOG_FILE = "access.log"
BUFFER = "256k"
WEBSOCKET = "websocket"
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))

# One JSON object a line (``escape=json``).  After the redirect to the response ``$uri`` names it,
# and the method is another: that of the client is in ``$request``.  ``asked`` is what the client
# wants to become of the connection; what nginx answered to that is gone when it writes its log.
_FIELDS = {
    "match": '"$replay"',
    "request": '"$request"',
    "scheme": '"$scheme"',
    "host": '"$http_host"',
    "uri": '"$request_uri"',
    "answer": '"$uri"',
    "status": "$status",
    "bytes": "$bytes_sent",
    "body": "$body_bytes_sent",
    "complete": '"$request_completion"',
    "connection": '"$connection"',
    "number": "$connection_requests",
    "upgrade": '"$http_upgrade"',
    "client": '"$remote_addr:$remote_port"',
    "server": '"$server_addr:$server_port"',
    "asked": '"$http_connection"',
    "resumed": '"$ssl_session_reused"',
    "group": '"$ssl_curve"',
}
EARLY = "early"
"""The variable, and the field, that says whether a request came as early data."""


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One request (``METHOD URL``) and what nginx sent for it, in bytes above TCP or TLS.

    ``entry`` is the recorded exchange that answered; ``None``: a miss.  ``complete`` says that all
    of the answer went to the kernel, ``asked_close`` that the client wanted no further request on
    the connection.  ``client`` and ``server`` are its ends (``address:port``), and ``connection``
    is nginx's number of it, or its ends; ``status`` is that of HTTP.  ``early`` says that the
    request came as early data, ``resumed`` that its connection resumed a session; ``group`` is the
    one of the key exchange, as OpenSSL names it, or empty.
    """

    request: str
    entry: Entry | None
    protocol: str
    sent_bytes: int
    body_bytes: int
    complete: bool
    asked_close: bool
    connection: str
    client: str
    server: str
    status: int = 0
    early: bool = False
    resumed: bool = False
    group: str = ""


def log_directives(buffered: bool, early_data: bool = False, h3: bool = False) -> str:
    """Return the directives of ``http`` that write the log, without requests to the host ``prime``.

    With ``early_data`` there is a variable ``EARLY``.  Requests over HTTP/3, where ``h3`` says that
    there may be some, have no field Host.  Buffered it costs no system call for each request, and
    is complete when nginx has ended.
    """
    written = _FIELDS | {EARLY: f'"${EARLY}"' if early_data else '""'}
    written |= {"host": '"$host$is_request_port$request_port"'} if h3 else {}
    fields = ",".join(f'"{name}":{value}' for name, value in written.items())
    buffer = f" buffer={BUFFER}" if buffered else ""
    return f"""\
  map $http_host $counted {{ default 1; prime 0; }}
  log_format replay escape=json '{{{fields}}}';
  access_log {LOG_FILE} replay{buffer} if=$counted;
"""


def read_replay(scratch: Path, entries: Sequence[Entry]) -> Replay:
    """Return the coverage of all requests that the server in ``scratch`` has answered and logged.

    ``entries`` are those that it served.

    Raises:
        OSError: no server has run there.
    """
    answers = {
        response_uri(number): f"{entry.method} {entry.url}"
        for number, entry in enumerate((*entries, *entries))  # and their 304s
    }
    replay = parse_replay((scratch / LOG_FILE).read_bytes(), answers)
    return replace(replay, talks=read_talks(scratch))


def read_answered(scratch: Path, entries: Sequence[Entry]) -> tuple[LoggedAnswer, ...]:
    """Read every request that the server in ``scratch`` has logged, in the order of their ends.

    ``entries`` are those that it served.

    Raises:
        OSError: no server has run there.
    """
    return parse_answered((scratch / LOG_FILE).read_bytes(), entries)


def parse_answered(log: bytes, entries: Sequence[Entry]) -> tuple[LoggedAnswer, ...]:
    """Return the requests in an access log; lines in another format are left out."""
    numbers = {response_uri(number): number for number in range(2 * len(entries))}
    return tuple(
        LoggedAnswer(
            request=_asked(fields),
            entry=None if number is None else answer_of(entries, number),
            protocol=fields["request"].rpartition(" ")[2],
            sent_bytes=int(fields["bytes"]),
            body_bytes=int(fields["body"]),
            complete=fields["complete"] == "OK",
            asked_close=_asks_close(fields),
            connection=_connection(fields),
            client=fields["client"],
            server=fields["server"],
            status=int(fields["status"]),
            early=bool(fields[EARLY]),
            resumed=fields["resumed"] == "r",
            group=fields["group"],
        )
        for line in log.splitlines(keepends=False)
        if (fields := _parse_line(line)) is not None and fields["request"]
        for number in (numbers.get(fields["answer"]),)
    )


def parse_replay(log: bytes, answers: Mapping[str, str]) -> Replay:
    """Return the coverage in an access log; ``answers`` maps URIs of responses to requests.

    A line in another format counts as missed, so that no request is left out.  The opening
    handshake of a WebSocket (RFC 6455) is no request, and has a connection of its own: it was
    refused, unless the page holds what was said on it.
    """
    exact, inexact, missed, sockets = 0, [], [], []
    connections: Counter[str] = Counter()
    protocols: Counter[str] = Counter()
    for line in log.splitlines(keepends=False):
        fields = _parse_line(line)
        if fields is None:
            missed.append(_visible(line))
            continue
        if not fields["request"]:
            continue  # the connection ended before it asked for anything
        if fields["upgrade"].lower() == WEBSOCKET:
            if fields["status"] != str(SWITCHED):
                sockets.append(_asked(fields).partition(" ")[2].replace("http", "ws", 1))
            continue
        connections[_connection(fields)] += 1
        protocols[_spoken(fields)] += 1
        request = _asked(fields)
        answered = answers.get(fields["answer"])
        if answered is None or fields["match"] not in ("exact", "inexact"):
            missed.append(request)
        elif fields["match"] == "exact":
            exact += 1
        else:
            inexact.append(Substitution(request, answered))
    most = max(connections.values(), default=0)
    spoken = dict(sorted(protocols.items()))
    return Replay(exact, tuple(inexact), tuple(missed), most, spoken, tuple(sockets))


def _parse_line(line: bytes) -> dict[str, str] | None:
    try:
        # nginx escapes what JSON wants escaped and leaves bytes above ASCII as they came.
        fields = json.loads(line.decode("utf-8", "surrogateescape"))
    except ValueError:
        return None
    if not isinstance(fields, dict) or set(fields) != {*_FIELDS, EARLY}:
        return None
    return {name: str(value) for name, value in fields.items()}


def _connection(fields: Mapping[str, str]) -> str:
    """Return what tells a connection from others: over QUIC nginx numbers each of its streams."""
    if fields["request"].endswith(" HTTP/3.0"):
        return f"{fields['client']} {fields['server']}"
    return fields["connection"]


def _asked(fields: Mapping[str, str]) -> str:
    method, _, _ = fields["request"].partition(" ")
    if not fields["uri"]:  # what came is no request that nginx could read
        return _visible(fields["request"].encode("utf-8", "surrogateescape"))
    url = f"{method} {fields['scheme']}://{fields['host']}{fields['uri']}"
    return _visible(url.encode("utf-8", "surrogateescape"))


def _asks_close(fields: Mapping[str, str]) -> bool:
    """Return whether the client asks to close the connection (RFC 9112 section 9.3)."""
    words = {word.strip().lower() for word in fields["asked"].split(",")}
    old = fields["request"].endswith(" HTTP/1.0")
    return "close" in words or (old and "keep-alive" not in words)


def _spoken(fields: Mapping[str, str]) -> str:
    """Return the origin and protocol of a request, such as ``https://www.page.test HTTP/2.0``."""
    protocol = fields["request"].rpartition(" ")[2]
    version = protocol if protocol.startswith("HTTP/") else "unknown"
    spoken = f"{fields['scheme']}://{fields['host']} {version}"
    return _visible(spoken.encode("utf-8", "surrogateescape"))


def _visible(text: bytes) -> str:
    """Return printable ASCII, whatever a client sent: other bytes as %XX."""
    return quote(text, safe=_PRINTABLE + " ")
