"""mahimahi importer: the folder that ``mm-webrecord`` writes, a protobuf file for each exchange.

The messages are those of its ``http_record.proto`` (proto2, package MahimahiProtobufs).  It has
neither order nor times: the page comes first, then what it led to by ``Referer``, by file name.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Headers, find_header, redirect_target
from wings.pages.importing.framing import make_exchange
from wings.pages.importing.importer import Claim, Importer, Reading
from wings.pages.importing.notes import Notes
from wings.pages.importing.untrusted import Budget
from wings.pages.limits import ARCHIVE_BYTES, BODY_BYTES, ENTRIES, mib

_HTTPS = 2
STATUS_LINE = re.compile(r"HTTP/[0-9.]+ ([0-9]{3})\b.*")
REQUEST_LINE = re.compile(r"([A-Z]{1,20}) (\S+)(?: HTTP/[0-9.]+)?")


_PROTOCOL = """
name: "http_record" package: "mahimahi" syntax: "proto2"
message_type {
    name: "Header"
    field { name: "key" number: 1 type: TYPE_BYTES }
    field { name: "value" number: 2 type: TYPE_BYTES }
}
message_type {
    name: "Message"
    field { name: "first_line" number: 1 type: TYPE_BYTES }
    field { name: "header" number: 2 type: TYPE_MESSAGE type_name: "Header" label: LABEL_REPEATED }
    field { name: "body" number: 3 type: TYPE_BYTES }
}
message_type {
    name: "RequestResponse"
    field { name: "ip" number: 1 type: TYPE_BYTES }
    field { name: "port" number: 2 type: TYPE_UINT32 }
    field { name: "scheme" number: 3 type: TYPE_INT32 }
    field { name: "request" number: 4 type: TYPE_MESSAGE type_name: "Message" }
    field { name: "response" number: 5 type: TYPE_MESSAGE type_name: "Message" }
}
"""


def message_class() -> Any:
    """Return the protobuf class of ``RequestResponse``.

    The scheme is an enumeration there: 1 is HTTP, 2 is HTTPS; on the wire it is a number.
    """
    pool = DescriptorPool()
    pool.Add(text_format.Parse(_PROTOCOL, FileDescriptorProto()))
    return GetMessageClass(pool.FindMessageTypeByName("mahimahi.RequestResponse"))


def read_mahimahi(folder: Path, *, url: str | None = None) -> Reading:
    """Read a record folder as one page.

    Raises:
        ConfigurationError: it is too large, or holds no exchange.
        OSError: it cannot be read.
    """
    notes, kind = Notes(), message_class()
    claims: list[Claim] = []
    budget = Budget(ARCHIVE_BYTES, f"more than {mib(ARCHIVE_BYTES)}; record one page")
    files = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    if len(files) > ENTRIES:
        problem = f"{len(files)} files, at most {ENTRIES} are taken; record one page"
        raise ConfigurationError([problem])
    for path in files:
        if path.is_symlink() or not path.is_file():
            notes.add("Left out of the folder, no files", path.name)
            continue
        size = path.stat().st_size
        budget.take(size)
        if size > BODY_BYTES:
            notes.add(f"Files left out, of more than {mib(BODY_BYTES)}", path.name)
            continue
        claim = parse_exchange(kind, path.read_bytes(), notes)
        if claim is None:
            notes.add("Files left out, no exchanges of mahimahi", path.name)
        else:
            claims.append(claim)
    if not claims:
        raise ConfigurationError(["no exchange of mahimahi in this folder"])
    start = url or guess_root(claims)
    return Reading(
        title="", url=start, recorded=date.fromtimestamp(folder.stat().st_mtime),
        source=f"The mahimahi record folder {folder.name}, which has no order and no times.",
        claims=order_by_referer(claims, start), notes=notes,
    )  # fmt: skip


def parse_exchange(kind: Any, data: bytes, notes: Notes) -> Claim | None:
    """Return the exchange in a file; ``None`` if it holds none."""
    try:
        record = kind.FromString(data)
    except DecodeError:
        return None
    request = REQUEST_LINE.fullmatch(_text(record.request.first_line).strip())
    status = STATUS_LINE.fullmatch(_text(record.response.first_line).strip())
    if request is None or status is None:
        return None
    request_headers, headers = _headers(record.request), _headers(record.response)
    claim = Claim(
        _url(record, request.group(2), find_header(request_headers, "host")), request.group(1),
        int(status.group(1)), "http/1.1", request_headers, len(record.request.body), headers,
        request_body=record.request.body,
    )  # fmt: skip
    line = _text(record.response.first_line.strip())
    return make_exchange(claim, line, record.response.body, notes)


def guess_root(claims: list[Claim]) -> str:
    """Return the document that most requests name as their Referer, and that has none itself."""
    referer_counts = Counter(claim.initiator for claim in claims if claim.initiator)
    without_referer = [claim for claim in claims if claim.initiator is None] or claims
    pages = [claim for claim in without_referer if claim.mime == "text/html"] or without_referer
    redirects = {value: claim.url for claim in claims for key, value in claim.headers
                 if key.lower() == "location"}  # fmt: skip
    url = max(pages, key=lambda claim: (referer_counts[claim.url], -len(claim.url))).url
    visited: set[str] = set()
    while url in redirects and url not in visited:
        visited.add(url)
        url = redirects[url]
    return url


def order_by_referer(claims: list[Claim], root: str) -> tuple[Claim, ...]:
    """Return the page, what it led to, what that led to, and so on; then the rest."""
    children: dict[str | None, list[Claim]] = {}
    by_url: dict[str, list[Claim]] = {}
    for claim in claims:
        children.setdefault(claim.initiator, []).append(claim)
        by_url.setdefault(claim.url, []).append(claim)
    ordered = list(by_url.get(root, ()))
    placed = {id(claim) for claim in ordered}
    for claim in ordered:  # which grows
        target = redirect_target(claim.url, claim.status, claim.headers)
        following = by_url.get(target, []) if target is not None else []
        for child in (*following, *children.get(claim.url, ())):
            if id(child) not in placed:
                placed.add(id(child))
                ordered.append(child)
    return (*ordered, *(claim for claim in claims if id(claim) not in placed))


def _url(record: Any, target: str, host: str) -> str:
    if target.startswith(("http://", "https://")):
        return target
    scheme = "https" if record.scheme == _HTTPS else "http"
    usual = 443 if scheme == "https" else 80
    port = "" if ":" in host or record.port in (0, usual) else f":{record.port}"
    return f"{scheme}://{host}{port}{target}"


def _headers(message: Any) -> Headers:
    return tuple((_text(header.key), _text(header.value)) for header in message.header)


def _text(data: bytes) -> str:
    return data.decode("latin-1")


IMPORTER = Importer(
    "mahimahi", "a mahimahi record folder", lambda sample: sample.is_folder, read_mahimahi
)
