"""Trust boundary for imported pages: turns claims into what can be replayed.

Whatever cannot be replayed is repaired or left out, counted in the recording's notes; what makes
no page at all is an error, all problems at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import urlsplit

from testbed.archive.head import BODILESS
from testbed.base.errors import ConfigurationError
from wings.pages.coding import Effort
from wings.pages.exchange import PageExchange, Recording, find_header, redirect_target
from wings.pages.importing.bodies import new_budget, settle_body
from wings.pages.importing.importer import Claim, Reading
from wings.pages.importing.notes import Notes, printable
from wings.pages.importing.references import lead, settle_redirects
from wings.pages.importing.requests import find_documents, find_extent, keep, time_ms
from wings.pages.importing.sanitiser import clean_headers, replayed_protocol
from wings.pages.importing.untrusted import Budget
from wings.pages.limits import ENTRIES, HOSTS
from wings.pages.table import DOCUMENT_TYPES, MEDIA_TYPE

_LONGEST_TITLE = 300
_THREADS = 2  # each has one body of up to 64 MiB in the making
_TABLE_NOTES = {
    False: "The file has no bodies, so that only numbers are kept, in a table",
    True: "The page's own document was not recorded, so that only numbers are kept, in a table",
}


def screen(reading: Reading) -> Recording:
    """Return the recording of ``reading``, every body made whole.

    Where no body at all was recorded, or not that of the page's document, every body is ``None``
    and ``body_size`` what was recorded: such a page becomes a table.

    Raises:
        ConfigurationError: no page is left, or it is too large for the lab.
    """
    notes = reading.notes
    usable = keep(reading.claims, notes)
    requests = find_extent(usable, reading)
    _check_size(requests)
    document = _document(requests)
    with_bodies = document.body is not None and any(item.body for item in requests)
    if not with_bodies:
        requests = _as_table(requests, document, usable, notes)
    exchanges = _exchanges(requests, notes, with_bodies=with_bodies)
    exchanges = lead(exchanges, requests)
    load_ms = time_ms(reading.load_ms)
    both = zip(exchanges, requests, strict=True)
    timed = [_after(exchange, claim, load_ms) for exchange, claim in both]
    exchanges = settle_redirects(timed, notes)  # a circle of them loses some
    _note_repeats(exchanges, notes)
    root = replace(exchanges[0], how="root", initiator=None, after_load=False)
    return Recording(
        title=_title(reading.title, root.url), url=root.url, recorded=reading.recorded,
        source=reading.source, exchanges=(root, *exchanges[1:]), pinned=reading.pinned,
        load_ms=load_ms, notes=notes.sentences(),
    )  # fmt: skip


def _check_size(requests: Sequence[Claim]) -> None:
    hosts = {urlsplit(item.url).hostname for item in requests}
    problems = []
    if len(requests) > ENTRIES:
        problems.append(f"{len(requests)} requests, at most {ENTRIES} are taken")
    if len(hosts) > HOSTS:
        problems.append(f"{len(hosts)} hosts, the lab has addresses for {HOSTS}")
    if problems := [f"{problem}; import fewer pages" for problem in problems]:
        raise ConfigurationError(problems)


def _document(requests: Sequence[Claim]) -> Claim:
    """Return what the page's first URL leads to, maybe back to itself, by way of a cookie."""
    item, waiting = requests[0], list(requests[1:])
    while target := redirect_target(item.url, item.status, item.headers):
        at = next((index for index, each in enumerate(waiting) if each.url == target), None)
        if at is None:
            break
        item = waiting.pop(at)
    return item


def _as_table(requests: Sequence[Claim], document: Claim, usable: Sequence[Claim],
              notes: Notes) -> list[Claim]:  # fmt: skip
    """Return the requests of a page that is numbers only, whose document has to be one.

    ``usable`` are all requests of the file that could be replayed, for the remedy.

    Raises:
        ConfigurationError: it is none.
    """
    notes.add(_TABLE_NOTES[any(item.body for item in requests)])
    mime = _mime(document)
    if mime in DOCUMENT_TYPES and document.status != 204:
        return list(requests)
    if not mime and document.status == 200:
        notes.add("Documents of no known type, taken as text/html", document.url)
        typed = replace(document, mime="text/html")
        return [typed if item is document else item for item in requests]
    others = [item.url for item in find_documents(usable) if _mime(item) in DOCUMENT_TYPES]
    remedy = "no other request has a document either; if that is wrong, name another by --url"
    if others:
        remedy = f"begin with a document: --url {printable(others[0], 200)}"
    what = f"{mime or 'of no known type'}, status {document.status}"
    raise ConfigurationError(
        [f"{document.url}: the page itself is not text/html ({what}); {remedy}", *notes.sentences()]
    )


def _mime(claim: Claim) -> str:
    return claim.served_mime if MEDIA_TYPE.fullmatch(claim.served_mime) else ""


def _exchanges(requests: Sequence[Claim], notes: Notes, *, with_bodies: bool) -> list[PageExchange]:
    """Return what the lab serves for each claim; threads, since compressors need no lock."""
    budget, effort = new_budget(), Effort()
    own_notes = [Notes() for _ in requests]
    # Shared out beforehand, so that a body does not depend on the order of the threads.
    efforts = [effort.take(_coded_bytes(item)) for item in requests]

    def make(claim: Claim, own: Notes, effort: int) -> PageExchange:
        return _exchange(claim, budget, own, effort, with_bodies=with_bodies)

    with ThreadPoolExecutor(_THREADS) as pool:
        exchanges = list(pool.map(make, requests, own_notes, efforts))
    for own in own_notes:
        notes.join(own)
    return exchanges


def _coded_bytes(claim: Claim) -> int:
    """Return how much there is to compress, as far as it is known beforehand."""
    if not find_header(claim.headers, "content-encoding"):
        return 0
    return len(claim.body) if claim.body is not None else claim.decoded_size or 0


def _exchange(
    claim: Claim, budget: Budget, notes: Notes, effort: int, *, with_bodies: bool
) -> PageExchange:
    mime = _mime(claim)
    headers = clean_headers(claim.headers, claim.url, notes)
    body: bytes | None = None
    body_size = claim.body_size if claim.body_size is not None else claim.decoded_size or 0
    decoded_size = claim.decoded_size
    if claim.status in (0, *BODILESS) or claim.method == "HEAD":
        body, body_size, decoded_size = b"" if with_bodies else None, 0, 0
        if claim.body:
            notes.add("Bodies left out of responses that have none", claim.url)
    elif with_bodies:
        settled = settle_body(claim, mime, headers, budget, notes, effort)
        body, headers, decoded_size = settled.body, settled.headers, settled.decoded_size
        body_size = len(body)
    protocol = replayed_protocol(claim.protocol, urlsplit(claim.url).scheme)
    return PageExchange(
        url=claim.url, status=claim.status, method=claim.method, protocol=protocol,
        request_headers=clean_headers(claim.request_headers, claim.url, notes),
        request_body_size=claim.request_body_size or 0, headers=headers,
        headers_size=None if protocol == "h2" else claim.headers_size,
        body=body, body_size=body_size, decoded_size=decoded_size, mime=mime,
        start_ms=claim.start_ms, dur_ms=claim.dur_ms,
        made_up=bool(body) and (claim.body is None or claim.made_up), failure=claim.failure,
    )  # fmt: skip


def _after(exchange: PageExchange, claim: Claim, load_ms: float | None) -> PageExchange:
    if claim.after_load is not None:
        return replace(exchange, after_load=claim.after_load)
    late = load_ms is not None and exchange.start_ms is not None and exchange.start_ms > load_ms
    return replace(exchange, after_load=late)


def _note_repeats(exchanges: Sequence[PageExchange], notes: Notes) -> None:
    requests: set[tuple[str, str, int]] = set()
    for exchange in exchanges:
        key = (exchange.method, exchange.url, exchange.request_body_size)
        if key in requests:
            notes.add("Requests for the same URL again, kept", exchange.url)
        requests.add(key)


def _title(title: str, url: str) -> str:
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in title).split())
    return plain[:_LONGEST_TITLE] or url
