"""Reads WARC records (ISO 28500) with warcio: requests, responses and revisits, bodies as kept.

Each gzip member, line, body and the whole are bounded before warcio may collect them.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, BinaryIO

from warcio.archiveiterator import WARCIterator  # type: ignore[import-untyped]
from warcio.bufferedreaders import BufferedReader  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]
from warcio.statusandheaders import (  # type: ignore[import-untyped]
    StatusAndHeadersParserException,
)

from testbed.base.errors import ConfigurationError
from testbed.pages.exchange import Headers, find_header
from testbed.pages.importing.claim import Claim, Notes, Reading, media_type, printable
from testbed.pages.importing.json_file import whole_text
from testbed.pages.limits import ARCHIVE_BYTES, BODY_BYTES, ENTRIES, LINE_BYTES, mib

_CHUNK = re.compile(rb"[0-9A-Fa-f]{1,8}")


def dechunk(data: bytes) -> bytes | None:
    """The content of a chunked body (RFC 9112 section 7.1); ``None`` if it is not chunked."""
    pieces: list[bytes] = []
    at = 0
    while True:
        end = data.find(b"\r\n", at, at + 4096)
        size = _CHUNK.fullmatch(data[at:end].partition(b";")[0].strip()) if end >= 0 else None
        if size is None:
            return None
        length = int(size.group(), 16)
        at = end + 2
        if length == 0:
            return b"".join(pieces)
        pieces.append(data[at : at + length])
        if data[at + length : at + length + 2] != b"\r\n":
            return None
        at += length + 2


def plain_body(data: bytes, transfer_encoding: str) -> bytes:
    """The body without its transfer coding; recorders may have undone it and left the header."""
    if "chunked" not in transfer_encoding.lower():
        return data
    content = dechunk(data)
    return data if content is None else content


PIECE_BYTES = 1 << 16


class TooMuchError(Exception):
    """The records are larger than what is taken in; the message is a clause."""


@dataclass
class Allowance:
    """Bytes that may still be unpacked, of all files of one import together."""

    left: int = field(default=ARCHIVE_BYTES)

    def take(self, size: int) -> None:
        """Count ``size`` bytes.

        Raises:
            TooMuchError: it is more than is left.
        """
        self.left -= size
        if self.left < 0:
            raise TooMuchError(f"more than {mib(ARCHIVE_BYTES)} of records; import fewer pages")


class BoundedLines(BufferedReader):  # type: ignore[misc]
    """warcio's reader, whose lines would grow without end; ``last`` is the last line."""

    last = b""

    def readline(self, length: int | None = None) -> bytes:
        """A line.

        Raises:
            TooMuchError: it is longer than any that is meant.
        """
        line = b""
        most = min(length or LINE_BYTES, LINE_BYTES)
        while len(line) < most and not line.endswith(b"\n"):
            self._fillbuff()
            if self.empty():
                break
            line += self.buff.readline(most - len(line))
        if len(line) >= LINE_BYTES:
            raise TooMuchError(f"a line of more than {LINE_BYTES} bytes")
        self.last = line or self.last
        return line


class Unpacked:
    """The bytes of a file, gzip members undone piece by piece, and counted."""

    def __init__(self, file: BinaryIO, allowance: Allowance) -> None:
        self._file = file
        self._allowance = allowance
        start = file.read(2)
        self._rest = start
        self._stream = zlib.decompressobj(31) if start == b"\x1f\x8b" else None
        self._inside = False

    def read(self, size: int = -1) -> bytes:
        """Up to some 64 KiB, whatever ``size`` is; nothing at the end.

        Raises:
            TooMuchError: it is more than what is taken in.
            EOFError: the last gzip member is not whole.
        """
        while True:
            data = self._rest or self._file.read(PIECE_BYTES)
            self._rest = b""
            if self._inside and not data:
                raise EOFError("the gzip file ends too early, so fetch it again")
            if self._stream is None or not data:
                self._allowance.take(len(data))
                return data
            piece = self._stream.decompress(data, PIECE_BYTES)
            self._rest = self._stream.unconsumed_tail
            self._inside = not self._stream.eof
            if self._stream.eof:
                self._rest = self._stream.unused_data or self._file.read(PIECE_BYTES)
                self._stream = zlib.decompressobj(31)
            if piece:
                self._allowance.take(len(piece))
                return piece

    def tell(self) -> int:
        """Where we are; warcio asks, for messages only."""
        return 0


def without_robots(claims: Sequence[Claim], url: str | None, notes: Notes) -> tuple[Claim, ...]:
    """The claims but those for a robots.txt, unless it is ``url``, the page itself, or led to.

    A browser would never ask for it, and its load would lack a recorded request.
    """
    kept = []
    for claim in claims:
        path = claim.url.partition("://")[2].partition("/")[2]
        if path == "robots.txt" and claim.url != url and claim.initiator is None:
            notes.add("Requests left out, robots.txt, which no browser asks for", claim.url)
        else:
            kept.append(claim)
    return tuple(kept)


# What warcio raises for records that are none.
_BROKEN = (ArchiveLoadFailed, StatusAndHeadersParserException, EOFError, ValueError, LookupError,
           AttributeError, TypeError, AssertionError, OSError, zlib.error)  # fmt: skip


class BrokenWarcError(Exception):
    """The file is no WARC from some place on; the message is a clause."""


@dataclass(frozen=True, slots=True)
class Response:
    """One response of a WARC beside the request that it answers."""

    claim: Claim
    moment: datetime | None
    digest: str


def read_warc(path: Path, *, url: str | None = None) -> Reading:
    """Read the responses of a WARC, plain or gzip, as one page.

    Raises:
        ConfigurationError: it cannot be read, is broken, too large, or has no responses.
    """
    notes = Notes()
    try:
        with path.open("rb") as file:
            responses = list(read_records(file, notes, Allowance()))
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error.strerror}"]) from None
    except TooMuchError as error:
        raise ConfigurationError([f"{path}: {error}"]) from None
    except BrokenWarcError as error:
        raise ConfigurationError([f"{path}: a broken WARC: {error}"]) from None
    return make_reading(path, responses, notes, url=url, title="", kind="WARC")


def read_records(file: BinaryIO, notes: Notes, allowance: Allowance) -> Iterator[Response]:
    """The responses of one WARC, each with its request, in the order of the file.

    Raises:
        BrokenWarcError: it is no WARC, or not to its end.
        TooMuchError: it is larger than what is taken in.
    """
    found: list[tuple[Response, str, str]] = []
    requests: dict[str, tuple[str, Headers]] = {}
    count = 0
    try:
        with redirect_stderr(io.StringIO()):
            source = Unpacked(file, allowance)
            iterator = WARCIterator(source)
            iterator.reader = lines = BoundedLines(source, block_size=PIECE_BYTES)
            for record in iterator:
                count += 1
                body = record.raw_stream.read(BODY_BYTES + 1)
                if record.length is None or len(body) < min(record.payload_length, BODY_BYTES):
                    raise EOFError("the file ends too early, so fetch it again")
                if record.rec_type == "request" and record.http_headers is not None:
                    request = (_method(record), _headers(record.http_headers))
                    for name in ("WARC-Concurrent-To", "WARC-Target-URI"):
                        requests.setdefault(_field(record, name), request)
                elif record.rec_type in ("response", "revisit"):
                    response = _response(record, body, notes)
                    if response is not None:
                        ids = _field(record, "WARC-Record-ID"), _field(record, "WARC-Concurrent-To")
                        found.append((response, *ids))
            # warcio takes a record that is cut in its head for the end; a record ends in blanks.
            if count and lines.last.strip():
                raise EOFError("the file ends too early, so fetch it again")
    except TooMuchError:
        raise
    except _BROKEN as error:
        plain = isinstance(error, ArchiveLoadFailed | EOFError | OSError | zlib.error)
        reason = printable(str(error)) if plain and str(error) else "not as ISO 28500 has it"
        raise BrokenWarcError(f"record {count + 1}: {reason}") from None
    if not count:
        raise BrokenWarcError("there is no record")
    for response, own, other in found:
        asked = requests.get(own) or requests.get(other) or requests.get(response.claim.url)
        yield _with_request(response, asked)


def _response(record: Any, body: bytes, notes: Notes) -> Response | None:
    """The record as a response; ``None`` for one that is no HTTP response."""
    url = _field(record, "WARC-Target-URI")
    head = record.http_headers
    if head is None and record.rec_type == "response":
        notes.add("Records left out, no HTTP responses", url)
        return None
    headers = _headers(head) if head is not None else ()
    status = head.statusline.split(" ", 1)[0] if head is not None else ""
    is_h2 = any(
        name.lower() == "warc-protocol" and value.lower() in ("h2", "h3", "http/2", "http/3")
        for name, value in record.rec_headers.headers
    )
    revisit = record.rec_type == "revisit"
    served = None if revisit else plain_body(body, find_header(headers, "transfer-encoding"))
    length = find_header(headers, "content-length").strip()
    known = len(length) < 16 and length.isascii() and length.isdigit()
    claim = Claim(
        url=url,
        status=int(status) if len(status) == 3 and status.isascii() and status.isdigit() else 0,
        protocol="h2" if is_h2 else "http/1.1",
        headers=headers,
        headers_size=None if is_h2 or head is None else _head_size(head, headers),
        body=served,
        body_size=int(length) if known else None if served is None else len(served),
        mime=media_type(find_header(headers, "content-type")),
    )
    digest = _field(record, "WARC-Payload-Digest")
    return Response(claim, _moment(_field(record, "WARC-Date")), digest)


def _head_size(head: Any, headers: Headers) -> int:
    line = len(f"{head.protocol} {head.statusline}") + 2
    return line + sum(len(name) + len(value) + 4 for name, value in headers) + 2


def _with_request(response: Response, request: tuple[str, Headers] | None) -> Response:
    if request is None:
        return response
    method, headers = request
    claim = replace(
        response.claim,
        method=method,
        request_headers=headers,
        initiator=find_header(headers, "referer") or None,
    )
    return replace(response, claim=claim)


def make_reading(
    path: Path, responses: list[Response], notes: Notes, *, url: str | None, title: str, kind: str
) -> Reading:
    """The responses as one page, by WARC-Date; a revisit gets the body that it points to.

    Raises:
        ConfigurationError: there are none, or too many.
    """
    if not responses:
        raise ConfigurationError([f"{path}: no responses in this {kind}"])
    if len(responses) > ENTRIES:
        raise ConfigurationError(
            [f"{path}: {len(responses)} responses, at most {ENTRIES} are taken; import a {kind} of "
             "one page"]
        )  # fmt: skip
    bodies = {r.digest: r.claim for r in responses if r.digest and r.claim.body is not None}
    claims = [_revisited(response, bodies) for response in responses]
    moments = [response.moment for response in responses]
    known = [moment for moment in moments if moment is not None]
    first = min(known, default=None)
    # Dates of whole seconds tell an order, not a time.
    fine = len(known) == len(moments) and any(moment.microsecond for moment in known)
    order = list(range(len(claims)))
    if len(known) == len(moments):
        order.sort(key=known.__getitem__)
    placed = []
    for index in order:
        moment = moments[index]
        start = (moment - first).total_seconds() * 1000 if fine and moment and first else None
        placed.append(replace(claims[index], start_ms=start))
    return Reading(
        title=title,
        url=url,
        recorded=first.date() if first else date.fromtimestamp(path.stat().st_mtime),
        source=f"The {kind} file {path.name}.",
        claims=without_robots(placed, url, notes),
        notes=notes,
    )


def _revisited(response: Response, bodies: dict[str, Claim]) -> Claim:
    claim, original = response.claim, bodies.get(response.digest)
    if claim.body is not None or original is None:
        return claim
    if not claim.headers:
        claim = replace(
            claim,
            status=original.status,
            headers=original.headers,
            headers_size=original.headers_size,
            mime=original.mime,
        )
    return replace(claim, body=original.body, body_size=original.body_size)


def _field(record: Any, name: str) -> str:
    value = record.rec_headers.get_header(name)
    return whole_text(value) if isinstance(value, str) else ""


def _method(record: Any) -> str:
    return str(record.http_headers.protocol)


def _headers(head: Any) -> Headers:
    return tuple((whole_text(str(name)), whole_text(str(value))) for name, value in head.headers)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text[:40])
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
