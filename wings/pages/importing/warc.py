"""WARC importer (ISO 28500): requests, responses and revisits, bodies as kept.

warcio reads the records; each gzip member, line, body and the whole are bounded before it may
collect them.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO

from warcio.archiveiterator import WARCIterator  # type: ignore[import-untyped]
from warcio.bufferedreaders import BufferedReader  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]
from warcio.statusandheaders import (  # type: ignore[import-untyped]
    StatusAndHeadersParserException,
)

from testbed.base.errors import ConfigurationError
from wings.pages.coding import plain_body
from wings.pages.exchange import Headers, find_header
from wings.pages.importing.importer import (
    GZIP_MARK,
    Claim,
    Importer,
    Reading,
    head_size,
    media_type,
    whole_number,
)
from wings.pages.importing.notes import Notes, printable
from wings.pages.importing.untrusted import Budget, parse_moment, whole_text
from wings.pages.limits import ARCHIVE_BYTES, BODY_BYTES, ENTRIES, LINE_BYTES, mib

_PIECE_BYTES = 1 << 16
# What warcio raises for records that are none.
_BROKEN = (ArchiveLoadFailed, StatusAndHeadersParserException, EOFError, ValueError, LookupError,
           AttributeError, TypeError, AssertionError, OSError, zlib.error)  # fmt: skip


class BrokenWarcError(Exception):
    """The file is no WARC from some place on; the message is a clause."""


@dataclass(frozen=True, slots=True)
class WarcResponse:
    """One response of a WARC beside the request that it answers."""

    claim: Claim
    moment: datetime | None
    digest: str


def new_budget() -> Budget:
    """Return what may be unpacked, of all files of one import together."""
    problem = f"more than {mib(ARCHIVE_BYTES)} of records; import fewer pages"
    return Budget(ARCHIVE_BYTES, problem)


def read_warc(path: Path, *, url: str | None = None) -> Reading:
    """Read the responses of a WARC, plain or gzip, as one page.

    Raises:
        ConfigurationError: it is broken, too large, or has no responses.
        OSError: it cannot be read.
    """
    notes = Notes()
    try:
        with path.open("rb") as file:
            responses = list(read_records(file, notes, new_budget()))
    except BrokenWarcError as error:
        raise ConfigurationError([f"a broken WARC: {error}"]) from None
    return make_reading(path, responses, notes, url=url, title="", kind="WARC")


def read_records(file: BinaryIO, notes: Notes, budget: Budget) -> Iterator[WarcResponse]:
    """Read the responses of one WARC, each with its request, in the order of the file.

    Raises:
        BrokenWarcError: it is no WARC, or not to its end.
        ConfigurationError: it is larger than what is taken in.
    """
    responses: list[tuple[WarcResponse, str, str]] = []
    requests: dict[str, tuple[str, Headers]] = {}
    count = 0
    try:
        with redirect_stderr(io.StringIO()):
            source = _Unpacked(file, budget)
            iterator = WARCIterator(source)
            iterator.reader = lines = _BoundedLines(source, block_size=_PIECE_BYTES)
            for record in iterator:
                count += 1
                body = record.raw_stream.read(BODY_BYTES + 1)
                if record.length is None or len(body) < min(record.payload_length, BODY_BYTES):
                    raise EOFError("the file ends too early, so fetch it again")
                if record.rec_type == "request" and record.http_headers is not None:
                    request = (str(record.http_headers.protocol), _headers(record.http_headers))
                    for name in ("WARC-Concurrent-To", "WARC-Target-URI"):
                        requests.setdefault(_field(record, name), request)
                elif record.rec_type in ("response", "revisit"):
                    response = _response(record, body, notes)
                    if response is not None:
                        ids = _field(record, "WARC-Record-ID"), _field(record, "WARC-Concurrent-To")
                        responses.append((response, *ids))
            # warcio takes a record that is cut in its head for the end; a record ends in blanks.
            if count and lines.last.strip():
                raise EOFError("the file ends too early, so fetch it again")
    except _BROKEN as error:
        plain = isinstance(error, ArchiveLoadFailed | EOFError | OSError | zlib.error)
        reason = printable(str(error)) if plain and str(error) else "not as ISO 28500 has it"
        raise BrokenWarcError(f"record {count + 1}: {reason}") from None
    if not count:
        raise BrokenWarcError("there is no record")
    for response, record_id, concurrent_id in responses:
        keys = (record_id, concurrent_id, response.claim.url)
        found = (requests[key] for key in keys if key in requests)
        yield _with_request(response, next(found, None))


def make_reading(path: Path, responses: list[WarcResponse], notes: Notes, *, url: str | None,
                 title: str, kind: str) -> Reading:  # fmt: skip
    """Return the responses as one page, by WARC-Date; a revisit gets the body that it points to.

    Raises:
        ConfigurationError: there are none, or too many.
    """
    if not responses:
        raise ConfigurationError([f"no responses in this {kind}"])
    if len(responses) > ENTRIES:
        remedy = f"at most {ENTRIES} are taken; import a {kind} of one page"
        raise ConfigurationError([f"{len(responses)} responses, {remedy}"])
    bodies = {r.digest: r.claim for r in responses if r.digest and r.claim.body is not None}
    claims = [_revisited(response, bodies) for response in responses]
    moments = [response.moment for response in responses]
    dated = [moment for moment in moments if moment is not None]
    first = min(dated, default=None)
    # Dates of whole seconds tell an order, not a time.
    fine = len(dated) == len(moments) and any(moment.microsecond for moment in dated)
    order = list(range(len(claims)))
    if len(dated) == len(moments):
        order.sort(key=dated.__getitem__)
    placed = []
    for index in order:
        moment = moments[index]
        start = (moment - first).total_seconds() * 1000 if fine and moment and first else None
        placed.append(replace(claims[index], start_ms=start))
    return Reading(
        title=title, url=url, source=f"The {kind} file {path.name}.", notes=notes,
        recorded=first.date() if first else date.fromtimestamp(path.stat().st_mtime),
        claims=tuple(_without_robots(placed, url, notes)),
    )  # fmt: skip


def _response(record: Any, body: bytes, notes: Notes) -> WarcResponse | None:
    """Return the record as a response; ``None`` for one that is no HTTP response."""
    url = _field(record, "WARC-Target-URI")
    head = record.http_headers
    if head is None and record.rec_type == "response":
        notes.add("Records left out, no HTTP responses", url)
        return None
    headers = _headers(head) if head is not None else ()
    status = head.statusline.split(" ", 1)[0] if head is not None else ""
    spoken = {
        v.lower() for name, v in record.rec_headers.headers if name.lower() == "warc-protocol"
    }
    is_h2 = not spoken.isdisjoint(("h2", "h3", "http/2", "http/3"))
    revisit = record.rec_type == "revisit"
    served = None if revisit else plain_body(body, find_header(headers, "transfer-encoding"))
    length = whole_number(find_header(headers, "content-length"))
    served_size = None if served is None else len(served)
    line = "" if head is None else f"{head.protocol} {head.statusline}"
    claim = Claim(
        url=url,
        status=int(status) if len(status) == 3 and status.isascii() and status.isdigit() else 0,
        protocol="h2" if is_h2 else "http/1.1",
        headers=headers,
        headers_size=None if is_h2 or head is None else head_size(line, headers),
        body=served,
        body_size=served_size if length is None else length,
        mime=media_type(find_header(headers, "content-type")),
    )
    digest = _field(record, "WARC-Payload-Digest")
    return WarcResponse(claim, parse_moment(_field(record, "WARC-Date")), digest)


def _with_request(response: WarcResponse, request: tuple[str, Headers] | None) -> WarcResponse:
    if request is None:
        return response
    method, headers = request
    referer = find_header(headers, "referer") or None
    claim = replace(response.claim, method=method, request_headers=headers, initiator=referer)
    return replace(response, claim=claim)


def _revisited(response: WarcResponse, bodies: dict[str, Claim]) -> Claim:
    claim, original = response.claim, bodies.get(response.digest)
    if claim.body is not None or original is None:
        return claim
    if not claim.headers:
        claim = replace(claim, status=original.status, headers=original.headers,
                        headers_size=original.headers_size, mime=original.mime)  # fmt: skip
    return replace(claim, body=original.body, body_size=original.body_size)


def _without_robots(claims: Sequence[Claim], url: str | None, notes: Notes) -> Iterator[Claim]:
    """Leave out each robots.txt (RFC 9309), unless it is ``url``, the page itself, or led to.

    Crawlers ask each host for it.  A browser never would, and its load would lack a request.
    """
    for claim in claims:
        path = claim.url.partition("://")[2].partition("/")[2]
        if path == "robots.txt" and claim.url != url and claim.initiator is None:
            notes.add("Requests left out, robots.txt, which no browser asks for", claim.url)
        else:
            yield claim


def _field(record: Any, name: str) -> str:
    value = record.rec_headers.get_header(name)
    return whole_text(value) if isinstance(value, str) else ""


def _headers(head: Any) -> Headers:
    return tuple((whole_text(str(name)), whole_text(str(value))) for name, value in head.headers)


class _BoundedLines(BufferedReader):  # type: ignore[misc]
    """warcio's reader, whose lines would grow without end; ``last`` is the last line."""

    last = b""

    def readline(self, length: int | None = None) -> bytes:
        """Read a line.

        Raises:
            ConfigurationError: it is longer than any that is meant.
        """
        line = b""
        most = min(length or LINE_BYTES, LINE_BYTES)
        while len(line) < most and not line.endswith(b"\n"):
            self._fillbuff()
            if self.empty():
                break
            line += self.buff.readline(most - len(line))
        if len(line) >= LINE_BYTES:
            raise ConfigurationError([f"a line of more than {LINE_BYTES} bytes"])
        self.last = line or self.last
        return line


class _Unpacked:
    """The bytes of a file, gzip members undone piece by piece, and counted."""

    def __init__(self, file: BinaryIO, budget: Budget) -> None:
        self._file = file
        self._budget = budget
        self._rest = file.read(len(GZIP_MARK))
        self._stream = zlib.decompressobj(31) if self._rest == GZIP_MARK else None
        self._inside = False

    def read(self, size: int = -1) -> bytes:
        """Read up to some 64 KiB, whatever ``size`` is; nothing at the end.

        Raises:
            ConfigurationError: it is more than what is taken in.
            EOFError: the last gzip member is not whole.
        """
        while True:
            data = self._rest or self._file.read(_PIECE_BYTES)
            self._rest = b""
            if self._inside and not data:
                raise EOFError("the gzip file ends too early, so fetch it again")
            if self._stream is None or not data:
                self._budget.take(len(data))
                return data
            piece = self._stream.decompress(data, _PIECE_BYTES)
            self._rest = self._stream.unconsumed_tail
            self._inside = not self._stream.eof
            if self._stream.eof:
                self._rest = self._stream.unused_data or self._file.read(_PIECE_BYTES)
                self._stream = zlib.decompressobj(31)
            if piece:
                self._budget.take(len(piece))
                return piece

    def tell(self) -> int:
        """Return where we are; warcio asks, for messages only."""
        return 0


IMPORTER = Importer("warc", "a WARC", lambda sample: sample.start.startswith(b"WARC/"), read_warc)
