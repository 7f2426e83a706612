"""WACZ importer: a zip of WARC files and a list of pages (Webrecorder's specification 1.1.1)."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import ConfigurationError
from wings.pages.importing.importer import Claim, Importer, Reading
from wings.pages.importing.notes import Notes, printable
from wings.pages.importing.sanitiser import UnusableError, clean_url
from wings.pages.importing.untrusted import Budget, Fields, opened_zip
from wings.pages.importing.warc import (
    BrokenWarcError,
    WarcResponse,
    make_reading,
    new_budget,
    read_records,
)
from wings.pages.limits import ENTRIES, LINE_BYTES

_PAGES = "pages/pages.jsonl"
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class _Page:
    id: str
    url: str
    title: str


def read_wacz(path: Path, *, url: str | None = None, page: str | None = None) -> Reading:
    """Read one page of a WACZ: that of ``url``, that with the id ``page``, or the first listed.

    Where the file has several pages, only what a page asked for, by the Referers, is read.

    Raises:
        ConfigurationError: it is broken, too large, or has no such page or no responses.
    """
    notes, budget = Notes(), new_budget()
    responses: list[WarcResponse] = []
    with opened_zip(path, "WACZ") as archive:
        if len(archive.infolist()) > ENTRIES:
            raise ConfigurationError([f"more than {ENTRIES} files"])
        pages = _read_pages(archive, budget, notes)
        for member in archive.infolist():
            name = member.filename.lower()
            if name.startswith("archive/") and name.endswith((".warc", ".warc.gz")):
                with archive.open(member) as file:
                    try:
                        responses += read_records(file, notes, budget)  # type: ignore[arg-type]
                    except BrokenWarcError as error:
                        raise ConfigurationError([f"holds a broken WARC: {error}"]) from None
    chosen = _choose(pages, url, page)
    start = url or (chosen.url if chosen else None)
    if start is not None and len(pages) > 1:
        responses = _of_page(responses, start, notes)
    title = chosen.title if chosen else ""
    return make_reading(path, responses, notes, url=start, title=title, kind="WACZ")


def _read_pages(archive: zipfile.ZipFile, budget: Budget, notes: Notes) -> list[_Page]:
    if _PAGES not in archive.namelist():
        return []
    pages: list[_Page] = []
    with archive.open(_PAGES) as file:
        while line := file.readline(LINE_BYTES):
            budget.take(len(line))
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                notes.add("Lines of pages.jsonl that are no JSON, left out")
                continue
            fields = Fields(value, _PAGES, notes)
            if fields.text("url"):
                pages.append(_Page(fields.text("id"), fields.text("url"), fields.text("title")))
    return pages


def _choose(pages: list[_Page], url: str | None, page_id: str | None) -> _Page | None:
    if page_id is not None:
        for page in pages:
            if page.id == page_id:
                return page
        page_ids = ", ".join(printable(page.id) for page in pages[:_SHOWN]) or "not listed"
        raise ConfigurationError([f"no page {page_id!r}; the pages are {page_ids}"])
    if url is not None:
        return next((page for page in pages if page.url == url), None)
    return pages[0] if pages else None


def _of_page(responses: list[WarcResponse], start: str, notes: Notes) -> list[WarcResponse]:
    """Return the responses that ``start`` led to by its redirects, and by Referer."""
    urls = {_clean(start)}
    selected: set[int] = set()
    while True:
        more = {index for index, response in enumerate(responses) if index not in selected
                and not urls.isdisjoint(_own_urls(response.claim))}  # fmt: skip
        if not more:
            break
        selected |= more
        for index in more:
            claim = responses[index].claim
            locations = (value for name, value in claim.headers if name.lower() == "location")
            urls |= {_clean(url) for url in (claim.url, *locations)}
    for index, response in enumerate(responses):
        if index not in selected:
            notes.add("Records left out, of other pages by their Referer", response.claim.url)
    return [response for index, response in enumerate(responses) if index in selected]


def _own_urls(claim: Claim) -> set[str]:
    return {_clean(url) for url in (claim.url, claim.initiator) if url}


def _clean(url: str) -> str:
    try:
        return clean_url(url)
    except UnusableError:
        return url


IMPORTER = Importer("wacz", "a WACZ", lambda sample: sample.is_zip, read_wacz, has_pages=True)
