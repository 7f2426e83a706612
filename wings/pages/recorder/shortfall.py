"""Shortfalls of a recording, in words: nothing is dropped silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from testbed.archive.failures import ABORTED
from testbed.archive.head import BODILESS, NOT_MODIFIED
from wings.pages.recorder.devtools import BrowserReport, PageRequest, RequestPairing
from wings.pages.recorder.netlog import NetLog
from wings.pages.recorder.sockets import NetTransfer

MOST_NAMED = 20
_REDIRECTS, _ERROR = frozenset({301, 302, 303, 307, 308}), 400
_WAITING = "still waiting at the end"
STILL_WAITING = "net::ERR_TIMED_OUT"


def find_failure(transfer: NetTransfer, request: PageRequest | None) -> str | None:
    """Return how a request failed in the browser; ``None`` if it did not, or nobody can tell.

    What the recording's end cut short was waiting.
    """
    if request is None or request.status >= _ERROR or request.status in BODILESS:
        return None
    if request.cancelled:
        return ABORTED
    if request.error:
        return request.error
    waiting = request.ended_s is None and transfer.status is None and request.source == "network"
    return STILL_WAITING if waiting and not request.status else None


def is_unread(transfer: NetTransfer, request: PageRequest | None) -> bool:
    """Return whether the browser left a body that it could have had to its end."""
    if transfer.unread or request is None or not request.error:
        return transfer.unread
    refused = not request.cancelled or request.status >= _ERROR
    return refused and transfer.cut and bool(transfer.declared_bytes)


class Shortfalls:
    """Collects URLs by what happened to them.

    Queries are left out: a note is for people, and a query may hold a secret.
    """

    def __init__(self) -> None:
        self._urls: dict[str, list[str]] = {}
        self._plain: list[str] = []

    def add(self, what: str, url: str) -> None:
        """Note ``what``, a clause without its subject, such as "no response (timed out)"."""
        self._urls.setdefault(what, []).append(_bare(url))

    def add_all(self, what: str, urls: Iterable[str]) -> None:
        """Note ``what`` of several URLs."""
        for url in urls:
            self.add(what, url)

    def say(self, sentence: str) -> None:
        """Add a sentence that is about no URL."""
        self._plain.append(sentence)

    def sentences(self) -> tuple[str, ...]:
        """Return one sentence for each kind, in the order of first mention."""
        named = [(what, _named(Counter(urls))) for what, urls in self._urls.items()]
        return (*self._plain, *(f"{what[0].upper()}{what[1:]}: {urls}." for what, urls in named))


def _named(urls: Mapping[str, int]) -> str:
    names = [f"{url} ({count} times)" if count > 1 else url for url, count in urls.items()]
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _bare(url: str) -> str:
    path, mark, _ = url.partition("?")
    return f"{path}?..." if mark else path


def note_load(notes: Shortfalls, report: BrowserReport, log: NetLog) -> None:
    """Note what is true of the whole load."""
    if log.cut:
        notes.say("The browser's network log has no end: the browser ended early.")
    if not report.quiet:
        notes.say("The page was not quiet when the time was up.")
    if report.plt_ms is None:
        notes.say("The page did not answer after its load event: its title is not known.")
    if report.scrolled is False:
        notes.say("The end of the page was not reached by scrolling.")
    if report.dialogs:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(report.dialogs).items())
        notes.say(f"Dialogs of the page were accepted: {kinds}.")
    later = [request for request in report.requests if _is_page(request, report)][1:]
    went_on = "page that this one went on to, whose requests are kept as its own (record that one)"
    notes.add_all(went_on, (request.url for request in later))
    unopened = (each.url for each in report.sockets if each.opened_s is None)
    notes.add_all("WebSocket that was not opened, which a replay refuses too", unopened)
    spoken = (each.url for each in report.sockets if each.opened_s is not None)
    notes.add_all("WebSocket, whose messages are replayed in their order", spoken)
    workers = [url for kind, url in report.targets if kind == "service_worker"]
    notes.add_all("service worker, whose requests are kept as the page's own", workers)


def _is_page(request: PageRequest, report: BrowserReport) -> bool:
    main = request.type == "Document" and request.frame == report.main_frame
    return main and request.redirected_from is None


def note_answer(notes: Shortfalls, transfers: Sequence[NetTransfer]) -> None:
    """Note that the page itself, at the end of its redirects, is an error page."""
    page = next((t for t in transfers if (t.status or 0) not in _REDIRECTS), None)
    if page is not None and (page.status or 0) >= _ERROR:
        notes.add(f"page itself was answered with status {page.status}", page.url)


def note_missing(notes: Shortfalls, pairing: RequestPairing, kept_ids: Collection[int]) -> None:
    """Note the requests without a response from the network; ``kept_ids`` are of transfers."""
    for transfer, request in pairing.pairs:
        if transfer.position is None:
            if request:
                _note_unsent(notes, request)
        elif transfer.status is None:
            _note_unanswered(notes, transfer, request)
        elif transfer.status == NOT_MODIFIED and id(transfer) not in kept_ids:
            notes.add("answered 304 Not Modified to one who had the body, left out", transfer.url)
    for request in pairing.alone:
        _note_unsent(notes, request)


def note_body(notes: Shortfalls, transfer: NetTransfer, request: PageRequest | None) -> None:
    """Note what is special about a response that is kept."""
    if transfer.header("content-type").startswith("text/event-stream"):
        end = "which stays open" if transfer.cut else "with its end"
        notes.add(f"event stream, {end}", transfer.url)
    elif transfer.cut and not is_unread(transfer, request):
        why = "cancelled by the page" if request and request.cancelled else "ended"
        notes.add(f"{why} before the body was complete, what had arrived is kept", transfer.url)
    elif transfer.body is None or is_unread(transfer, request):
        what = "body of which only the size was seen, replaced by another of that size"
        notes.add(what, transfer.url)
    if request is None:
        notes.add("seen in the browser's network log only, so that what led to it is a guess",
                  transfer.url)  # fmt: skip


def _note_unanswered(notes: Shortfalls, transfer: NetTransfer, request: PageRequest | None) -> None:
    """Note a request without a response; the browser cancels the open ones when it ends."""
    if request and request.cancelled:
        notes.add("cancelled by the page before a response", transfer.url)
    elif request and request.error:
        notes.add(f"no response ({request.error})", transfer.url)
    elif transfer.error and not transfer.cancelled:
        notes.add(f"no response (net error {transfer.error})", transfer.url)
    else:
        notes.add(f"no response ({_WAITING})", transfer.url)


def _note_unsent(notes: Shortfalls, request: PageRequest) -> None:
    if request.source != "network":
        notes.add(f"answered by the browser's {request.source}, not by the network", request.url)
    elif request.status:
        notes.add("answered by the browser itself, not by the network", request.url)
    else:
        notes.add(f"no response ({request.error or _WAITING})", request.url)
