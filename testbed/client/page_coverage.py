"""Coverage of a load: its requests compared with the page and with the server's answers.

A request that was answered inexactly took the place of a recorded one: it is counted, and it
excuses both that the recorded one was not made and that it is not recorded itself.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeVar
from urllib.parse import urlsplit

from testbed.archive.reading import Archive, Entry
from testbed.model import PageCoverage, PageLoad, Replay, RequestTiming

T = TypeVar("T")
FIRST_ERROR_STATUS = 400
NOT_MODIFIED = 304
# Ends with what was recorded of it, and the browser connects again (HTML, section 9.2.3).
EVENT_STREAM = "text/event-stream"
BODILESS = (204, 304)
"""Statuses whose responses have no body (RFC 9110 sections 15.3.5 and 15.4.5)."""

UNREACHED = "(unreached)"
PORTS = {"http": 80, "https": 443}
SHOWN = 3
REMEDY = "record the page again, or set allow_misses = true"


@dataclass(frozen=True, slots=True)
class RequestCoverage:
    """URLs in the page's order (missing) and in the load's order (extra, failed).

    A URL is in ``missing`` or ``extra`` as often as it was asked too seldom or too often.
    """

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    failed: tuple[str, ...]


def compare(
    page: Archive,
    requests: Sequence[RequestTiming],
    cached: Sequence[str] = (),
    loaded_ms: float = inf,
) -> RequestCoverage:
    """Compare ``requests`` with the page; status 0 means that no response came to its end.

    ``cached`` are URLs that the client's cache answered: nobody need ask for them again.  What
    began after the load event, at ``loaded_ms``, is the page's own affair unless it is due.

    Requests that are not due are optional, and an event stream may be requested again each time
    that it ends.  An error status counts as failed unless the page was recorded with it.
    """
    due = list_due(page)
    recorded = [entry.url for entry in page.entries]
    streams = {entry.url for entry in page.entries if entry.mime == EVENT_STREAM}
    owed = Counter(due)
    urls, judged = [], []
    for request in requests:
        url = without_fragment(request.url)
        if request.start_ms <= loaded_ms or owed[url] > 0:
            urls.append(url)
            judged.append(request)
        owed[url] -= 1
    expected_errors = {(e.url, e.status) for e in page.entries if e.status >= FIRST_ERROR_STATUS}
    failed = tuple(
        url
        for url, request in zip(urls, judged, strict=True)
        if request.status == 0
        or (request.status >= FIRST_ERROR_STATUS and (url, request.status) not in expected_errors)
    )
    extra = _surplus(urls, recorded)
    return RequestCoverage(
        _surplus(due, [*urls, *cached]), tuple(url for url in extra if url not in streams), failed
    )


def describe_load(
    client: str,
    version: str,
    page: Archive,
    requests: tuple[RequestTiming, ...],
    plt_ms: float,
    altered: tuple[str, ...],
) -> PageLoad:
    """Return the load of ``page`` that consisted of ``requests``; ``altered`` as in PageLoad."""
    coverage = compare(page, requests)
    return PageLoad(
        client=client,
        client_version=version,
        plt_ms=plt_ms,
        requests=requests,
        missing=coverage.missing,
        extra=coverage.extra,
        failed=coverage.failed,
        altered=altered,
    )


def list_due(page: Archive) -> list[str]:
    """Return URLs that a load is to ask for, each as often as recorded and in recorded order.

    Not due are what was recorded after the load event, and revalidations (RFC 9111 section 4.3):
    they are the business of a client's cache, and not every client has one.
    """
    return [entry.url for entry in page.entries if _is_due(entry)]


def measure_coverage(page: Archive, load: PageLoad, replay: Replay) -> PageCoverage:
    """Return how much of ``page`` was asked for; one that was answered inexactly counts."""
    answered = _urls(substitution.answered for substitution in replay.inexact)
    unmade = Counter(_surplus(load.missing, answered))
    due = [entry for entry in page.entries if _is_due(entry)]
    made = []
    for entry in due:
        if unmade[entry.url]:
            unmade[entry.url] -= 1
        else:
            made.append(entry)
    counts = [
        (len(those), sum(entry.transfer_bytes for entry in those))
        for those in (due, made, [entry for entry in made if entry.made_up])
    ]
    return PageCoverage(*itertools.chain(*counts))


def list_altered(
    page: Archive, bodies: Iterable[tuple[str, T]], recorded: Callable[[Entry], T]
) -> tuple[str, ...]:
    """List the URLs of ``bodies`` whose body is none that the page holds for them, in their order.

    A body is given by its length or its digest; ``recorded`` returns the same of a recorded
    response with a body.  URLs that the page does not hold are ignored.
    """
    due: dict[str, set[T]] = {}
    for entry in page.entries:
        due.setdefault(entry.url, set()).add(recorded(entry))
    received = ((without_fragment(url), body) for url, body in bodies)
    return tuple(url for url, body in received if url in due and body not in due[url])


def without_fragment(url: str) -> str:
    """Return the URL as it goes to a server."""
    return url.partition("#")[0]


def _is_due(entry: Entry) -> bool:
    return not entry.after_load and entry.status != NOT_MODIFIED


def _surplus(these: Iterable[str], those: Iterable[str]) -> tuple[str, ...]:
    unmatched = Counter(those)
    surplus = []
    for url in these:
        if unmatched[url]:
            unmatched[url] -= 1
        else:
            surplus.append(url)
    return tuple(surplus)


def unreached(
    requests: Iterable[RequestTiming], served: Collection[tuple[str, int]]
) -> tuple[str, ...]:
    """Return the misses that no server saw: requests to a host and port that are not the page's.

    The client does not say which method such a request would have had: it is ``UNREACHED``.
    """
    urls = [without_fragment(request.url) for request in requests]
    return tuple(f"{UNREACHED} {url}" for url in urls if _leads_nowhere(url, served))


def check_protocols(replay: Replay, offers: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each TLS origin that did not speak the protocol which it offers.

    ``offers`` says of each origin (``https://host``, with the port if it is not 443) what it is to
    speak, such as ``HTTP/2.0``.  Its server then prefers that to HTTP/1.1; a client that does not
    speak it misses the experiment's conditions.
    """
    problems = []
    for line, number in replay.protocols.items():
        origin, _, spoken = line.rpartition(" ")
        if spoken != (asked := offers.get(origin, spoken)):
            problems.append(f"{origin}: {number} requests came over {spoken}, asked was {asked}")
    return tuple(problems)


def judge_coverage(
    load: PageLoad, replay: Replay, recorded: Sequence[Entry], allow_misses: bool
) -> str | None:
    """Return why the load does not count, in a sentence; ``None`` when it counts.

    ``replay.missed`` holds all misses, those that no server saw included.  ``allow_misses``
    forgives misses, recorded requests that were not made and those that were made too often, but
    no request that failed for another reason.
    """
    complaints = [] if allow_misses else list(_compare(load, replay))
    if complaints:
        complaints.append(REMEDY)
    explained = [*_urls(replay.missed), *_recorded_errors(replay, recorded)]
    complaints += _complain("failed", _surplus(load.failed, explained))
    return "; ".join(complaints) or None


def _compare(load: PageLoad, replay: Replay) -> Iterator[str]:
    requested = _urls(substitution.asked for substitution in replay.inexact)
    answered = _urls(substitution.answered for substitution in replay.inexact)
    yield from _complain("missed", load.without_later(replay.missed))
    yield from _complain("of the recording not made", _surplus(load.missing, answered))
    too_often = _surplus(load.extra, [*requested, *_urls(replay.missed)])
    yield from _complain("made more often than recorded", too_often)


def _recorded_errors(replay: Replay, recorded: Sequence[Entry]) -> list[str]:
    """Return URLs that failed because what answered them was recorded as an error."""
    errors = {entry.url for entry in recorded if entry.status >= FIRST_ERROR_STATUS}
    return _urls(
        substitution.asked
        for substitution in replay.inexact
        if _urls([substitution.answered])[0] in errors
    )


def _complain(what: str, requests: Sequence[str]) -> Iterator[str]:
    if requests:
        number = len(requests)
        shown = f"{', '.join(requests[:SHOWN])}{' ...' if number > SHOWN else ''}"
        yield f"{number} request{'' if number == 1 else 's'} {what}: {shown}"


def _urls(lines: Iterable[str]) -> list[str]:
    """Return the URL of each ``METHOD URL``."""
    return [line.partition(" ")[2] for line in lines]


def _leads_nowhere(url: str, served: Collection[tuple[str, int]]) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:  # a port beyond 65535, a bracket without its other half
        return True
    return port is not None and (parts.hostname or "", port) not in served
