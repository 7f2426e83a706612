"""Log of a browser's visit: its HAR, in which each request's phases and the page's moments stand.

The driver writes it from DevTools' events, and the observation from others or by another way, so
that a number which was changed in one of the two contradicts the other.

Source: HAR 1.2; Chrome DevTools Protocol, domains Network, Page and PerformanceTimeline.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from testbed.archive.reading import Archive
from testbed.client.page_coverage import without_fragment
from testbed.model import PageLoad, RequestTiming
from testbed.proof.visits import VisitWindow

_WITHIN = ("_fromServiceWorker", "_fromPrefetchCache", "_fromDiskCache")
"""Of a response that came from within the browser; what a worker itself asked for is another."""
DATE_GRAIN_MS = 1.1
"""Dates of a log have milliseconds."""
_PHASES = ("blocked", "dns", "connect", "send", "wait", "receive")


class LoggedRequest(NamedTuple):
    """A request of the observation with its entry; moments in ms from the start of the visit.

    ``asked_ms`` is when the network stack was asked.  Up to ``connected_ms`` they are counted
    forwards from it, the others backwards from ``end_ms``, by ``waits``: the phases, -1 for none.
    """

    told: RequestTiming
    entry: Mapping[str, Any]
    waits: Mapping[str, float]
    asked_ms: float

    @property
    def is_timed(self) -> bool:
        """Whether there are phases: DevTools gives none of what did not come from the network."""
        return self.waits["blocked"] >= 0

    @property
    def began_ms(self) -> float:
        """When the network stack first did something."""
        return self.asked_ms + self.waits["blocked"]

    @property
    def found_ms(self) -> float:
        """When it had the address."""
        return self.began_ms + max(0.0, self.waits["dns"])

    @property
    def connected_ms(self) -> float:
        """When it had a connection."""
        return self.found_ms + max(0.0, self.waits["connect"])

    @property
    def head_ms(self) -> float:
        """When the response's head had come."""
        return self.told.end_ms - self.waits["receive"]

    @property
    def sent_ms(self) -> float:
        """When the request had been sent."""
        return self.head_ms - self.waits["wait"]

    @property
    def ready_ms(self) -> float:
        """When it began to be sent."""
        return self.sent_ms - self.waits["send"]

    @property
    def logged_ms(self) -> float:
        """When it began by its entry's date, which has whole ms, since the page's."""
        return _moment_ms(self.entry["startedDateTime"])

    @property
    def kind(self) -> str:
        """The kind of resource, as DevTools has it, such as ``stylesheet``."""
        return str(self.entry.get("_resourceType", ""))

    @property
    def is_parsed(self) -> bool:
        """Whether a parser found it, its preload scanner as well."""
        return bool(self.entry.get("_initiator_type") == "parser")


@dataclass(frozen=True, slots=True)
class BrowserLog:
    """What the log of one visit has: its requests, and the page's moments by name, in ms."""

    visit: VisitWindow
    requests: tuple[LoggedRequest, ...]
    unlogged: tuple[RequestTiming, ...]
    page: Mapping[str, Any]

    @property
    def load(self) -> PageLoad:
        """The load as its client saw it."""
        return self.visit.load

    def say(self, problem: str) -> str:
        """Return a problem of its visit."""
        return self.visit.say(problem)

    def is_judged(self, request: LoggedRequest) -> bool:
        """Whether a request is of the load, not of what follows it, and has phases."""
        return request.is_timed and request.told.start_ms <= self.load.plt_ms

    def moment(self, name: str) -> float | None:
        """Return a moment of the page; ``None``: the log has none."""
        value = self.page["pageTimings"].get(name)
        return None if value is None else float(value)

    @property
    def document(self) -> LoggedRequest | None:
        """The request of the page itself, of its last redirect; ``None``: a cache had it."""
        url = self.page["title"]
        own = [e for e in self.requests if e.kind == "document" and e.told.initiator == "other"]
        return own[-1] if own and (len(own) > 1 or own[0].told.url == url) else None

    def timeline(self, kind: str) -> list[Mapping[str, Any]]:
        """What DevTools' timeline has of a kind, by the moment in ms."""
        return sorted((e for e in self.page.get("_timeline", ()) if e["type"] == kind),
                      key=lambda each: float(each["ms"]))  # fmt: skip

    @property
    def started_ms(self) -> float:
        """When its first request began by its date, as ``LoggedRequest.logged_ms``."""
        return _moment_ms(self.page["startedDateTime"])


def read_log(path: Path, visit: VisitWindow) -> BrowserLog:
    """Return the log of a visit that is in a file.

    Raises:
        OSError, ValueError, LookupError: it cannot be read.
    """
    log = json.loads(path.read_text("utf-8"))["log"]
    entries: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in log["entries"]:
        if any(entry["response"].get(name) for name in _WITHIN):
            continue
        entries[without_fragment(entry["request"]["url"])].append(entry)
    found, unlogged = [], []
    first_ms = min((each.start_ms for each in visit.load.requests), default=0.0)

    def is_apart(told: RequestTiming, entry: Mapping[str, Any]) -> bool:
        started_ms = _moment_ms(log["pages"][0]["startedDateTime"])
        after_ms = told.start_ms + (told.queued_ms or 0.0) - first_ms + started_ms
        return abs(_moment_ms(entry["startedDateTime"]) - after_ms) > DATE_GRAIN_MS

    for told in visit.load.requests:
        waiting = entries[without_fragment(told.url)]
        if not waiting:
            unlogged.append(told)
            continue
        # A page may ask for one address several times, as before a POST to another origin.
        entry = waiting[0]
        if len(waiting) > 1:
            entry = min(waiting, key=lambda each: (is_apart(told, each), _unlike(told, each)))
        waiting.remove(entry)
        waits = {name: float(entry["timings"].get(name, -1)) for name in _PHASES}
        queued_ms = float(entry["timings"].get("_queued", 0.0))
        found.append(LoggedRequest(told, entry, waits, told.start_ms + queued_ms))
    return BrowserLog(visit, tuple(found), tuple(unlogged), log["pages"][0])


def document_text(page: Archive) -> bytes | None:
    """Return the recorded document of ``page``; ``None``: it is empty or packed otherwise."""
    root = page.entries[0]
    packed = {name.lower(): value for name, value in root.headers}.get("content-encoding", "")
    if root.body is None or packed not in ("", "identity", "gzip"):
        return None
    text = root.body.read_bytes()
    return zlib.decompress(text, zlib.MAX_WBITS | 32) if packed == "gzip" else text


def _unlike(told: RequestTiming, entry: Mapping[str, Any]) -> int:
    """Return how much an entry is not what was told of a request; of equal ones the first is."""
    size, timings = entry["response"].get("_transferSize"), entry["timings"]
    return sum((
        told.status != entry["response"]["status"],
        told.transfer_bytes != size,
        (told.connect_ms is None) != (timings.get("connect", -1) < 0),
    ))  # fmt: skip


def _moment_ms(date: str) -> float:
    return datetime.fromisoformat(date).timestamp() * 1e3
