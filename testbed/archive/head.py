"""Response heads of nginx 1.22: what it can answer, and in how many bytes.

Source: nginx's ngx_http_header_filter_module.c; tests compare this with the real nginx.
"""

from __future__ import annotations

import re

_WORDS = {
    200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content",
    301: "Moved Permanently", 302: "Moved Temporarily", 303: "See Other", 304: "Not Modified",
    307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized",
    402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Not Allowed",
    406: "Not Acceptable", 408: "Request Time-out", 409: "Conflict", 410: "Gone",
    411: "Length Required", 412: "Precondition Failed", 413: "Request Entity Too Large",
    414: "Request-URI Too Large", 415: "Unsupported Media Type",
    416: "Requested Range Not Satisfiable", 421: "Misdirected Request", 429: "Too Many Requests",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
    503: "Service Temporarily Unavailable", 504: "Gateway Time-out",
    505: "HTTP Version Not Supported", 507: "Insufficient Storage",
}  # fmt: skip
REASONS = {status: _WORDS.get(status, "") for status in range(200, 1000)}
"""nginx's own words for each status, empty where it has none; no other status can be replayed."""

NOT_MODIFIED = 304
SWITCHED = 101
"""Of a WebSocket's opening (RFC 6455): the recorded body is what was said on it."""
MESSAGES = "application/jsonl"
"""The type of that: a line for each message, and one for the end, if there was one."""
BODILESS = frozenset({204, NOT_MODIFIED})
"""Statuses whose responses have no body (RFC 9110 sections 15.3.5 and 15.4.5)."""

LONGEST_URL = 3600
"""Path and query in bytes, ``"`` and ``\\`` counted twice: a word of nginx's ends at 4095."""
LONGEST_HOST = 253
LONGEST_METHOD = 32
LONGEST_TYPE = 1900

PADDING_NAME = "X-Padding"
PADDING_BYTES = len(f"{PADDING_NAME}: \r\n")
LONGEST_PADDING = 2000

# Of these nginx sends one line, however often they are given.
_SINGLE = frozenset({"content-type", "etag", "last-modified"})
_METHOD = re.compile(r"[A-Z][A-Z_-]*")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_PATH = re.compile(r"/[\x21-\x7e]*")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
# One byte for each character, as HTTP/1.1 has it (RFC 9110 section 5.5).
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def request_problem(method: str, host: str, path: str) -> str | None:
    """Return why nginx cannot be asked for this recorded request; ``None`` when it can.

    ``path`` includes the query.
    """
    if not _METHOD.fullmatch(method) or len(method) > LONGEST_METHOD:
        return f"{method!r} is no method that nginx takes"
    if method in ("CONNECT", "TRACE"):
        return f"nginx refuses the method {method}"
    if not _HOST.fullmatch(host) or len(host) > LONGEST_HOST:
        return f"{host!r} is no host name that nginx can serve"
    if not _PATH.fullmatch(path):
        return f"{path!r} is no path in printable ASCII"
    size = len(path) + path.count('"') + path.count("\\")
    if size > LONGEST_URL:
        return f"a path and query of {size} bytes; {LONGEST_URL} can be replayed"
    return _path_problem(re.split(r"[?#]", path, maxsplit=1)[0])


def _path_problem(path: str) -> str | None:
    """Return what nginx's own reading of a path refuses with 400, before any rule of ours."""
    if any(match[1] in (None, "00") for match in _ESCAPE.finditer(path)):
        return f"{path!r} has a % that is no escape"
    depth = 0
    decoded = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), path)
    for step in decoded.split("/"):
        depth += {"": 0, ".": 0, "..": -1}.get(step, 1)
        if depth < 0:
            return f"{path!r} climbs above the root"
    return None


def header_problem(name: str, value: str) -> str | None:
    """Return why nginx cannot send this response header; ``None`` when it can."""
    if not _HEADER_NAME.fullmatch(name):
        return f"{name!r} is no header name"
    if not _HEADER_VALUE.fullmatch(value):
        return f"{name}: {value!r} is no header value"
    if name.lower() == "content-type" and len(value) > LONGEST_TYPE:
        return f"{name}: {len(value)} bytes; {LONGEST_TYPE} can be replayed"
    return None


def sent_headers(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return those of an entry's headers that nginx sends: none without a value, some once only."""
    sent, sent_names = [], set()
    for name, value in headers:
        lower = name.lower()
        if value and not (lower in _SINGLE and lower in sent_names):
            sent.append((name, value))
            sent_names.add(lower)
    return tuple(sent)


def natural_size(status: int, body_size: int, headers: tuple[tuple[str, str], ...]) -> int:
    """Return bytes of nginx's response head on a kept HTTP/1.1 connection, without padding.

    ``headers`` are those of the archive's entry, beyond nginx's own.

    Raises:
        KeyError: nginx cannot answer with this status.
    """
    lines = [
        f"HTTP/1.1 {status} {REASONS[status]}",
        "Server: nginx",
        "Date: Thu, 01 Jan 1970 00:00:00 GMT",
        f"Content-Length: {0 if status in BODILESS else body_size}",
        "Connection: keep-alive",
        *(f"{name}: {value}" for name, value in sent_headers(headers)),
    ]
    if status == 204:
        lines = [line for line in lines if not line.startswith("Content-Length")]
    return sum(len(line) + 2 for line in lines) + 2


def reachable_size(recorded: int, natural: int) -> int:
    """Return the smallest head from ``recorded`` bytes on that padding makes from ``natural``."""
    if recorded <= natural:
        return natural
    return max(recorded, natural + PADDING_BYTES + 1)


def padding(missing: int) -> tuple[str, ...]:
    """Return the values of the padding headers that add ``missing`` bytes in all.

    Raises:
        ValueError: no header is so small.
    """
    if missing < 0 or 0 < missing <= PADDING_BYTES:
        raise ValueError(f"no padding has {missing} bytes")
    values = []
    while missing:
        line = min(missing, LONGEST_PADDING)
        if 0 < missing - line <= PADDING_BYTES:
            line -= PADDING_BYTES
        values.append("x" * (line - PADDING_BYTES))
        missing -= line
    return tuple(values)
