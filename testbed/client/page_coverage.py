"""Coverage of a load: its requests compared with the page and with the server's answers.

A request that was answered inexactly took the place of a recorded one: it is counted, and it
excuses both that the recorded one was not made and that it is not recorded itself.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from testbed.archive.failures import BY_EXTENSION, OWN, UNANSWERED, FailureKind, kind_of
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
ICON = "/favicon.ico"
ICON_TYPES = ("image/x-icon", "image/vnd.microsoft.icon")
ALLOW = "set allow_misses = true"
PIN = "if scripts make its URLs of times or random numbers, record it with --pin"
LACK = "the recording lacks them: record the page live, which keeps failures too"


@dataclass(frozen=True, slots=True)
class RequestCoverage:
    """URLs in the page's order (missing) and in the load's order (extra, failed).

    A URL is in ``missing`` or ``extra`` as often as it was asked too seldom or too often.
    """

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    failed: tuple[str, ...]


def compare(
    page: Archive, requests: Sequence[RequestTiming], cached: Sequence[str] = ()
) -> RequestCoverage:
    """Compare ``requests`` with the page; status 0 means that no response came to its end.

    ``cached`` are URLs that the client's cache answered: nobody need ask for them again.

    Requests that are not due are optional, and an event stream may be requested again each time
    that it ends.  A request counts as failed unless the page was recorded so, or it is the page's
    own doing, or that of a rule of the web.
    """
    urls = [without_fragment(request.url) for request in requests]
    ends = _RecordedEnds(page)
    streams = {entry.url for entry in page.entries if entry.mime == EVENT_STREAM}
    extra = _surplus(
        (u for u, each in zip(urls, requests, strict=True) if not ends.need_no_server(u, each)),
        (entry.url for entry in page.recorded),
    )
    # A page has a module once, however often it asks for it (HTML, section 8.1.4.2).
    modules = {e.url for e in page.entries if "javascript" in e.mime}.intersection(urls)
    missing = _surplus(list_due(page), [*urls, *cached])
    return RequestCoverage(
        missing=tuple(url for url in missing if url not in modules),
        extra=tuple(url for url in extra if url not in streams),
        failed=tuple(u for u, each in zip(urls, requests, strict=True) if not ends.allow(u, each)),
    )


class _RecordedEnds:
    """How the requests of a page ended when it was recorded."""

    def __init__(self, page: Archive) -> None:
        self._errors = {(e.url, e.status) for e in page.entries if e.status >= FIRST_ERROR_STATUS}
        # Of a host that no connection leads to whatever is asked, of others each URL.
        self._kinds: dict[str | tuple[str, int] | None, set[FailureKind | None]] = {}
        for each in page.failures:
            if (end := (each.host, each.port)) in page.dead_ends:
                self._kinds.setdefault(end, set()).add(each.fails)
            else:  # a server may have to cut the connection
                self._kinds.setdefault(each.url, set()).update({each.fails, "broken"})

    def need_no_server(self, url: str, request: RequestTiming) -> bool:
        """Return whether the request stayed in the browser, or went where nobody answered."""
        return not request.status and (is_kept(request) or end_of(url) in self._kinds)

    def allow(self, url: str, request: RequestTiming) -> bool:
        """Return whether the request came to an end that was recorded, or that a replay owes."""
        if request.status:
            return request.status < FIRST_ERROR_STATUS or (url, request.status) in self._errors
        kinds = self._kinds.get(end_of(url)) or self._kinds.get(url) or set()
        if request.failure is None:  # it goes on
            return not kinds.isdisjoint(UNANSWERED)
        return (kind := kind_of(request.failure)) in OWN or kind in kinds


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


def list_silent(page: Archive) -> frozenset[str]:
    """Return URLs that were recorded without an answer, so that a load need not await one."""
    return frozenset(each.url for each in page.failures if each.fails in UNANSWERED)


def list_blocked(page: Archive) -> tuple[str, ...]:
    """Return URLs that an extension of the browser blocked which recorded the page."""
    return tuple(each.url for each in page.failures if each.failure in BY_EXTENSION)


def list_due(page: Archive) -> list[str]:
    """Return URLs that a load is to ask for, each as often as recorded and in recorded order.

    Not due are what was recorded after the load event, what failed, which a page may try again,
    revalidations (RFC 9111 section 4.3), which are the business of a client's cache, and the icon
    that a browser with a window shows: not every client has one.
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
    icon = entry.how == "other" and (entry.path == ICON or entry.mime in ICON_TYPES)
    return not (entry.after_load or entry.status == NOT_MODIFIED or icon or entry.failure)


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

    What a rule of the web kept in the browser is none.
    The client does not say which method such a request would have had: it is ``UNREACHED``.
    """
    urls = [without_fragment(request.url) for request in requests if not is_kept(request)]
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
        complaints.append(_remedy(load, replay))
    explained = [*_urls(replay.missed), *_recorded_errors(replay, recorded)]
    failed = _surplus(load.failed, explained)
    complaints += _complain("failed", [f"{url} ({_ends(url, load, recorded)})" for url in failed])
    return "; ".join(complaints) or None


def _ends(url: str, load: PageLoad, recorded: Sequence[Entry]) -> str:
    """Say how a request ended when the page was recorded, and how it did here."""
    was = next(
        (each.failure or str(each.status) for each in recorded if each.url == url), "nothing"
    )
    ended = [each for each in load.requests if without_fragment(each.url) == url]
    ended = [each for each in ended if not 0 < each.status < FIRST_ERROR_STATUS] or ended
    here = "nothing" if not ended else ended[0].failure or str(ended[0].status or "no end")
    return f"recorded: {was}, here: {here}"


def _remedy(load: PageLoad, replay: Replay) -> str:
    """Say what helps: to record again only where it brings what was missed."""
    advice = []
    if replay.missed and load.missing and not load.pinned:
        advice.append(PIN)
    elif replay.missed and not load.missing:
        advice.append(LACK)
    return ", or ".join([*advice, ALLOW])


def _compare(load: PageLoad, replay: Replay) -> Iterator[str]:
    requested = _urls(substitution.asked for substitution in replay.inexact)
    answered = _urls(substitution.answered for substitution in replay.inexact)
    yield from _complain("missed", replay.missed)
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


def is_kept(request: RequestTiming) -> bool:
    """Return whether a rule of the web kept the request in the browser."""
    return request.failure is not None and kind_of(request.failure) == "kept"


def end_of(url: str) -> tuple[str, int] | None:
    """Return the host and port that a URL leads to; ``None``: to no server.

    Both are nobody's where the URL is broken.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:  # a port beyond 65535, a bracket without its other half
        return ("", 0)
    return None if port is None else (parts.hostname or "", port)


def _leads_nowhere(url: str, served: Collection[tuple[str, int]]) -> bool:
    return (end := end_of(url)) is not None and end not in served
