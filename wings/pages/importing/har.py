"""HAR importer: HAR 1.2 of Chrome, Firefox, Browsertime, WebPageTest, Playwright, mitmproxy, ours.

Sources: http://www.softwareishard.com/blog/har-12-spec/ and what these tools write beyond it.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from pathlib import Path

from testbed.base.errors import ConfigurationError
from wings.pages.importing.har_entry import OWN_PRODUCERS, is_workers, make_claim, refine, url_of
from wings.pages.importing.importer import ZIP_MARK, Claim, FileStart, Importer, Reading
from wings.pages.importing.notes import Notes
from wings.pages.importing.untrusted import (
    Budget,
    Fields,
    opened_zip,
    parse_json,
    parse_moment,
    read_json,
)
from wings.pages.limits import ARCHIVE_BYTES, ENTRIES, HAR_BYTES, mib

_EARLIEST_S = 60  # from the page, that a request still belongs to it


def read_har(path: Path, *, url: str | None = None, page: str | None = None) -> Reading:
    """Read one page of a HAR, the first one unless ``page`` has the id of another.

    Raises:
        ConfigurationError: the file is no HAR, has no such page, or has no or too many requests.
        OSError: it cannot be read.
    """
    notes = Notes()
    attached: dict[str, bytes] = {}
    if zipfile.is_zipfile(path) and is_har_zip(path):
        data, attached = read_har_zip(path)
        document = Fields(parse_json(data, notes), "the file", notes)
    else:
        document = Fields(read_json(path, notes), "the file", notes)
    if not isinstance(document.raw("log"), dict):
        raise ConfigurationError(["no HAR: there is no object `log`"])
    log = document.fields("log")
    entries = log.members("entries")
    chosen = _choose_page(log, entries, page)
    kept = list(_without_workers(list(_of_page(entries, chosen, notes)), notes))
    if not kept:
        raise ConfigurationError(["no requests of the page; export it with its log"])
    if len(kept) > ENTRIES:
        remedy = "give --page, or export one page alone"
        raise ConfigurationError([f"{len(kept)} requests, at most {ENTRIES} are taken; {remedy}"])
    started = parse_moment(chosen.raw("startedDateTime")) if chosen else None
    moments = [parse_moment(entry.raw("startedDateTime")) for entry in kept]
    started = _by_one_clock(started, moments, notes)
    zero = _zero(started, moments)
    load_ms = chosen.fields("pageTimings").number("onLoad") if chosen else None
    if load_ms is not None and started and zero and load_ms >= 0:
        load_ms += (started - zero).total_seconds() * 1000
    title = chosen.text("title") if chosen else ""
    producer = log.fields("creator").text("name").lower()
    is_own = producer in OWN_PRODUCERS
    claims = []
    for entry, moment in zip(kept, moments, strict=True):
        start_ms = (moment - zero).total_seconds() * 1000 if moment and zero else None
        claims.append(make_claim(entry, start_ms, producer, notes, attached))
    if is_own:
        refined = [refine(claim, e, notes) for claim, e in zip(claims, kept, strict=True)]
        claims = order_by_parent(refined)
    used = dict.fromkeys(entry.text("pageref") for entry in entries)
    return Reading(
        title=title, url=url,
        recorded=zero.date() if zero else date.fromtimestamp(path.stat().st_mtime),
        source=_source(path, log), claims=tuple(claims), notes=notes, load_ms=load_ms,
        is_ordered=is_own, is_session=not is_own,
        other_pages=tuple(n for n in used if chosen and n not in ("", chosen.text("id"))),
        pinned=is_own and chosen is not None and chosen.raw("_pinned") is True,
        page={name: chosen.raw(name) for name in ("_device", "_viewport")} if chosen else {},
    )  # fmt: skip


def is_har_zip(path: Path) -> bool:
    """Return whether the zip file ``path`` has a HAR at its top, and so is no WACZ."""
    try:
        with opened_zip(path, "zip") as archive:
            return any(map(_is_har, archive.namelist()))
    except ConfigurationError:
        return False


def read_har_zip(path: Path) -> tuple[bytes, dict[str, bytes]]:
    """Read a HAR and the bodies beside it, by name (Playwright's ``content: "attach"``).

    Raises:
        ConfigurationError: the zip is broken, too large, or has several HARs.
    """
    problem = f"more than {mib(ARCHIVE_BYTES)} unpacked; export fewer pages"
    budget = Budget(ARCHIVE_BYTES, problem)
    with opened_zip(path, "zip") as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        hars = [member.filename for member in members if _is_har(member.filename)]
        if len(hars) != 1:
            raise ConfigurationError([f"{len(hars)} HARs in one zip; import one"])
        if len(members) > 2 * ENTRIES:
            raise ConfigurationError([f"more than {2 * ENTRIES} files"])
        files: dict[str, bytes] = {}
        for member in members:
            with archive.open(member) as file:
                files[member.filename] = file.read(budget.left + 1)
            budget.take(len(files[member.filename]))
    har = files.pop(hars[0])
    if len(har) > HAR_BYTES:
        raise ConfigurationError([f"a HAR of more than {mib(HAR_BYTES)}"])
    return har, files


def order_by_parent(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims in their order, except that each comes behind the one that led to it.

    In a table, what has no recorded start comes last, also when it led to others; an archive that
    is written anew resolves what led to a request among those before it.
    """
    first = {claim.url: index for index, claim in reversed(list(enumerate(claims)))}
    placed: dict[int, None] = {}
    for index in range(len(claims)):
        waiting: dict[int, None] = {}
        at: int | None = index
        while at is not None and at not in placed and at not in waiting:
            waiting[at] = None
            at = first.get(claims[at].initiator or "")
        placed |= dict.fromkeys(reversed(waiting))
    return [claims[index] for index in placed]


def _is_har(name: str) -> bool:
    return "/" not in name and name.lower().endswith(".har")


def _recognises(sample: FileStart) -> bool:
    zipped = sample.start.startswith(ZIP_MARK) and is_har_zip(sample.path)
    return zipped or sample.text.startswith("{")


def _source(path: Path, log: Fields) -> str:
    creator, browser = log.fields("creator"), log.fields("browser")
    named = (tool for tool in (creator, browser) if tool.text("name"))
    words = [f"{tool.text('name')} {tool.text('version')}".strip() for tool in named]
    return f"The HAR file {path.name} by {' with '.join(words) or 'a tool that left no name'}."


def _choose_page(log: Fields, entries: list[Fields], page_id: str | None) -> Fields | None:
    """Return the page that was asked for, or the first one with requests to a server."""
    pages = {page.text("id"): page for page in reversed(log.members("pages"))}
    if page_id is not None:
        if page_id not in pages:
            names = ", ".join(ascii(name)[1:-1][:60] for name in list(pages)[::-1][:20])
            raise ConfigurationError([f"no page {page_id!r}; the pages are {names or 'not named'}"])
        return pages[page_id]
    used = {*pages}
    if len(pages) > 1:
        used = {e.text("pageref") for e in entries if url_of(e).lower().startswith("http")} or used
    return next((page for name, page in reversed(pages.items()) if name in used), None)


def _of_page(entries: list[Fields], page: Fields | None, notes: Notes) -> Iterator[Fields]:
    """Yield the requests of one page; one that names none belongs to every page."""
    for entry in entries:
        reference = entry.text("pageref")
        if page is None or reference in ("", page.text("id")):
            yield entry
        else:
            notes.add("Requests left out, of another page of the file", reference)


def _without_workers(entries: list[Fields], notes: Notes) -> Iterator[Fields]:
    """Leave out what a service worker answered, if its own request to the network is there."""
    network_urls = {url_of(entry) for entry in entries if not is_workers(entry)}
    for entry in entries:
        if is_workers(entry) and url_of(entry) in network_urls:
            notes.add("Requests left out, answered by a service worker", url_of(entry))
        else:
            yield entry


def _by_one_clock(
    started: datetime | None, moments: list[datetime | None], notes: Notes
) -> datetime | None:
    """Return the page's start; that of its first request where no request is near it."""
    timed = [moment for moment in moments if moment is not None]
    near = (abs((m - started).total_seconds()) < _EARLIEST_S for m in timed if started)
    if started is None or not timed or any(near):
        return started
    notes.add("Pages by another clock than their requests, begun with the first", str(started))
    return min(timed)


def _zero(started: datetime | None, moments: list[datetime | None]) -> datetime | None:
    """Return time zero: the page's start, or its first request if that is a little earlier."""
    timed = [moment for moment in moments if moment is not None]
    if started is None:
        return min(timed, default=None)
    return min(m for m in (started, *timed) if (started - m).total_seconds() < _EARLIEST_S)


IMPORTER = Importer(
    "har", "a HAR (also gzip, or zip with its bodies)", _recognises, read_har, has_pages=True
)
