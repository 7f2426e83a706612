"""Requests of an untrusted recording: which the lab can serve, and where the page's load ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from testbed.archive.head import NOT_MODIFIED
from testbed.archive.reading import split_url
from testbed.base.errors import ConfigurationError
from wings.pages.importing.importer import Claim, Reading
from wings.pages.importing.notes import Notes, printable
from wings.pages.importing.sanitiser import (
    METHODS,
    UnusableError,
    clean_url,
    has_user,
    replayed_status,
    status_problem,
)
from wings.pages.limits import BODY_BYTES, HEAD_BYTES, mib
from wings.pages.table import DOCUMENT_TYPES

_LONGEST_MS = 1e8
PAUSE_MS = 10_000
"""With nothing in flight for so long, the load is over, where the file has no load event."""
_EARLIER = "Requests left out, made before the page's own (--url begins elsewhere)"
_LATER = f"Requests left out, made after a pause of more than {PAUSE_MS // 1000} s (--url)"
_MADE_GET = "The page's own request had another method, made GET"


def keep(claims: Sequence[Claim], notes: Notes) -> list[Claim]:
    """Return the claims that can be replayed, each with its clean URL and the status to send.

    What is left out or repaired is noted.
    """
    kept: list[Claim] = []
    answered: set[tuple[str, str]] = set()
    schemes: dict[tuple[str, int], str] = {}
    for claim in claims:
        item = _keep(claim, notes)
        if item is None:
            continue
        key = (item.method, item.url)
        scheme, host, port, _ = split_url(item.url)
        if claim.status == NOT_MODIFIED and key in answered:
            notes.add("Revalidations, answered 304 Not Modified again", item.url)
            kept.append(replace(item, body=None, status=NOT_MODIFIED))
        elif claim.from_cache and key in answered:
            notes.add("Requests left out, answered by the cache", item.url)
        elif schemes.setdefault((host, port), scheme) != scheme:
            notes.add("Requests left out, http and https on one port", item.url)
        else:
            if claim.from_cache:
                notes.add("Responses from the cache, sent as from the network", item.url)
            answered.update([key] if item.status else [])
            kept.append(item)
    return kept


def _keep(claim: Claim, notes: Notes) -> Claim | None:
    """Return the claim if the lab can serve it; what is wrong is noted."""
    try:
        url = clean_url(claim.url)
    except UnusableError as error:
        notes.add(f"Requests left out, {error}", claim.url)
        return None
    status = replayed_status(claim.status)
    problem = None
    if claim.method.upper() not in METHODS:
        problem = "methods that cannot be replayed"
    elif status is None and claim.status <= 0 and claim.failure:
        status = 0
    elif status is None:
        problem = status_problem(claim.status)
    elif (len(claim.body) if claim.body is not None else claim.body_size or 0) > BODY_BYTES:
        problem = f"bodies of more than {mib(BODY_BYTES)}"
    if problem is not None or status is None:
        notes.add(f"Requests left out, {problem}", f"{claim.method} {claim.status} {url}")
        return None
    if has_user(claim.url):
        notes.add("URLs without their user information", url)

    # Codings make a body hardly larger; one that is half as large again is no coding's work.
    most = BODY_BYTES if claim.body is None else 2 * len(claim.body) + 4096

    def bounded(what: str, size: int | None, least: int, most: int) -> int | None:
        if size is None or least <= size <= most:
            return size
        notes.add(f"Sizes that no {what} has, taken as not recorded", f"{size}: {url}")
        return None

    request = claim.request_body_size or 0
    return replace(
        claim, url=url, status=status, method=claim.method.upper(),
        body_size=bounded("body", claim.body_size, 0, most),
        decoded_size=bounded("body", claim.decoded_size, 0, BODY_BYTES),
        headers_size=bounded("head", claim.headers_size, 1, HEAD_BYTES),
        request_body_size=request if 0 < request <= BODY_BYTES else 0,
        start_ms=time_ms(claim.start_ms), dur_ms=time_ms(claim.dur_ms),
    )  # fmt: skip


def time_ms(ms: float | None) -> float | None:
    """Return ``ms`` if a page load can last so long."""
    return ms if ms is not None and 0 <= ms <= _LONGEST_MS else None


def find_extent(requests: Sequence[Claim], reading: Reading) -> list[Claim]:
    """Return the requests of one load in the order of their starts, the page's own first.

    Requests without a time stay where they were, or are in the file's order.  A proxy records a
    session: times count from the page's own request, and a pause ends the load.

    Raises:
        ConfigurationError: there is no request for the page, or none at all.
    """
    notes = reading.notes
    if not requests:
        pages = ", ".join(printable(name) for name in reading.other_pages[:20])
        remedy = f"other pages of the file have requests: give --page, one of {pages}"
        problems = ["no request is left that can be replayed", *([remedy] if pages else [])]
        raise ConfigurationError([*problems, *notes.sentences()])
    ordered = list(requests) if reading.is_ordered else _by_start(requests)
    index = _find_root(ordered, reading.url)
    root = ordered[index]
    start = root.start_ms
    if root.method != "GET":
        notes.add(_MADE_GET, f"{root.method} {root.url}")
        root = replace(root, method="GET", request_body_size=0)
    before, after = ordered[:index], ordered[index + 1 :]
    if start is not None and reading.is_session:
        _note(notes, _EARLIER, [item for item in before if _is_before(item, start)])
        before = [item for item in before if not _is_before(item, start)]
    load = [root, *before, *after]
    if reading.is_session and start is not None and time_ms(reading.load_ms) is None:
        load = _until_pause([_shifted(item, start) for item in load], notes)
    return load


def find_documents(requests: Sequence[Claim]) -> list[Claim]:
    """Return the requests that were answered by a document, those with GET first."""
    documents = [x for x in requests if x.is_frame or x.served_mime in DOCUMENT_TYPES]
    return sorted(documents, key=lambda item: item.method != "GET")


def _by_start(requests: Sequence[Claim]) -> list[Claim]:
    times, latest = [], 0.0
    for item in requests:
        latest = latest if item.start_ms is None else item.start_ms
        times.append(latest)
    return [requests[index] for index in sorted(range(len(requests)), key=times.__getitem__)]


def _find_root(requests: Sequence[Claim], url: str | None) -> int:
    if url is None:
        # Redirects come before the document that they lead to.
        if requests[0].method == "GET" and 300 < requests[0].status < 309:
            return 0
        gets = [item for item in requests if item.method == "GET"]
        return requests.index(next(iter([*find_documents(requests), *gets, *requests])))
    try:
        wanted_url = clean_url(url)
    except UnusableError as error:
        raise ConfigurationError([f"--url {printable(url)}: cannot be replayed: {error}"]) from None
    matches = [item for item in requests if item.url == wanted_url]
    matches.sort(key=lambda item: item.method != "GET")
    if matches:
        return requests.index(matches[0])
    examples = ", ".join(printable(item.url) for item in requests[:3])
    problem = f"--url {wanted_url}: no request for it; the first ones are {examples}"
    raise ConfigurationError([problem])


def _is_before(item: Claim, start: float) -> bool:
    return item.start_ms is not None and item.start_ms < start


def _shifted(item: Claim, start: float) -> Claim:
    return item if item.start_ms is None else replace(item, start_ms=item.start_ms - start)


def _until_pause(requests: Sequence[Claim], notes: Notes) -> list[Claim]:
    end = 0.0
    for index, item in enumerate(requests):
        start = item.start_ms
        if start is None:
            continue
        if start > end + PAUSE_MS:
            _note(notes, _LATER, requests[index:])
            return list(requests[:index])
        end = max(end, start + (item.dur_ms or 0.0))
    return list(requests)


def _note(notes: Notes, what: str, items: Sequence[Claim]) -> None:
    for item in items:
        notes.add(what, item.url)
