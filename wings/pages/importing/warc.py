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
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO

from warcio.archiveiterator import WARCIterator  # type: ignore[import-untyped]
from warcio.bufferedreaders import BufferedReader  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]
from warcio.statusandheaders import (  # type: ignore[import-untyped]
    StatusAndHeadersParserException,
)

from testbed.archive.head import NOT_MODIFIED
from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Headers, find_header
from wings.pages.importing.crawl import Crawl, CrawlResponse, ListedPage, cut_page
from wings.pages.importing.framing import with_body
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
from wings.pages.importing.untrusted import Budget, Fields, parse_json, parse_moment, whole_text
from wings.pages.limits import ARCHIVE_BYTES, BODY_BYTES, ENTRIES, LINE_BYTES, mib

_PIECE_BYTES = 1 << 16
_INFO = "urn:pageinfo:"  # of which Browsertrix makes the address of its record on a page
# What warcio raises for records that are none.
_BROKEN = (ArchiveLoadFailed, StatusAndHeadersParserException, EOFError, ValueError, LookupError,
           AttributeError, TypeError, AssertionError, OSError, zlib.error)  # fmt: skip


class BrokenWarcError(Exception):
    """The file is no WARC from some place on; the message is a clause."""


@dataclass(frozen=True, slots=True)
class _Record:
    """A response or revisit of a WARC; ``body`` is ``None`` for a revisit."""

    response: CrawlResponse
    body: bytes | None
    cut_by: str
    digest: str
    refers_to: str
    keys: tuple[str, ...]


def new_budget() -> Budget:
    """Return what may be unpacked, of all files of one import together."""
    problem = f"more than {mib(ARCHIVE_BYTES)} of records; import fewer pages"
    return Budget(ARCHIVE_BYTES, problem)


def read_warc(path: Path, *, url: str | None = None) -> Reading:
    """Read the responses of a WARC, plain or gzip, as one page: that of ``url``, or the first.

    Raises:
        ConfigurationError: it is broken, too large, or has no responses.
        OSError: it cannot be read.
    """
    reader = WarcReader(Notes(), new_budget())
    try:
        with path.open("rb") as file:
            reader.read(file)
    except BrokenWarcError as error:
        raise ConfigurationError([f"a broken WARC: {error}"]) from None
    return make_reading(path, reader, url=url, kind="WARC")


class WarcReader:
    """Reads WARC files of one crawl, one after another."""

    def __init__(self, notes: Notes, budget: Budget) -> None:
        self.notes, self.budget = notes, budget
        self._records: list[_Record] = []
        self._requests: dict[str, tuple[str, Headers]] = {}
        self.pages: list[ListedPage] = []
        self._noted: list[ListedPage] = []
        self._asked: dict[str, frozenset[str]] = {}

    def read(self, file: BinaryIO) -> None:
        """Read one file.

        Raises:
            BrokenWarcError: it is no WARC, or not to its end.
            ConfigurationError: it is larger than what is taken in.
        """
        count = 0
        try:
            with redirect_stderr(io.StringIO()):
                source = _Unpacked(file, self.budget)
                iterator = WARCIterator(source)
                iterator.reader = lines = _BoundedLines(source, block_size=_PIECE_BYTES)
                for record in iterator:
                    count += 1
                    body = record.raw_stream.read(BODY_BYTES + 1)
                    if record.length is None or len(body) < min(record.payload_length, BODY_BYTES):
                        raise EOFError("the file ends too early, so fetch it again")
                    self._take(record, body)
                # warcio takes a record that is cut in its head for the end; one ends in blanks.
                if count and lines.last.strip():
                    raise EOFError("the file ends too early, so fetch it again")
        except _BROKEN as error:
            plain = isinstance(error, ArchiveLoadFailed | EOFError | OSError | zlib.error)
            reason = printable(str(error)) if plain and str(error) else "not as ISO 28500 has it"
            raise BrokenWarcError(f"record {count + 1}: {reason}") from None
        if not count:
            raise BrokenWarcError("there is no record")

    def crawl(self) -> Crawl:
        """Return what was read: each response with its request, each revisit with its body."""
        with_bodies: dict[str, Claim] = {}
        claims: list[Claim] = []
        for record in self._records:
            claim = record.response.claim
            found = (self._requests[key] for key in record.keys if key in self._requests)
            if request := next(found, None):
                method, headers = request
                referer = find_header(headers, "referer") or None
                claim = replace(claim, method=method, request_headers=headers, initiator=referer)
            if record.body is not None:
                claim = with_body(claim, record.body, self.notes, record.cut_by)
                if claim.body is not None:
                    with_bodies.setdefault(claim.url, claim)
                    with_bodies[record.digest or claim.url] = claim
            claims.append(claim)
        responses = [
            replace(record.response, claim=_revisited(claim, record, with_bodies, self.notes))
            for record, claim in zip(self._records, claims, strict=True)
        ]
        return Crawl(responses, self.pages or self._noted, self._asked)

    def _take(self, record: Any, body: bytes) -> None:
        if record.rec_type == "request" and record.http_headers is not None:
            request = (str(record.http_headers.protocol), _headers(record.http_headers))
            for name in ("WARC-Concurrent-To", "WARC-Target-URI"):
                self._requests.setdefault(_field(record, name), request)
        elif record.rec_type in ("response", "revisit"):
            found = _response(record, body, self.notes)
            self._records += [found] if found is not None else []
        elif record.rec_type == "resource" and _field(record, "WARC-Target-URI").startswith(_INFO):
            self._note_page(_field(record, "WARC-Target-URI").removeprefix(_INFO), body)

    def _note_page(self, url: str, data: bytes) -> None:
        """Take what Browsertrix says that a page asked for."""
        fields = Fields(parse_json(data, self.notes), _INFO, self.notes)
        page = ListedPage(fields.text("pageid"), url, moment=parse_moment(fields.raw("ts")))
        self._noted.append(page)
        urls = frozenset(fields.fields("urls").names())
        self._asked |= {key: urls for key in (page.id, url) if key}


def make_reading(path: Path, reader: WarcReader, *, url: str | None, kind: str,
                 page_id: str | None = None) -> Reading:  # fmt: skip
    """Return the responses of one page, by WARC-Date.

    Raises:
        ConfigurationError: there are none, or too many, or there is no such page.
    """
    notes, crawl = reader.notes, reader.crawl()
    if not crawl.responses:
        raise ConfigurationError([f"no responses in this {kind}"])
    responses, page = cut_page(crawl, notes, url=url, page_id=page_id)
    if len(responses) > ENTRIES:
        remedy = f"at most {ENTRIES} are taken; import a {kind} of one page"
        raise ConfigurationError([f"{len(responses)} responses, {remedy}"])
    start = page.url if page is not None else url
    moments = [response.moment for response in responses]
    dated = [moment for moment in moments if moment is not None]
    first = min(dated, default=None)
    # Dates of whole seconds tell an order, not a time.
    fine = len(dated) == len(moments) and any(moment.microsecond for moment in dated)
    order = list(range(len(responses)))
    if len(dated) == len(moments):
        order.sort(key=dated.__getitem__)
    placed = []
    for index in order:
        moment = moments[index]
        begun = (moment - first).total_seconds() * 1000 if fine and moment and first else None
        placed.append(replace(responses[index].claim, start_ms=begun))
    return Reading(
        title=page.title if page is not None else "", url=start,
        source=f"The {kind} file {path.name}.", notes=notes,
        recorded=first.date() if first else date.fromtimestamp(path.stat().st_mtime),
        claims=tuple(_without_robots(placed, start, notes)),
    )  # fmt: skip


def _response(record: Any, body: bytes, notes: Notes) -> _Record | None:
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
    line = "" if head is None else f"{head.protocol} {head.statusline}"
    claim = Claim(
        url=url,
        status=int(status) if len(status) == 3 and status.isascii() and status.isdigit() else 0,
        protocol="h2" if is_h2 else "http/1.1",
        headers=headers,
        headers_size=None if is_h2 or head is None else head_size(line, headers),
        body_size=whole_number(find_header(headers, "content-length")),
        mime=media_type(find_header(headers, "content-type")),
    )
    truncated = _field(record, "WARC-Truncated")
    moment = parse_moment(_field(record, "WARC-Date"))
    return _Record(
        CrawlResponse(claim, moment, _field(record, "WARC-Page-ID")),
        body=None if record.rec_type == "revisit" else body,
        cut_by=f"WARC-Truncated: {printable(truncated)}" if truncated else "",
        digest=_field(record, "WARC-Payload-Digest"),
        refers_to=_field(record, "WARC-Refers-To-Target-URI"),
        keys=(_field(record, "WARC-Record-ID"), _field(record, "WARC-Concurrent-To"), url),
    )


def _revisited(claim: Claim, record: _Record, with_bodies: dict[str, Claim], notes: Notes) -> Claim:
    """Return a revisit with the body that it points to, by digest or by URL."""
    if record.body is not None:
        return claim
    keys = (record.digest, record.refers_to, claim.url)
    original = next((with_bodies[key] for key in keys if key in with_bodies), None)
    if original is None:
        notes.add("Revisits of what is not in the file, taken as not recorded", claim.url)
        return claim
    if not claim.headers or claim.status == NOT_MODIFIED:
        claim = replace(claim, status=original.status, headers=original.headers,
                        headers_size=original.headers_size, mime=original.mime)  # fmt: skip
    return replace(claim, body=original.body, body_size=original.body_size,
                   body_is_decoded=original.body_is_decoded)  # fmt: skip


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
