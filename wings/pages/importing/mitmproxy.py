"""mitmproxy importer: a file of flows, as ``mitmdump -w`` writes, of any version since 0.10.

A flow is a dictionary as a typed netstring: ``SIZE:DATA`` and one character for the type.  Mozilla
keeps such a file with others in a zip.  Sources: https://tnetstrings.info/, mitmproxy's
``io/tnetstring.py`` and ``io/compat.py`` for what the names of fields were.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Headers, find_header
from wings.pages.importing.framing import make_exchange
from wings.pages.importing.importer import Claim, FileStart, Importer, Reading
from wings.pages.importing.notes import Notes
from wings.pages.importing.untrusted import Budget, Fields, opened_zip
from wings.pages.limits import ARCHIVE_BYTES, JSON_VALUES, mib

_START = re.compile(rb"[0-9]{1,12}:[0-9]{1,4}:[a-z_]{1,30}[,;]")
_SIZE_DIGITS = 12
_DEEPEST = 20
_LONGEST_NUMBER = 40
_NAMES = (".mp", ".mitm", ".dump", ".flow", ".flows")


def read_flows(path: Path, *, url: str | None = None) -> Reading:
    """Read the flows of HTTP as one session of which ``url`` begins a page.

    Raises:
        ConfigurationError: it is damaged or too large, or holds no exchange.
        OSError: it cannot be read.
    """
    notes = Notes()
    claims: list[Claim] = []
    for value in _Values(_read(path)).flows():
        flow = Fields(value, "a flow", notes)
        if flow.text("type") not in ("http", ""):
            notes.add("Flows left out, not of HTTP", flow.text("type"))
        else:
            claims.append(_claim(flow, notes))
    if not claims:
        raise ConfigurationError(["no exchange of HTTP among these flows"])
    first_ms = min((c.start_ms for c in claims if c.start_ms is not None), default=None)
    recorded_s = path.stat().st_mtime if first_ms is None else first_ms / 1000
    return Reading(
        title="", url=url, recorded=datetime.fromtimestamp(recorded_s, UTC).date(),
        source=f"The mitmproxy flows {path.name}.", notes=notes, is_session=True,
        claims=tuple(claim if claim.start_ms is None or first_ms is None
                     else replace(claim, start_ms=claim.start_ms - first_ms) for claim in claims),
    )  # fmt: skip


def _claim(flow: Fields, notes: Notes) -> Claim:
    """Return the exchange; its start is in milliseconds since 1970."""
    request, response = flow.fields("request"), flow.fields("response")
    asked, headers = _headers(request), _headers(response)
    began, ended = request.number("timestamp_start"), response.number("timestamp_end")
    status = int(response.number("status_code") or response.number("code") or 0)
    protocol = response.text("http_version") or "HTTP/1.1"
    reason = response.text("reason") or response.text("msg")
    body = response.take_text("content")
    claim = Claim(
        _url(request, asked), request.text("method"), status, protocol, asked,
        len(request.text("content")), headers,
        start_ms=None if began is None else began * 1000,
        dur_ms=None if began is None or ended is None else (ended - began) * 1000,
    )  # fmt: skip
    sent = None if body is None else body.encode("latin-1", "replace")
    return make_exchange(claim, f"{protocol} {status} {reason}", sent, notes)


def _url(request: Fields, asked: Headers) -> str:
    path, port = request.text("path"), request.number("port")
    if path.startswith(("http://", "https://")):
        return path
    # A transparent proxy knows an address, the browser a name.
    host = request.text("authority") or find_header(asked, "host")
    host = host or f"{request.text('host')}{'' if port is None else f':{port:.0f}'}"
    return f"{request.text('scheme') or 'http'}://{host}{path}"


def _headers(message: Fields) -> Headers:
    pairs = message.raw("headers")
    return tuple((str(pair[0]), str(pair[1])) for pair in (pairs if isinstance(pairs, list) else ())
                 if isinstance(pair, list) and len(pair) == 2)  # fmt: skip


def _read(path: Path) -> bytes:
    """Return the flows of a file, or of the one such file of a zip.

    Raises:
        ConfigurationError: it is larger than what is taken in, or there are several.
    """
    budget = Budget(ARCHIVE_BYTES, f"more than {mib(ARCHIVE_BYTES)} of flows; record one page")
    if not zipfile.is_zipfile(path):
        budget.take(path.stat().st_size)
        return path.read_bytes()
    names = _flow_files(path)
    if len(names) != 1:
        raise ConfigurationError([f"{len(names)} files of flows in one zip; import one"])
    with opened_zip(path, "zip") as archive, archive.open(names[0]) as file:
        data = file.read(budget.left + 1)
    budget.take(len(data))
    return data


def _flow_files(path: Path) -> list[str]:
    with opened_zip(path, "zip") as archive:
        return [name for name in archive.namelist() if name.lower().endswith(_NAMES)]


def _recognises(sample: FileStart) -> bool:
    try:
        return bool(_START.match(sample.start) or (sample.is_zip and _flow_files(sample.path)))
    except ConfigurationError:
        return False


class _Values:
    """Typed netstrings, read within bounds; of bytes each becomes one character."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._count = 0

    def flows(self) -> Iterator[Any]:
        """Yield each value of the file.

        Raises:
            ConfigurationError: it is damaged, or ends too early; the message has the byte.
        """
        at = 0
        while at < len(self._data):
            value, at = self._value(at, len(self._data), 0)
            yield value

    def _value(self, at: int, limit: int, depth: int) -> tuple[Any, int]:
        colon = self._data.find(b":", at, min(limit, at + _SIZE_DIGITS + 1))
        digits = self._data[at:colon] if colon > at else b""
        self._count += 1
        if not digits.isdigit() or depth > _DEEPEST or self._count > JSON_VALUES:
            raise ConfigurationError([f"no flow of mitmproxy at byte {at}; fetch the file again"])
        start = colon + 1
        end = start + int(digits)
        if end >= limit:
            raise ConfigurationError([f"the flow at byte {at} ends too early; fetch it again"])
        kind = self._data[end : end + 1]
        if kind not in (b"]", b"}"):
            return _plain(kind, self._data[start:end], at), end + 1
        items: list[Any] = []
        while start < end:
            item, start = self._value(start, end, depth + 1)
            items.append(item)
        pairs = zip(map(str, items[::2]), items[1::2], strict=False)
        return items if kind == b"]" else dict(pairs), end + 1


def _plain(kind: bytes, data: bytes, at: int) -> Any:
    if kind in (b",", b";"):
        return data.decode("latin-1" if kind == b"," else "utf-8", "replace")
    if kind in (b"~", b"!"):
        return data == b"true" if data else None
    try:
        if kind in (b"#", b"^") and len(data) <= _LONGEST_NUMBER:
            return int(data) if kind == b"#" else float(data)
    except ValueError:
        pass
    raise ConfigurationError([f"no value of a flow at byte {at}; fetch the file again"])


IMPORTER = Importer("mitmproxy", "a file of mitmproxy flows", _recognises, read_flows)
