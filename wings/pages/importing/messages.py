"""HTTP messages as proxies keep them: a head of HTTP/1.1 form and what follows it."""

from __future__ import annotations

import re

from wings.pages.exchange import Headers
from wings.pages.limits import HEAD_BYTES

_STATUS = re.compile(r"HTTP/[0-9.]{1,4} ([0-9]{3})\b.*", re.DOTALL)
_REQUEST = re.compile(r"([A-Z]{1,20}) (\S+)(?: HTTP/[0-9.]{1,4})?")


def split_message(data: bytes) -> tuple[str, Headers, bytes] | None:
    """Return first line, headers and body; ``None`` if there is no whole head."""
    end = data.find(b"\r\n\r\n", 0, HEAD_BYTES)
    if end < 0:
        return None
    line, *fields = data[:end].decode("latin-1").split("\r\n")
    pairs = (field.partition(":") for field in fields)
    return line, tuple((name, value.strip()) for name, _, value in pairs), data[end + 4 :]


def status_of(line: str) -> int:
    """Return the status of a response's first line; 0 if it is none."""
    match = _STATUS.fullmatch(line)
    return int(match[1]) if match else 0


def method_of(line: str) -> str:
    """Return the method of a request's first line; nothing if it is none."""
    match = _REQUEST.fullmatch(line.strip())
    return match[1] if match else ""
