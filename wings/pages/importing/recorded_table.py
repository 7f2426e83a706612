"""Resource table of a recording: numbers and host names, no contents.

What a table cannot hold is brought to the nearest that it can, and counted in a note.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from testbed.archive.head import NOT_MODIFIED
from testbed.pages.catalogue import TABLE_NAME, PageFacts, new_page
from wings.pages.exchange import PageExchange, Recording, find_parents, redirect_target
from wings.pages.importing.overflow import relieve_document
from wings.pages.synthesis.bodies import discover
from wings.pages.table import (
    HEADER_BYTES,
    MEDIA_TYPE,
    MIN_HEADER_BYTES,
    PROTOCOLS,
    REDIRECTS,
    STATUSES,
    ResourceRow,
    check_depth,
    format_table,
    parse_table,
    secure_document,
)

LICENCE_TABLE = (
    "Numbers and host names only: facts. No recorded content, path, cookie or header is kept."
)
BODIES_TABLE = "Synthetic, built from resources.csv; the rules are in wings/pages/docs/tables.md."

_HOW = {"root": "root", "css": "url-in-css", "script": "url-in-js", "other": "url-in-other"}
_NEAREST = {205: 204, 401: 403, 407: 403, 502: 503, 504: 503}
_NO_HOST = re.compile(r"[^a-z0-9.-]+")
_PATHS = re.compile(r"(https?://[^/?#\s\"'<>]+)[/?#][^\s\"'<>]*")


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """The rows of a table, and one sentence for each thing that the table cannot say."""

    rows: tuple[ResourceRow, ...]
    notes: tuple[str, ...]


def write_table(
    folder: Path, recording: Recording, *, licence: str, replace: bool = False
) -> RecordedTable:
    """Write ``page.toml`` and ``resources.csv`` of ``recording``; return the rows and the notes.

    URLs in the recording's own texts lose their paths.

    Raises:
        ConfigurationError: no page can be built from the rows; or the folder is there, and
            ``replace`` is not given.
        StorageError: it cannot be written; what was there before is intact.
    """
    table = make_table(recording)
    host = urlsplit(recording.url).hostname or ""
    facts = PageFacts(title=host, url=_cut_paths(recording.url), recorded=recording.recorded,
                      source=_cut_paths(recording.source), licence=licence, bodies=BODIES_TABLE,
                      deviations=(*map(_cut_paths, recording.notes), *table.notes))  # fmt: skip
    write_rows(folder, facts, table.rows, replace=replace)
    return table


def write_rows(
    folder: Path, facts: PageFacts, rows: Sequence[ResourceRow], *, replace: bool
) -> None:
    """Write the page of ``facts`` and ``rows``, which appears whole or not at all.

    Raises:
        ConfigurationError, StorageError: as ``write_table``.
    """
    text = format_table(rows)
    discover(folder.name, facts.title, parse_table(text, str(folder / TABLE_NAME)))
    made_up = dataclasses.replace(facts, made_up=True)
    with new_page(folder, made_up, replace=replace) as scratch:
        (scratch / TABLE_NAME).write_text(text, encoding="utf-8")


def make_table(recording: Recording) -> RecordedTable:
    """Return the rows for ``recording``: what was asked for up to the load event, by start time.

    Raises:
        ConfigurationError: what led to what goes too deep for a table.
    """
    loaded = _in_order(recording.exchanges)
    lineage = find_lineage(loaded)
    rows = [_row(loaded, index, lineage) for index in range(len(loaded))]
    check_depth(rows)
    rows, raised = _raise_protocols(rows)
    relief = relieve_document(rows)
    rows = relief.rows
    again = sum(x.status == NOT_MODIFIED for x in recording.exchanges)
    failed = sum(not x.status for x in recording.exchanges)
    late = len(recording.exchanges) - len(loaded) - again - failed
    both = list(zip(loaded, rows, strict=True))
    statuses = sum(x.status != row.status for x, row in both)
    unknown = sum(x.headers_size is None and x.protocol != "h2" for x in loaded)
    added = sum(row.head_bytes - x.headers_size for x, row in both
                if row.head_bytes is not None and x.headers_size is not None)  # fmt: skip
    counted = {
        "Requests after the load event, left out": late,
        "Revalidations, for which a table has no status, left out": again,
        "Requests without a response, left out": failed,
        "Requests with another method, made GET": sum(x.method != "GET" for x in loaded),
        "Statuses replaced by the nearest that a table holds": statuses,
        f"Heads of unknown size, taken for {HEADER_BYTES} bytes": unknown,
        f"Bytes added to heads, which have at least {MIN_HEADER_BYTES}": added,
        "Requests over http, raised to https like their host or page": raised,
        "Requests made by a script, because the document is too small to name them": relief.moved,
        "Bytes added to the document, which is too small for what it names": relief.added_bytes,
    }
    notes = (*(f"{what}: {number}." for what, number in counted.items() if number), *lineage.notes)
    return RecordedTable(tuple(rows), notes)


def _in_order(exchanges: Sequence[PageExchange]) -> tuple[PageExchange, ...]:
    """Return the page's own exchange, then the others up to the load event, timeless ones last."""
    rest = [x for x in exchanges[1:] if not x.after_load and x.status not in (0, NOT_MODIFIED)]
    rest.sort(key=lambda x: float("inf") if x.start_ms is None else x.start_ms)
    return (*exchanges[:1], *rest)


def _row(exchanges: Sequence[PageExchange], index: int, lineage: Lineage) -> ResourceRow:
    exchange, parent = exchanges[index], lineage.parents[index]
    status = _status(exchange, leads_on=index in lineage.redirects.values())
    head = exchange.headers_size
    head = None if head is None or exchange.protocol == "h2" else max(head, MIN_HEADER_BYTES)
    body = 0 if status == 204 else exchange.body_size
    gap_ms = exchange.gap_ms(None if parent is None else exchanges[parent])
    return ResourceRow(
        id=str(index),
        parent=None if parent is None else str(parent),
        host=_host(exchange.url),
        mime=exchange.mime if MEDIA_TYPE.fullmatch(exchange.mime) else "",
        status=status,
        transfer_bytes=(HEADER_BYTES if head is None else head) + body,
        body_bytes=None if status == 204 else exchange.decoded_size,
        how=_how(exchanges, index, lineage),
        gap_ms=None if gap_ms is None else round(gap_ms),
        start_ms=None if exchange.start_ms is None else max(round(exchange.start_ms), 0),
        dur_ms=None if exchange.dur_ms is None else max(round(exchange.dur_ms), 0),
        protocol="h2" if exchange.protocol == "h2" else urlsplit(exchange.url).scheme,
        head_bytes=head,
    )


def _status(exchange: PageExchange, *, leads_on: bool) -> int:
    """Return the nearest status that a table holds; a redirect to nowhere recorded is an answer."""
    status = exchange.status
    if status in REDIRECTS and not leads_on:
        return 200
    if status in STATUSES:
        return status
    return _NEAREST.get(status, 200 if status < 400 else 404 if status < 500 else 500)


def _host(url: str) -> str:
    name = _NO_HOST.sub("-", (urlsplit(url).hostname or "").lower())
    parts = (part.strip("-") for part in name.split("."))
    return ".".join(part for part in parts if part) or "host"


def _how(exchanges: Sequence[PageExchange], index: int, lineage: Lineage) -> str:
    exchange, parent = exchanges[index], lineage.parents[index]
    if parent is None:
        return "root"
    if index in lineage.redirects:
        return "redirect"
    if exchange.how in ("parser", "frame"):
        return "url-in-main-html" if parent == lineage.document else "url-in-html"
    return _HOW.get(exchange.how, "url-in-other") if exchange.initiator else "time-inferred"


def _raise_protocols(rows: Sequence[ResourceRow]) -> tuple[list[ResourceRow], int]:
    """Give each host one protocol, no http below an https document; count the changed rows."""
    spoken = _strongest(rows)
    while True:
        raised_rows = [replace(row, protocol=spoken[row.host]) for row in rows]
        by_id = {row.id: row for row in raised_rows}
        plain = [row for row in raised_rows if row.scheme == "http"]
        mixed = {row.host for row in plain if secure_document(row, by_id)}
        if not mixed:
            break
        spoken |= dict.fromkeys(mixed, "https")
    raised = sum(a.scheme != b.scheme for a, b in zip(rows, raised_rows, strict=True))
    # Over h2 no head has a size of its own.
    for index, row in enumerate(raised_rows):
        if row.protocol == "h2" and row.head_bytes is not None:
            size = row.transfer_bytes - row.head_size + HEADER_BYTES
            raised_rows[index] = replace(row, head_bytes=None, transfer_bytes=size)
    return raised_rows, raised


def _strongest(rows: Sequence[ResourceRow]) -> dict[str, str]:
    spoken: dict[str, str] = {}
    for row in rows:
        both = (spoken.get(row.host, PROTOCOLS[0]), row.protocol)
        spoken[row.host] = max(both, key=PROTOCOLS.index)
    return spoken


def _cut_paths(text: str) -> str:
    return _PATHS.sub(r"\1/", text)


@dataclass(frozen=True, slots=True)
class Lineage:
    """Positions of parents (``None``: the root), always earlier than their children.

    ``redirects`` has for each target of a redirect the response that redirects; each one leads to
    one target only.  ``document`` is the page's own document, behind the root's redirects.
    """

    parents: tuple[int | None, ...]
    redirects: dict[int, int]
    document: int
    notes: tuple[str, ...]


def find_lineage(exchanges: Sequence[PageExchange]) -> Lineage:
    """Find parents by initiator, targets of redirects by ``Location`` or by the recorder's word.

    What a redirect led to besides its target belongs to the object at the end of the chain.
    """
    found, notes = find_parents(exchanges)
    targets = _find_targets(exchanges, found)
    redirects = {target: source for source, target in targets.items()}
    document = _chain_end(0, targets)
    parents: list[int | None] = []
    for index, parent in enumerate(found):
        if index in redirects:
            parent = redirects[index]
        elif parent is not None:
            parent = _chain_end(parent, targets, before=index)
        parents.append(parent)
    return Lineage(tuple(parents), redirects, document, notes)


def _find_targets(
    exchanges: Sequence[PageExchange], parents: Sequence[int | None]
) -> dict[int, int]:
    """Return for each redirect that led somewhere its target."""
    targets: dict[int, int] = {}
    targeted: set[int] = set()
    for index, exchange in enumerate(exchanges):
        if exchange.status not in REDIRECTS:
            continue
        url = redirect_target(exchange.url, exchange.status, exchange.headers)
        for later in range(index + 1, len(exchanges)):
            candidate = exchanges[later]
            is_next = candidate.how == "redirect" and parents[later] == index
            if later not in targeted and (is_next or candidate.url == url):
                targets[index] = later
                targeted.add(later)
                break
    return targets


def _chain_end(index: int, targets: dict[int, int], before: int | None = None) -> int:
    """Return where the redirects from ``index`` lead, by what was asked for before ``before``."""
    while index in targets and (before is None or targets[index] < before):
        index = targets[index]
    return index
