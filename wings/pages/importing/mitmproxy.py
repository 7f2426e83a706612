"""mitmproxy importer: a file of flows, as ``mitmdump -w`` writes, of any version since 0.11.

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
from typing import Any, TypeGuard

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Headers, find_header
from wings.pages.importing.framing import with_body
from wings.pages.importing.importer import (
    Claim,
    FileStart,
    Importer,
    Reading,
    head_size,
    media_type,
    whole_number,
)
from wings.pages.importing.notes import Notes
from wings.pages.importing.untrusted import Budget, opened_zip
from wings.pages.limits import ARCHIVE_BYTES, JSON_VALUES, mib

_START = re.compile(rb"[0-9]{1,12}:[0-9]{1,4}:[a-z_]{1,30}[,;]")
_SIZE_DIGITS = 12
_DEEPEST = 20
_LONGEST_NUMBER = 40
_LATEST_S = 1e11
_NAMES = (".mp", ".mitm", ".dump", ".flow", ".flows")


def read_flows(path: Path, *, url: str | None = None) -> Reading:
    """Read the flows of HTTP as one session of which ``url`` begins a page.

    Raises:
        ConfigurationError: it is damaged or too large, or holds no exchange.
        OSError: it cannot be read.
    """
    notes = Notes()
    claims: list[tuple[Claim, float | None]] = []
    earliest: float | None = None
    for flow in _Values(_read(path)).flows():
        if _text(flow.get("type", b"http")) != "http":
            notes.add("Flows left out, not of HTTP", _text(flow.get("type")))
            continue
        claim, began_s = _claim(flow, notes)
        claims.append((claim, began_s))
        if began_s is not None:
            earliest = began_s if earliest is None else min(began_s, earliest)
    if not claims:
        raise ConfigurationError(["no exchange of HTTP among these flows"])
    recorded = path.stat().st_mtime if earliest is None else earliest
    return Reading(
        title="", url=url, recorded=datetime.fromtimestamp(recorded, UTC).date(),
        source=f"The mitmproxy flows {path.name}.", notes=notes, is_session=True,
        claims=tuple(_placed(claim, began_s, earliest) for claim, began_s in claims),
    )  # fmt: skip


def _placed(claim: Claim, began_s: float | None, earliest_s: float | None) -> Claim:
    if began_s is None or earliest_s is None:
        return claim
    return replace(claim, start_ms=(began_s - earliest_s) * 1000)


def _claim(flow: dict[str, Any], notes: Notes) -> tuple[Claim, float | None]:
    """Return the exchange and when its request began, in seconds since 1970."""
    request, response = _fields(flow.get("request")), _fields(flow.get("response"))
    asked, headers = _headers(request), _headers(response)
    began, ended = _number(request, "timestamp_start"), _number(response, "timestamp_end")
    status = response.get("status_code", response.get("code"))
    content, sent = request.get("content"), response.get("content")
    protocol = _text(response.get("http_version") or request.get("http_version"))
    line = f"{protocol or 'HTTP/1.1'} {status} {_text(response.get('reason', response.get('msg')))}"
    length = whole_number(find_header(headers, "content-length"))
    claim = Claim(
        url=_url(request, asked), method=_text(request.get("method")),
        status=status if isinstance(status, int) else 0, protocol=protocol or "http/1.1",
        request_headers=asked, request_body_size=len(content) if _is_bytes(content) else None,
        headers=headers, headers_size=head_size(line, headers),
        body_size=length, mime=media_type(find_header(headers, "content-type")),
        initiator=find_header(asked, "referer") or None,
        dur_ms=None if began is None or ended is None else (ended - began) * 1000,
    )  # fmt: skip
    return with_body(claim, sent, notes) if _is_bytes(sent) else claim, began


def _url(request: dict[str, Any], asked: Headers) -> str:
    path = _text(request.get("path"))
    if path.startswith(("http://", "https://")):
        return path
    scheme = _text(request.get("scheme")) or "http"
    # A transparent proxy knows an address, the browser a name.
    named = _text(request.get("authority")) or find_header(asked, "host")
    port = request.get("port")
    given = _text(request.get("host"))
    given = f"[{given}]" if ":" in given else given
    return f"{scheme}://{named or (f'{given}:{port}' if isinstance(port, int) else given)}{path}"


def _headers(message: dict[str, Any]) -> Headers:
    pairs = message.get("headers")
    return tuple((_text(pair[0]), _text(pair[1])) for pair in (pairs if _is_list(pairs) else ())
                 if _is_list(pair) and len(pair) == 2)  # fmt: skip


def _fields(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_bytes(value: object) -> TypeGuard[bytes]:
    return isinstance(value, bytes)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _number(message: dict[str, Any], name: str) -> float | None:
    value = message.get(name)
    is_time = isinstance(value, int | float) and 0 < value < _LATEST_S
    return float(value) if is_time and value is not None else None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""


def _read(path: Path) -> bytes:
    """Return the flows of a file, or of the one among those of a zip.

    Raises:
        ConfigurationError: it is larger than what is taken in, or there are several.
    """
    budget = Budget(ARCHIVE_BYTES, f"more than {mib(ARCHIVE_BYTES)} of flows; record one page")
    if not zipfile.is_zipfile(path):
        budget.take(path.stat().st_size)
        return path.read_bytes()
    with opened_zip(path, "zip") as archive:
        names = _flow_files(archive)
        if len(names) != 1:
            raise ConfigurationError([f"{len(names)} files of flows in one zip; import one"])
        with archive.open(names[0]) as file:
            data = file.read(budget.left + 1)
    budget.take(len(data))
    return data


def _flow_files(archive: zipfile.ZipFile) -> list[str]:
    return [name for name in archive.namelist() if name.lower().endswith(_NAMES)]


def _recognises(sample: FileStart) -> bool:
    if not sample.is_zip:
        return _START.match(sample.start) is not None
    try:
        with opened_zip(sample.path, "zip") as archive:
            return bool(_flow_files(archive))
    except ConfigurationError:
        return False


class _Values:
    """Typed netstrings, read within bounds."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._count = 0

    def flows(self) -> Iterator[dict[str, Any]]:
        """Yield each dictionary of the file.

        Raises:
            ConfigurationError: it is damaged, or ends too early; the message has the byte.
        """
        at = 0
        while at < len(self._data):
            value, at = self._value(at, len(self._data), 0)
            if not isinstance(value, dict):
                raise ConfigurationError([f"no flow before byte {at}"])
            yield value

    def _value(self, at: int, limit: int, depth: int) -> tuple[Any, int]:
        colon = self._data.find(b":", at, min(limit, at + _SIZE_DIGITS + 1))
        digits = self._data[at:colon] if colon > at else b""
        self._count += 1
        if self._count > JSON_VALUES:
            raise ConfigurationError([f"more than {JSON_VALUES} values; record one page"])
        if not digits.isdigit() or depth > _DEEPEST:
            raise ConfigurationError([f"no flow of mitmproxy at byte {at}; fetch the file again"])
        start = colon + 1
        end = start + int(digits)
        if end >= limit:
            raise ConfigurationError([f"the flow at byte {at} ends too early; fetch it again"])
        kind = self._data[end : end + 1]
        if kind in (b"]", b"}"):
            items: list[Any] = []
            while start < end:
                item, start = self._value(start, end, depth + 1)
                items.append(item)
            if kind == b"]":
                return items, end + 1
            pairs = zip(items[::2], items[1::2], strict=False)
            return {_text(name): value for name, value in pairs}, end + 1
        return _plain(kind, self._data[start:end], at), end + 1


def _plain(kind: bytes, data: bytes, at: int) -> Any:
    if kind == b",":
        return data
    if kind == b";":
        return data.decode("utf-8", "replace")
    if kind == b"~":
        return None
    if kind == b"!":
        return data == b"true"
    if kind in (b"#", b"^") and len(data) <= _LONGEST_NUMBER:
        try:
            return int(data) if kind == b"#" else float(data)
        except ValueError:
            pass
    raise ConfigurationError([f"no value of a flow at byte {at}; fetch the file again"])


IMPORTER = Importer("mitmproxy", "a file of mitmproxy flows", _recognises, read_flows)
