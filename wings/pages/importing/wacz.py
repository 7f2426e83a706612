"""WACZ importer: a zip of WARC files and lists of pages (Webrecorder's specification 1.1.1).

A multi-WACZ (specification 0.1.0) is a zip of such zips.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

from testbed.base.errors import ConfigurationError
from wings.pages.importing.crawl import ListedPage
from wings.pages.importing.importer import Importer, Reading
from wings.pages.importing.notes import Notes, printable
from wings.pages.importing.untrusted import Fields, opened_zip, parse_moment
from wings.pages.importing.warc import BrokenWarcError, WarcReader, make_reading, new_budget
from wings.pages.limits import ENTRIES, LINE_BYTES

_PAGES = ("pages/pages.jsonl", "pages/extraPages.jsonl")
_WARC = (".warc", ".warc.gz")


def read_wacz(path: Path, *, url: str | None = None, page: str | None = None) -> Reading:
    """Read one page of a WACZ: that of ``url``, that with the id ``page``, or the first listed.

    Raises:
        ConfigurationError: it is broken, too large, or has no such page or no responses.
    """
    reader = WarcReader(Notes(), new_budget())
    with opened_zip(path, "WACZ") as archive:
        _read_archive(archive, reader, is_outer=True)
    return make_reading(path, reader, url=url, kind="WACZ", page_id=page)


def _read_archive(archive: zipfile.ZipFile, reader: WarcReader, *, is_outer: bool) -> None:
    if len(archive.infolist()) > ENTRIES:
        raise ConfigurationError([f"more than {ENTRIES} files"])
    for name in _PAGES:
        _read_pages(archive, name, reader)
    for member in archive.infolist():
        name = member.filename.lower()
        if name.startswith("archive/") and name.endswith(_WARC):
            with archive.open(member) as file:
                try:
                    reader.read(file)  # type: ignore[arg-type]
                except BrokenWarcError as error:
                    what = f"holds a broken WARC, {printable(member.filename)}: {error}"
                    raise ConfigurationError([what]) from None
        elif is_outer and name.endswith(".wacz"):
            with archive.open(member) as file:
                data = file.read(reader.budget.left + 1)
            reader.budget.take(len(data))
            with zipfile.ZipFile(io.BytesIO(data)) as inner:
                _read_archive(inner, reader, is_outer=False)


def _read_pages(archive: zipfile.ZipFile, name: str, reader: WarcReader) -> None:
    if name not in archive.namelist():
        return
    with archive.open(name) as file:
        while line := file.readline(LINE_BYTES):
            reader.budget.take(len(line))
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                reader.notes.add("Lines of pages.jsonl that are no JSON, left out")
                continue
            fields = Fields(value, name, reader.notes)
            if fields.text("url"):
                reader.pages.append(
                    ListedPage(fields.text("id"), fields.text("url"), fields.text("title"),
                               parse_moment(fields.raw("ts")))
                )  # fmt: skip


IMPORTER = Importer("wacz", "a WACZ", lambda sample: sample.is_zip, read_wacz, has_pages=True)
