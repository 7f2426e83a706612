"""Importers: what each declares, and what it reads, which is not believed until it is screened."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

from wings.pages.exchange import Headers, find_header
from wings.pages.importing.notes import Notes
from wings.pages.table import ResourceRow

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
GZIP_MARK = b"\x1f\x8b"
ZIP_MARK = b"PK\x03\x04"
_START_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Importer:
    """A format that is imported; an importer's module declares its own as ``IMPORTER``.

    Attributes:
        name: one word.
        known_as: what messages call such a file, with its article.
        recognises: whether a file or folder has the format, by its content.
        read: reads a path, given ``url`` and, with ``has_pages``, ``page``; either may be ``None``.
            What is wrong is a ConfigurationError or an OSError; the path is put before it.
        has_pages: whether such a file may have several pages, each with an id.
    """

    name: str
    known_as: str
    recognises: Callable[[FileStart], bool]
    read: Callable[..., Reading | ImportedTable]
    has_pages: bool = False


class FileStart:
    """The beginning of a file, by which its format is recognised; its name says nothing.

    Raises:
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.is_folder = path, path.is_dir()
        self.start, self.is_zip = b"", False
        if not self.is_folder:
            with path.open("rb") as file:
                self.start = file.read(_START_BYTES)
                self.is_zip = self.start.startswith(ZIP_MARK) or zipfile.is_zipfile(file)
        if self.start.startswith(GZIP_MARK):
            try:
                self.start = zlib.decompressobj(31).decompress(self.start, _START_BYTES)
            except zlib.error:
                self.start = b""

    @cached_property
    def text(self) -> str:
        """The beginning as text, from its first letter on."""
        wide = self.start.startswith(UTF16_MARKS)
        return self.start.decode("utf-16" if wide else "utf-8-sig", "replace").lstrip()


@dataclass(frozen=True, slots=True)
class Claim:
    """One request and its response; ``None`` is not recorded, as is a negative number.

    Attributes:
        body: ``None`` when not recorded.
        body_is_decoded: whether ``body`` is what the browser saw, as in a HAR, or what was sent.
        body_size: bytes of the body as transferred.
        size_is_exact: ``body_size`` was counted, not estimated from a size with the head.
        initiator: URL of what led here.
        initiator_kind: ``parser``, ``script`` or nothing.
        how: as ``Exchange.how``, where the file says it; else nothing.
        is_frame: it was loaded as a document of its own.
        after_load: whether it was asked for after the load event; ``None`` leaves it to the times.
        made_up: ``body`` stands in for one that was never recorded.
        from_cache: it was not transferred in this load.
        failure: how it failed in the browser, where the file says it.
    """

    url: str
    method: str = "GET"
    status: int = 200
    protocol: str = ""
    request_headers: Headers = ()
    request_body_size: int | None = None
    headers: Headers = ()
    headers_size: int | None = None
    body: bytes | None = None
    body_is_decoded: bool = False
    body_size: int | None = None
    size_is_exact: bool = True
    decoded_size: int | None = None
    mime: str = ""
    initiator: str | None = None
    initiator_kind: str = ""
    how: str = ""
    is_frame: bool = False
    start_ms: float | None = None
    dur_ms: float | None = None
    after_load: bool | None = None
    made_up: bool = False
    from_cache: bool = False
    failure: str | None = None

    @property
    def served_mime(self) -> str:
        """Its media type as the server said it, else ``mime``."""
        return media_type(find_header(self.headers, "content-type")) or self.mime


@dataclass(frozen=True, slots=True)
class Reading:
    """What an importer read.  ``url`` is the page's own, if the file or the caller names it.

    ``claims`` are in the order of the file, or of the requests where the file says it;
    ``is_ordered`` says that it is the latter, whatever the times say.
    ``is_session`` says that it may be more than one load, as that of a proxy which knows no pages;
    ``other_pages`` are ids of further pages that the file has requests of.
    """

    title: str
    url: str | None
    recorded: date
    source: str
    claims: tuple[Claim, ...]
    notes: Notes
    load_ms: float | None = None
    pinned: bool = False
    is_ordered: bool = False
    is_session: bool = False
    other_pages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedTable:
    """The rows of a page that is numbers only, and what ``page.toml`` says of it."""

    title: str
    url: str
    recorded: date
    source: str
    rows: tuple[ResourceRow, ...]
    notes: tuple[str, ...]


def head_size(line: str, headers: Headers) -> int:
    """Return the bytes of a response head in HTTP/1.1 form with the status line ``line``."""
    return len(line) + 4 + sum(len(name) + len(value) + 4 for name, value in headers)


def media_type(value: str) -> str:
    """Return the media type of a Content-Type value, in lower case, without parameters."""
    return value.partition(";")[0].strip().lower()


def whole_number(text: str) -> int | None:
    """Return the number that a header's value is, if it is one of a size."""
    plain = text.strip()
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 16 else None
