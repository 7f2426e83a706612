"""The requests of one load, as the browser's Network events say them.

Source: Chrome DevTools Protocol, domain Network.  An event's timestamp is the browser's monotonic
clock in seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import Any

from testbed.archive.failures import ABORTED
from testbed.client.chromium.devtools import Event
from testbed.client.page_coverage import FIRST_ERROR_STATUS, without_fragment

RESPONSE = "Network.responseReceived"
SOCKET = "Network.webSocketCreated"
LOADED = "Page.loadEventFired"
EVENTS = (
    "Network.requestWillBeSent",
    "Network.requestWillBeSentExtraInfo",
    "Network.requestServedFromCache",
    "Network.responseReceived",
    "Network.responseReceivedExtraInfo",
    "Network.dataReceived",
    "Network.loadingFinished",
    "Network.loadingFailed",
    "Network.resourceChangedPriority",
    SOCKET,
    "Page.domContentEventFired",
    LOADED,
)
"""The events of which requests and HAR are made."""

OK = 200
BODILESS = (204, 205, 304)
"""Statuses whose responses have no body; see https://fetch.spec.whatwg.org/#statuses."""
INTERNAL = "Internal Redirect"
ENDLESS = ("EventSource", "WebSocket", "Ping")
"""Types of requests that are answered for as long as the page lives."""
WEB = ("http:", "https:")


class BrowserRequest:
    """One request that went out, a redirected one too; moments in the browser's seconds.

    ``last_s`` is when something last arrived.  ``blocked``: by us, so that nothing left.
    """

    def __init__(self, params: dict[str, Any]) -> None:
        self.url: str = params["request"]["url"]
        self.method: str = params["request"]["method"]
        self.initiator = _describe(params["initiator"])
        self.start_s: float = params["timestamp"]
        self.end_s: float | None = None
        self.last_s: float | None = None
        self.status = 0
        self.transfer_bytes: int | None = None
        self.protocol: str | None = None
        self.connection: str | None = None
        self.dns_ms: float | None = None
        self.connect_ms: float | None = None
        self.queued_ms: float | None = None
        self.blocked_ms: float | None = None
        self.tls_ms: float | None = None
        self.error: str | None = None
        self.cached = False
        self.blocked = False
        self.unread = False
        self.endless = params.get("type") in ENDLESS
        own = params.get("documentURL") == params["request"]["url"]
        self.own_script = own and params.get("type") == "Script"
        self.head_bytes = 0
        self.body_bytes = 0

    def respond(self, response: dict[str, Any]) -> None:
        """Take over what a response says."""
        self.status = response["status"]
        self.head_bytes = int(response.get("encodedDataLength", 0))
        self.protocol = response.get("protocol")
        connection = response.get("connectionId")
        self.connection = str(connection) if connection else None
        timing = response.get("timing") or {}
        self.dns_ms = _lasted(timing, "dns")
        self.connect_ms = _lasted(timing, "connect")
        self.tls_ms = _lasted(timing, "ssl")
        if "requestTime" in timing:
            self.queued_ms = max(0.0, 1000 * (timing["requestTime"] - self.start_s))
            starts = (timing[f"{phase}Start"] for phase in ("dns", "connect", "send"))
            self.blocked_ms = next((start for start in starts if start >= 0), None)


class BrowserTraffic:
    """All requests of a load so far, from the events of any number of sessions.

    What the browser's caches or a service worker answered did not go out: what the worker itself
    asked the network for is in the events of its own session.  ``sockets`` are the URLs of the
    WebSockets that were opened.
    """

    def __init__(self, *, kept: Sequence[str] | None = None, silent: Container[str] = ()) -> None:
        """Take note of a load.

        ``kept`` are URLs that are not owed again, like what the cache answers; ``None``: that is
        empty.  No answer is awaited for the URLs ``silent``.
        """
        self._silent = silent
        self.kept = tuple(kept or ())
        self.events: list[Event] = []
        self.sockets: list[str] = []
        self.keeps_cache = kept is not None
        self._requests: list[BrowserRequest] = []
        self._current: dict[str, BrowserRequest] = {}
        self._unanswered: set[str] = set()
        self._connections: dict[int, int] = {}
        self._loaded = False
        self._frame: tuple[str, str] | None = None
        self.went_on: str | None = None

    def add(self, events: Iterable[Event]) -> None:
        """Take over events in their order; connections are numbered anew, by first use, from 1."""
        for event in events:
            params = event["params"]
            method: str = event["method"]
            number: str = params.get("requestId", "")
            request = self._current.get(number)
            if (method.startswith("Page.") and self._loaded) or (request and request.unread):
                continue  # of what comes after the page, or when it is left
            self._loaded = self._loaded or method == LOADED
            if method == RESPONSE and not request and is_web(params["response"].get("url", "")):
                self.add([_request_of(event)])
            self.events.append(event)
            if method == SOCKET:
                self.sockets.append(params["url"])
            self._renumber(params)
            if method == "Network.requestWillBeSent":
                self._begin(number, params)
            elif method in ("Network.responseReceived", *ENDS):
                self._unanswered.discard(number)
            request = self._current.get(number)
            if request is not None:
                _advance(request, method, params)

    @property
    def first_s(self) -> float:
        """When the first request began."""
        return min((each.start_s for each in self.requests()), default=0.0)

    @property
    def quiet_since_s(self) -> float:
        """When the last request ended or, of those that have no end, began."""
        return max((each.end_s or each.start_s for each in self.requests()), default=0.0)

    def under_way(self) -> list[BrowserRequest]:
        """Return the requests that have not ended, but those that never do."""
        return [each for each in self.requests() if each.end_s is None and not each.endless]

    @property
    def is_answered(self) -> bool:
        """Whether each request has at least the head of an answer, but those without an end.

        One whose body does not come is not waited for: a script that never reads a body keeps its
        request open for ever.
        """
        return not self._unanswered

    def requests(self) -> list[BrowserRequest]:
        """Return the requests that went out, in the order in which they did."""
        return [request for request in self._requests if not (request.cached or request.blocked)]

    def cached(self) -> tuple[str, ...]:
        """Return the URLs that a cache answered, in the order in which they were asked for."""
        return tuple(without_fragment(each.url) for each in self._requests if each.cached)

    def is_settled(self, loaded_s: float, due: Iterable[str]) -> bool:
        """Say whether all that is due, and all that began before the load event, has ended.

        Requests that hold no load event back, such as those of fetch(), were recorded too, and may
        begin or end later than in the recording.

        Args:
            loaded_s: when the load event ended, by the browser's clock.
            due: URLs that the load is to ask for, each as often as recorded.
        """
        remaining = Counter(due)
        for request in self._requests:
            if request.cached and not self.keeps_cache:
                continue
            url = without_fragment(request.url)
            if request.end_s is None and (request.start_s <= loaded_s or remaining[url] > 0):
                return False
            remaining[url] -= 1
        return all(count <= 0 for count in remaining.values())

    def end_unread(self) -> None:
        """End what was answered and then silent: a body that no script reads gets no end."""
        for request in self._requests:
            if request.end_s is None and request.status != 0:
                request.end_s = request.last_s
                request.unread = True

    def _begin(self, number: str, params: dict[str, Any]) -> None:
        before = self._current.get(number)
        redirect = params.get("redirectResponse")
        if redirect and before:
            before.respond(redirect)
            before.end_s = params["timestamp"]
            before.transfer_bytes = redirect.get("encodedDataLength")
            if redirect.get("statusText") == INTERNAL:  # by HSTS, or for Critical-CH: no answer
                before.error, before.status, before.protocol = INTERNAL, 0, None
        if is_web(params["request"]["url"]):
            request = self._current[number] = BrowserRequest(params)
            self._requests.append(request)
            self._follow(params)
            if not (request.endless or without_fragment(request.url) in self._silent):
                self._unanswered.add(number)

    def _follow(self, params: dict[str, Any]) -> None:
        """Take note of whether the page's own frame, whose first document is known, goes on."""
        if params.get("type") != "Document":
            return
        frame, loader = params.get("frameId", ""), params.get("loaderId", "")
        self._frame = self._frame or (frame, loader)
        if frame == self._frame[0] and loader != self._frame[1]:
            self.went_on = params["request"]["url"]

    def _renumber(self, params: dict[str, Any]) -> None:
        """Number connections by first use: the browser counts those of all that it does."""
        for response in (params.get("redirectResponse"), params.get("response")):
            # 0 stands for no connection.
            if response and response.get("connectionId"):
                numbers = self._connections
                response["connectionId"] = numbers.setdefault(
                    response["connectionId"], len(numbers) + 1
                )


ENDS = ("Network.loadingFinished", "Network.loadingFailed")


def _request_of(event: Event) -> Event:
    """Return the event of a request of which the browser tells the response alone.

    So it does of the first ones of a service worker that was started again.
    """
    response, told = event["params"]["response"], event["params"]
    asked = {"url": response["url"], "method": "GET", "initialPriority": "Medium",
             "headers": response.get("requestHeaders", {})}  # fmt: skip
    began_s = (response.get("timing") or {}).get("requestTime", told["timestamp"])
    params = {"requestId": told["requestId"], "request": asked, "type": told.get("type"),
              "initiator": {"type": "other"}, "timestamp": began_s, "wallTime": 0.0}  # fmt: skip
    return event | {"method": "Network.requestWillBeSent", "params": params}


def urls_asked(events: Iterable[Event], sessions: Collection[str]) -> Iterator[str]:
    """Yield the URLs that were asked for in these sessions."""
    for event in events:
        if event["method"] == "Network.requestWillBeSent" and event.get("sessionId") in sessions:
            yield without_fragment(event["params"]["request"]["url"])


def is_web(url: str) -> bool:
    """Say whether a URL leads to a server; data, blobs and the browser's own pages do not."""
    return url.startswith(WEB)


def _advance(request: BrowserRequest, method: str, params: dict[str, Any]) -> None:
    if method == "Network.requestServedFromCache":
        request.cached = True
    elif method == "Network.responseReceived":
        response = params["response"]
        request.respond(response)
        request.last_s = params["timestamp"]
        sources = ("fromDiskCache", "fromPrefetchCache", "fromServiceWorker")
        request.cached = request.cached or any(response.get(source) for source in sources)
    elif method == "Network.dataReceived":
        request.last_s = params["timestamp"]
        request.body_bytes += int(params["dataLength"])
    elif method == "Network.loadingFinished":
        request.end_s = params["timestamp"]
        transferred = int(params["encodedDataLength"])
        # Of a service worker's script, which is its own document, the browser counts the head
        # alone, whatever came of its body, and may report nothing but the end.
        headed = transferred <= request.head_bytes and request.body_bytes > 0
        if not request.status:
            request.status = OK
        elif not (request.own_script and headed):
            request.transfer_bytes = transferred
    elif method == "Network.loadingFailed":
        request.end_s = params["timestamp"]
        request.blocked = params.get("blockedReason") == "inspector"
        # Scripts let go of the rest of a response that has no rest, the browser of an error's page
        # in the place of a script, style sheet or video (HTML, section 8.1.4.2).
        bodiless = params.get("canceled") and request.status in BODILESS
        error_page = params["errorText"] == ABORTED and request.status >= FIRST_ERROR_STATUS
        if not (bodiless or error_page):
            request.error = params.get("blockedReason") or params["errorText"]
            request.status = 0


def _lasted(timing: dict[str, Any], phase: str) -> float | None:
    """Return how long a phase took; the browser says -1 for what a request did not wait for."""
    start: float = timing.get(f"{phase}Start", -1)
    end: float = timing.get(f"{phase}End", -1)
    return end - start if 0 <= start <= end else None


def _describe(initiator: dict[str, Any]) -> str:
    url = initiator.get("url")
    if url is None:
        frames = initiator.get("stack", {}).get("callFrames")
        url = frames[0]["url"] if frames else ""
    return f"{initiator['type']} {url}" if url else str(initiator["type"])
