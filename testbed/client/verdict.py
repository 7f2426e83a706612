"""Does a load count?  What the client asked for, held against how the server answered.

A request that was answered inexactly took the place of a recorded one: it is counted, and it
excuses both that the recorded one was not made and that itself is not recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from testbed.client.coverage import FIRST_ERROR_STATUS, without_fragment
from testbed.model import PageLoad, Replay, RequestTiming

UNREACHED = "(unreached)"
PORTS = {"http": 80, "https": 443}
SHOWN = 3
SPOKEN = {True: "HTTP/2.0", False: "HTTP/1.1"}
REMEDY = "record the page again, or set allow_misses = true"


class Recorded(Protocol):
    """As much of a recorded request as is looked at here."""

    @property
    def url(self) -> str:
        """Absolute URL without a fragment."""

    @property
    def status(self) -> int:
        """Recorded HTTP status."""


def unreached(
    requests: Iterable[RequestTiming], served: Collection[tuple[str, int]]
) -> tuple[str, ...]:
    """Misses that no server saw: requests to a host and port that the page does not have.

    The client does not say which method such a request would have had: ``UNREACHED`` stands there.
    """
    urls = [without_fragment(request.url) for request in requests]
    return tuple(f"{UNREACHED} {url}" for url in urls if _leads_nowhere(url, served))


def check_protocols(replay: Replay, offers: Mapping[str, bool]) -> tuple[str, ...]:
    """A sentence for each origin over TLS that was spoken to in another protocol than it offers.

    ``offers`` says of each origin (``https://host``, with the port if it is not 443) whether it
    speaks HTTP/2: its server prefers that to HTTP/1.1, and a client that does not is not under
    the conditions that were asked for.
    """
    problems = []
    for line, number in replay.protocols.items():
        origin, _, spoken = line.rpartition(" ")
        if origin in offers and spoken != SPOKEN[offers[origin]]:
            asked = SPOKEN[offers[origin]]
            problems.append(f"{origin}: {number} requests came over {spoken}, asked was {asked}")
    return tuple(problems)


def judge_coverage(
    load: PageLoad, replay: Replay, recorded: Sequence[Recorded], allow_misses: bool
) -> str | None:
    """Why the load does not count, in a sentence; ``None`` when it counts.

    ``replay.missed`` holds all misses, those that no server saw included.  ``allow_misses``
    forgives misses, recorded requests that were not made and those that were made too often, but
    no request that failed for another reason.
    """
    complaints = [] if allow_misses else list(_compare(load, replay))
    if complaints:
        complaints.append(REMEDY)
    explained = [*_urls(replay.missed), *_recorded_errors(replay, recorded)]
    complaints += _complain("failed", _subtract(load.failed, explained))
    return "; ".join(complaints) or None


def _compare(load: PageLoad, replay: Replay) -> Iterator[str]:
    asked = _urls(one.asked for one in replay.inexact)
    answered = _urls(one.answered for one in replay.inexact)
    yield from _complain("missed", replay.missed)
    yield from _complain("of the recording not made", _subtract(load.missing, answered))
    too_often = _subtract(load.extra, [*asked, *_urls(replay.missed)])
    yield from _complain("made more often than recorded", too_often)


def _recorded_errors(replay: Replay, recorded: Sequence[Recorded]) -> list[str]:
    """URLs that failed because what answered them was recorded as an error."""
    errors = {entry.url for entry in recorded if entry.status >= FIRST_ERROR_STATUS}
    return _urls(one.asked for one in replay.inexact if _urls([one.answered])[0] in errors)


def _complain(what: str, requests: Sequence[str]) -> Iterator[str]:
    if requests:
        number = len(requests)
        shown = f"{', '.join(requests[:SHOWN])}{' ...' if number > SHOWN else ''}"
        yield f"{number} request{'' if number == 1 else 's'} {what}: {shown}"


def _urls(lines: Iterable[str]) -> list[str]:
    """The URL of each ``METHOD URL``."""
    return [line.partition(" ")[2] for line in lines]


def _subtract(urls: Sequence[str], explained: Iterable[str]) -> list[str]:
    left = Counter(explained)
    remaining = []
    for url in urls:
        if left[url]:
            left[url] -= 1
        else:
            remaining.append(url)
    return remaining


def _leads_nowhere(url: str, served: Collection[tuple[str, int]]) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:  # a port beyond 65535, a bracket without its other half
        return True
    return port is not None and (parts.hostname or "", port) not in served
