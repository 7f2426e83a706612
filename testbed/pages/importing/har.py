"""Reads HAR 1.2 files: Chrome, Firefox, Browsertime, WebPageTest, Playwright, mitmproxy, ours.

Sources: http://www.softwareishard.com/blog/har-12-spec/ and what these tools write beyond it.
"""

from __future__ import annotations

import base64
import binascii
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.pages.exchange import Headers, find_header
from testbed.pages.importing.claim import Claim, Notes, Reading, media_type
from testbed.pages.importing.har_entry import (
    encode_text,
    find_initiator,
    is_own,
    measure,
    measure_head,
    order_by_parent,
    refine,
)
from testbed.pages.importing.json_file import (
    Fields,
    parse_json,
    parse_moment,
    read_json,
    whole_text,
)
from testbed.pages.limits import ARCHIVE_BYTES, ENTRIES, HAR_BYTES, mib

_BY_WORKER = ("_fetchedViaServiceWorker", "fromServiceWorker", "_fromServiceWorker")
_EARLIEST_S = 60  # before the page, that a request still belongs to it


def read_har(path: Path, *, url: str | None = None, page: str | None = None) -> Reading:
    """Read one page of a HAR, the first one unless ``page`` has the id of another.

    Raises:
        ConfigurationError: the file is no HAR, has no such page, or has no or too many requests.
    """
    notes = Notes()
    attached: dict[str, bytes] = {}
    if zipfile.is_zipfile(path) and is_har_zip(path):
        data, attached = read_har_zip(path)
        document = Fields(parse_json(path, data, notes), "the file", notes)
    else:
        document = Fields(read_json(path, notes), "the file", notes)
    if not isinstance(document.raw("log"), dict):
        raise ConfigurationError([f"{path}: no HAR: there is no object `log`"])
    log = document.fields("log")
    entries = log.members("entries")
    chosen = _choose_page(path, log, entries, page)
    kept = list(_of_page(entries, chosen, notes))
    kept = list(_without_workers(kept, notes))
    if not kept:
        raise ConfigurationError([f"{path}: no requests of the page; export it with its log"])
    if len(kept) > ENTRIES:
        raise ConfigurationError(
            [f"{path}: {len(kept)} requests, at most {ENTRIES} are taken; give --page, or export "
             "one page alone"]
        )  # fmt: skip
    creator = log.fields("creator")
    started = parse_moment(chosen.raw("startedDateTime")) if chosen else None
    moments = [parse_moment(entry.raw("startedDateTime")) for entry in kept]
    zero = _zero(started, moments)
    load_ms = chosen.fields("pageTimings").number("onLoad") if chosen else None
    if load_ms is not None and started and zero and load_ms >= 0:
        load_ms += (started - zero).total_seconds() * 1000
    title = chosen.text("title") if chosen else ""
    producer = creator.text("name").lower()
    claims = [
        _claim(entry, zero, moment, producer, notes, attached)
        for entry, moment in zip(kept, moments, strict=True)
    ]
    own = is_own(producer)
    if own:
        refined = (refine(claim, entry, notes) for claim, entry in zip(claims, kept, strict=True))
        claims = order_by_parent(list(refined))
    return Reading(
        title=title,
        url=url,
        recorded=zero.date() if zero else date.fromtimestamp(path.stat().st_mtime),
        source=_source(path, log),
        claims=tuple(claims),
        notes=notes,
        load_ms=load_ms,
        is_ordered=own,
        is_session=not own,
        other_pages=_other_pages(entries, chosen),
        pinned=own and chosen is not None and chosen.raw("_pinned") is True,
    )


def _source(path: Path, log: Fields) -> str:
    creator, browser = log.fields("creator"), log.fields("browser")
    words = [
        f"{tool.text('name')} {tool.text('version')}".strip()
        for tool in (creator, browser)
        if tool.text("name")
    ]
    return f"The HAR file {path.name} by {' with '.join(words) or 'a tool that left no name'}."


def _choose_page(
    path: Path, log: Fields, entries: list[Fields], asked: str | None
) -> Fields | None:
    """The page that was asked for, or the first one that has requests."""
    pages = {page.text("id"): page for page in reversed(log.members("pages"))}
    if asked is not None:
        if asked not in pages:
            names = ", ".join(ascii(name)[1:-1][:60] for name in list(pages)[::-1][:20])
            raise ConfigurationError(
                [f"{path}: no page {asked!r}; the pages are {names or 'not named'}"]
            )
        return pages[asked]
    used = {entry.text("pageref") for entry in entries}
    return next(
        (page for name, page in reversed(pages.items()) if name in used or len(pages) == 1), None
    )


def _of_page(entries: list[Fields], page: Fields | None, notes: Notes) -> Iterator[Fields]:
    """The requests of one page; one that names none belongs to every page."""
    for entry in entries:
        reference = entry.text("pageref")
        if page is None or reference in ("", page.text("id")):
            yield entry
        else:
            notes.add("Requests left out, of another page of the file", reference)


def _without_workers(entries: list[Fields], notes: Notes) -> Iterator[Fields]:
    """Without what a service worker answered from the network: that request is there as well."""
    asked = {_url_of(entry) for entry in entries if not _is_workers(entry)}
    for entry in entries:
        if _is_workers(entry) and _url_of(entry) in asked:
            notes.add("Requests left out, answered by a service worker", _url_of(entry))
        else:
            yield entry


def _is_workers(entry: Fields) -> bool:
    """Whether a service worker answered, in the words of DevTools and of chrome-har."""
    response = entry.fields("response")
    return any(message.raw(name) is True for message in (entry, response) for name in _BY_WORKER)


def _url_of(entry: Fields) -> str:
    return entry.text("_full_url") or entry.fields("request").text("url")


def _other_pages(entries: list[Fields], page: Fields | None) -> tuple[str, ...]:
    used = dict.fromkeys(entry.text("pageref") for entry in entries)
    return () if page is None else tuple(name for name in used if name not in ("", page.text("id")))


def _zero(started: datetime | None, moments: list[datetime | None]) -> datetime | None:
    """From when times count: the page's start, or a first request that was a little earlier."""
    known = [moment for moment in moments if moment is not None]
    if started is None:
        return min(known, default=None)
    return min(m for m in (started, *known) if (started - m).total_seconds() < _EARLIEST_S)


def _claim(
    entry: Fields,
    zero: datetime | None,
    moment: datetime | None,
    producer: str,
    notes: Notes,
    attached: Mapping[str, bytes],
) -> Claim:
    request, response = entry.fields("request"), entry.fields("response")
    content = response.fields("content")
    headers, request_headers = _headers(response), _headers(request)
    status = int(response.number("status") or 0)
    cached = _is_cached(entry, response, status)
    size = measure(entry, response, headers, producer=producer, cached=cached)
    url = _url_of(entry)
    body = _body(content, headers, url, notes, attached)
    redirect = response.text("redirectURL")
    if redirect and 300 <= status < 400 and not find_header(headers, "location"):
        headers = (*headers, ("Location", redirect))
    initiator, kind = find_initiator(entry, request_headers)
    decoded = content.size("size")
    if body is None and not decoded and size.body:
        decoded = None  # for a redirect it only says that nothing was kept
    return Claim(
        url=url,
        method=request.text("method") or "GET",
        status=status,
        protocol=response.text("httpVersion") or request.text("httpVersion"),
        request_headers=request_headers,
        request_body_size=request.size("bodySize"),
        headers=headers,
        headers_size=measure_head(response, headers, producer),
        body=body,
        body_is_decoded=True,
        body_size=size.body,
        size_is_exact=size.is_exact,
        decoded_size=decoded if body is None else len(body),
        mime=media_type(content.text("mimeType")).replace("x-unknown", ""),
        initiator=initiator,
        initiator_kind=kind,
        is_frame=entry.text("_resourceType") == "document",
        start_ms=(moment - zero).total_seconds() * 1000 if moment and zero else None,
        dur_ms=entry.number("time"),
        from_cache=cached,
    )


def _is_cached(entry: Fields, response: Fields, status: int) -> bool:
    """Whether the browser did not fetch it, in the words of each producer, or by a 304."""
    before = entry.fields("cache").raw("beforeRequest")
    on_disk = entry.raw("_fromDiskCache") is True or response.raw("fromDiskCache") is True
    if status == 304 or _is_workers(entry):
        return True
    if entry.has("_fromCache") or on_disk or isinstance(before, dict):
        return True
    # Before it had a field for that, DevTools said that nothing was transferred.
    nothing = response.has("_transferSize") and response.number("_transferSize") == 0
    return nothing and 200 <= status < 300 and bool(response.fields("content").size("size"))


def _headers(message: Fields) -> Headers:
    """The headers; some writers have an object of names and values."""
    if isinstance(message.raw("headers"), dict):
        named = message.fields("headers")
        return tuple((whole_text(name), named.text(name)) for name in named.names())
    return tuple((item.text("name"), item.text("value")) for item in message.members("headers"))


def _body(
    content: Fields, headers: Headers, url: str, notes: Notes, attached: Mapping[str, bytes]
) -> bytes | None:
    """The decoded body; ``None`` where the file has none."""
    size = content.size("size")
    if name := content.text("_file"):
        if name not in attached:
            notes.add("Bodies that are not with the HAR, taken as not recorded", url)
        return attached.get(name)
    text = content.take_text("text")
    if text is None or (not text and size):
        return b"" if size == 0 else None
    if content.text("encoding").lower() != "base64":
        declared = find_header(headers, "content-type") or content.text("mimeType")
        return encode_text(text, declared, size)
    try:
        plain = "".join(text.split())  # some writers break lines, and some leave the padding out
        return base64.b64decode((plain + "=" * (-len(plain) % 4)).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        notes.add("Bodies that are no base64, taken as not recorded", url)
        return None


_BROKEN_ZIP = (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, OSError,
           EOFError, ValueError, zlib.error)  # fmt: skip


def is_har_zip(path: Path) -> bool:
    """Whether the zip file ``path`` has a HAR at its top, and so is no WACZ."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(_is_har(name) for name in archive.namelist())
    except _BROKEN_ZIP:
        return False


def read_har_zip(path: Path) -> tuple[bytes, dict[str, bytes]]:
    """The HAR in the zip file ``path``, and the other files by their names.

    Raises:
        ConfigurationError: it is broken, too large, or has several HARs.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            hars = [member.filename for member in members if _is_har(member.filename)]
            if len(hars) != 1:
                raise ConfigurationError([f"{path}: {len(hars)} HARs in one zip; import one"])
            if len(members) > 2 * ENTRIES:
                raise ConfigurationError([f"{path}: more than {2 * ENTRIES} files"])
            files: dict[str, bytes] = {}
            left = ARCHIVE_BYTES
            for member in members:
                with archive.open(member) as file:
                    files[member.filename] = file.read(left + 1)
                left -= len(files[member.filename])
                if left < 0:
                    raise ConfigurationError(
                        [f"{path}: more than {mib(ARCHIVE_BYTES)} unpacked; export fewer pages"]
                    )
    except _BROKEN_ZIP as error:
        raise ConfigurationError([f"{path}: a broken zip: {error}; fetch it again"]) from None
    har = files.pop(hars[0])
    if len(har) > HAR_BYTES:
        raise ConfigurationError([f"{path}: a HAR of more than {mib(HAR_BYTES)}"])
    return har, files


def _is_har(name: str) -> bool:
    return "/" not in name and name.lower().endswith(".har")
