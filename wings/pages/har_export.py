"""HAR 1.2 writer for pages: archives of recorded and of synthesised ones, and one file to export.

Fields of our own begin with ``_``, and ``archive`` reads them back.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

from testbed.archive.head import REASONS, natural_size, reachable_size
from testbed.archive.reading import HAR_NAME, NOT_REPLAYED, Entry, read_archive, split_url
from testbed.base import har_format as har
from testbed.base.errors import ConfigurationError
from testbed.base.har_format import UNKNOWN, Part
from testbed.base.units import format_count
from testbed.base.whole_file import refuse_existing, write_whole
from testbed.pages.catalogue import FACTS_NAME, PageFacts, new_page, read_facts
from wings.pages.coding import CodingError, content_coding, decode
from wings.pages.exchange import (
    PageExchange,
    Recording,
    describe_made_up,
    find_parents,
    redirect_target,
)
from wings.pages.fidelity import write_seen
from wings.pages.limits import CONTENT_BYTES

TABLE_CREATOR = "testbed.page"
"""Creator of synthesised pages; their members have another order, and digests hang on both."""
TRANSFERRED = "_transferred"
LICENCE_RECORDED = (
    "The contents belong to their owners. Keep this folder to yourself: it must not be published "
    "without their leave."
)
BODIES_RECORDED = (
    "As transferred, still compressed where they were; each file is named by the SHA-256 of its "
    "bytes. What was not recorded or was changed is listed under deviations."
)
_REASONS = {int(status): status.phrase for status in HTTPStatus}
_VERSIONS = {"http/1.1": "HTTP/1.1", "h2": "h2"}
# The sum of one day and this stays a date that every tool takes.
_LONGEST_MS = 1e9
_TEXT_TYPES = frozenset(
    {"application/json", "application/javascript", "application/xml", "image/svg+xml"}
)


@dataclass(frozen=True, slots=True)
class PlacedExchange:
    """An exchange and its place in the page.

    ``parent`` is the URL of what led to it, ``carrier`` that of the object whose bytes name it;
    ``gap_ms`` counts from the end of the parent.  ``transfer_bytes`` are those of head and body;
    ``more`` are further fields of our own.
    """

    exchange: PageExchange
    id: str
    parent: str | None
    carrier: str | None
    gap_ms: float | None
    depth: int
    transfer_bytes: int
    more: Mapping[str, str] = field(default_factory=dict)


def make_har(name: str, title: str, recorded: date, placed: Iterable[PlacedExchange], *,
             creator: str = har.CREATOR, timings: Mapping[str, float | None] | None = None,
             more: Mapping[str, Any] | None = None) -> dict[str, Any]:  # fmt: skip
    """Return the HAR document of the page ``name``; times count from midnight UTC of ``recorded``.

    ``more`` are fields of our own for the page.
    """
    page = har.page(name, title, _moment(recorded, 0), timings or {}) | dict(more or {})
    entries = [_entry(name, recorded, each, creator == TABLE_CREATOR) for each in placed]
    return har.log(creator, page, entries)


def write_content(folder: Path, document: dict[str, Any], bodies: Iterable[bytes | None]) -> None:
    """Write ``page.har`` and ``bodies/<sha256>`` to ``folder``."""
    text = json.dumps(document, indent=1, allow_nan=False)
    (folder / HAR_NAME).write_text(text + "\n", encoding="utf-8")
    (folder / "bodies").mkdir()
    for body in bodies:
        if name := _body_name(body):
            (folder / name).write_bytes(body or b"")


def write_archive(folder: Path, recording: Recording, *, licence: str, replace: bool = False,
                  bodies: str = BODIES_RECORDED) -> tuple[str, ...]:  # fmt: skip
    """Write ``page.toml``, ``page.har``, ``bodies/<sha256>`` and what was seen to ``folder``.

    The folder appears whole or not at all; one recording always gives the same bytes.
    ``licence`` and ``bodies`` are the texts of page.toml.  Returned are its deviations: the notes
    of the recording, then what had to change to be written.

    Raises:
        ValueError: the recording is not whole, a body is missing for example.
        ConfigurationError: the folder is there, and ``replace`` is not given.
        StorageError: it cannot be written; what was there before is intact.
    """
    document, notes = make_recorded_har(folder.name, recording)
    if made_up := describe_made_up(recording.exchanges):
        bodies = f"{bodies} Made up in their recorded sizes: {made_up}."
    facts = PageFacts(title=recording.title, url=recording.url, recorded=recording.recorded,
                      source=recording.source, licence=licence, bodies=bodies, deviations=notes,
                      pinned=recording.pinned, device=recording.device)  # fmt: skip
    with new_page(folder, facts, replace=replace) as scratch:
        write_content(scratch, document, (each.body for each in recording.exchanges))
        if recording.seen is not None:
            write_seen(scratch, recording.seen)
    return notes


def make_recorded_har(name: str, recording: Recording) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the HAR of ``recording`` as the page ``name``, and notes.

    Heads of HTTP/1.1 responses are brought to a size that the server can make; the notes are the
    recording's and those of what changed on the way.

    Raises:
        ValueError: the recording is not whole: no exchanges, a body is missing or of another
            size than its exchange says, a URL or a time is none.
    """
    _check(recording)
    exchanges, head_notes = _reachable_heads(recording.exchanges)
    parents, parent_notes = find_parents(exchanges)
    notes = (*recording.notes, *head_notes, *parent_notes)
    placed: list[PlacedExchange] = []
    for index, (exchange, parent) in enumerate(zip(exchanges, parents, strict=True)):
        origin = None if parent is None else exchanges[parent]
        url = None if origin is None else origin.url
        placed.append(PlacedExchange(
            exchange=exchange, id=str(index), parent=url, carrier=url,
            gap_ms=exchange.gap_ms(origin), depth=0 if parent is None else placed[parent].depth + 1,
            transfer_bytes=(exchange.headers_size or 0) + exchange.body_size,
        ))  # fmt: skip
    document = make_har(
        name, recording.title, recording.recorded, placed,
        timings={} if recording.load_ms is None else {"onLoad": _rounded(recording.load_ms)},
        more={"_pinned": recording.pinned, "_notes": list(notes)}
        | ({} if recording.device is None else {"_device": recording.device.plain()}),
    )  # fmt: skip
    return document, notes


def export_har(folder: Path) -> str:
    """Return the text of a HAR file with everything that the built page in ``folder`` holds.

    ``content.text`` is the decoded body, in base64 where it is no text.  Where a body is
    compressed, the response also has ``_transferred``, the body as transferred in base64, so that
    an importer gets the same bytes back, whatever compressed them.

    Raises:
        ConfigurationError: the folder holds no page archive, or a body is missing or broken.
    """
    archive = read_archive(folder)
    facts = read_facts(folder / FACTS_NAME)
    document: dict[str, Any] = json.loads((folder / HAR_NAME).read_bytes())
    document["log"]["comment"] = f"{facts.source}\n{facts.licence}"
    problems, latest = [], ""
    items = (each for each in document["log"]["entries"] if each["response"]["status"])
    for entry, item in zip(archive.entries, items, strict=True):
        if entry.start_ms is None:
            # Tools sort by this: what has no recorded start keeps its place.
            item["startedDateTime"] = latest or item["startedDateTime"]
        latest = max(latest, str(item["startedDateTime"]))
        try:
            _embed(entry, item["response"])
        except (CodingError, OSError) as error:
            problems.append(f"{folder / HAR_NAME}: {entry.url}: cannot be exported: {error}")
    if problems:
        raise ConfigurationError(problems)
    return json.dumps(document, indent=1) + "\n"


def write_export(text: str, path: Path, *, replace: bool) -> None:
    """Write an exported page to ``path``, which appears whole or not at all.

    Raises:
        ConfigurationError: the file is there and is not to be replaced.
        StorageError: it cannot be written.
    """
    refuse_existing(path, replace=replace)
    write_whole(path, text, "choose another place with -o FILE")


def _check(recording: Recording) -> None:
    exchanges = recording.exchanges
    if not exchanges or exchanges[0].url != recording.url:
        raise ValueError(f"{recording.url}: the first exchange is not the page's own")
    for index, exchange in enumerate(exchanges):
        split_url(exchange.url)  # raises what is wrong
        if exchange.body is None:
            raise ValueError(f"{exchange.url}: the body is missing; it has to be synthesised first")
        if (size := len(exchange.body)) != exchange.body_size:
            raise ValueError(f"{exchange.url}: a body of {size} bytes, said {exchange.body_size}")
        if (exchange.how == "root") != (index == 0):
            raise ValueError(f"{exchange.url}: the first exchange, and only it, is the root")
        for time in (exchange.start_ms, exchange.dur_ms, recording.load_ms):
            if time is not None and not abs(time) < _LONGEST_MS:
                raise ValueError(f"{exchange.url}: {time} ms is no time")


def _reachable_heads(
    exchanges: tuple[PageExchange, ...],
) -> tuple[tuple[PageExchange, ...], tuple[str, ...]]:
    """Return the exchanges with heads that the server can make, and what that changed."""
    sized, grown, unknown = [], [], []
    for exchange in exchanges:
        size = None if exchange.protocol == "h2" else exchange.headers_size
        if size is not None and exchange.status not in REASONS:
            unknown.append(exchange.status)
            size = None
        if size is not None:
            headers = tuple(h for h in exchange.headers if h[0].lower() not in NOT_REPLAYED)
            natural = natural_size(exchange.status, exchange.body_size, headers)
            reachable = reachable_size(size, natural)
            if reachable != size:
                grown.append(reachable - size)
            size = reachable
        sized.append(replace(exchange, headers_size=size))
    notes = []
    if grown:
        what = format_count(len(grown), "response head grows", "response heads grow")
        why = "nginx's own lines are longer, and padding has a least size"
        notes.append(f"{what} by {sum(grown)} bytes in all: {why}.")
    if unknown:
        statuses = ", ".join(str(status) for status in sorted(set(unknown)))
        what = f"{format_count(len(unknown), 'response')} with a status whose head nginx sizes"
        notes.append(f"{what} in its own way ({statuses}): the size of the head is not kept.")
    return tuple(sized), tuple(notes)


def _entry(name: str, recorded: date, placed: PlacedExchange, from_table: bool) -> dict[str, Any]:
    exchange = placed.exchange
    duration = 0.0 if exchange.dur_ms is None else abs(round(max(exchange.dur_ms, 0), 3))
    request = har.request(exchange.method, exchange.url, _VERSIONS[exchange.protocol],
                          exchange.request_headers,
                          (UNKNOWN, exchange.request_body_size))  # fmt: skip
    response = _response(placed)
    if from_table:
        request = _moved(request, "cookies", before="headersSize")
        response = _moved(response, "cookies", before="content")
        if "compression" in response["content"]:
            response["content"] = _moved(response["content"], "compression", before="mimeType")
    timings = {"send": 0, "wait": duration, "receive": 0}
    posted = exchange.digests()
    started = _moment(recorded, exchange.start_ms or 0)
    return har.entry(name, started, duration, request, response, timings) | {
        "_id": placed.id, "_body": _body_name(exchange.body), "_parent": placed.parent,
        "_carrier": placed.carrier, "_how": exchange.how, **placed.more,
        "_gap_ms": _rounded(placed.gap_ms), "_start_ms": _rounded(exchange.start_ms),
        "_dur_ms": _rounded(exchange.dur_ms), "_depth": placed.depth,
        "_after_load": exchange.after_load, **({"_made_up": True} if exchange.made_up else {}),
        **({"_failure": exchange.failure} if exchange.failure else {}),
        **({} if exchange.wait_ms is None else {"_wait_ms": _rounded(exchange.wait_ms)}),
        **({} if posted is None else {"_posted": asdict(posted)}),
        **_piecewise(exchange),
    }  # fmt: skip


def _piecewise(exchange: PageExchange) -> dict[str, Any]:
    """Return the pieces, unless the body has another size by now: then it comes as a whole."""
    if not exchange.pieces or sum(size for _, size in exchange.pieces) != exchange.body_size:
        return {}
    return {"_pieces": exchange.pieces, **({"_open": True} if exchange.open else {})}


def _response(placed: PlacedExchange) -> Part:
    exchange = placed.exchange
    content: Part = {"size": UNKNOWN, "mimeType": exchange.mime}
    if exchange.decoded_size is not None:
        content["size"] = exchange.decoded_size
        content["compression"] = exchange.decoded_size - exchange.body_size
    head = UNKNOWN if exchange.headers_size is None else exchange.headers_size
    return har.response(
        exchange.status, "" if exchange.protocol == "h2" else _REASONS.get(exchange.status, ""),
        _VERSIONS[exchange.protocol], exchange.headers, content,
        redirect_target(exchange.url, exchange.status, exchange.headers) or "",
        (head, exchange.body_size, placed.transfer_bytes),
    )  # fmt: skip


def _moved(part: Part, name: str, before: str) -> Part:
    names = [each for each in part if each != name]
    names.insert(names.index(before), name)
    return {each: part[each] for each in names}


def _embed(entry: Entry, response: dict[str, Any]) -> None:
    """Put the body of ``entry`` into its response.

    Raises:
        CodingError: it does not decode.
        OSError: it cannot be read.
    """
    if entry.body is None:
        return
    data = entry.body.read_bytes()
    limit = CONTENT_BYTES if entry.decoded_size is None else entry.decoded_size
    content = decode(data, content_coding(entry.headers), limit)
    response["content"] |= {"size": len(content), "compression": len(content) - len(data)}
    text = _text(entry.mime, content)
    if text is None:
        text = base64.b64encode(content).decode()
        response["content"]["encoding"] = "base64"
    response["content"]["text"] = text
    if content != data:
        response[TRANSFERRED] = base64.b64encode(data).decode()


def _text(mime: str, content: bytes) -> str | None:
    """Return the content as text, if its type says that it is and its bytes are UTF-8."""
    if not mime.startswith("text/") and mime not in _TEXT_TYPES:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _body_name(data: bytes | None) -> str | None:
    """Return where an archive keeps a body; ``None`` for an empty one."""
    return f"bodies/{hashlib.sha256(data).hexdigest()}" if data else None


def _moment(recorded: date, ms: float) -> str:
    start = datetime(recorded.year, recorded.month, recorded.day, tzinfo=UTC)
    moment = start + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rounded(ms: float | None) -> float | None:
    """Return whole microseconds: no clock of a recording is finer."""
    return None if ms is None else round(ms, 3)
