"""HAR 1.2 of a load in a browser, from the events of its DevTools protocol.

Names and meaning of the fields beyond HAR 1.2 are those of chrome-har, which readers of such files
know.  What differs between equal loads is left out: the browser's own identifiers.

Source: Chrome DevTools Protocol, domain Network; chrome-har 1.3.1; for the page's moments the HAR
files of Browsertime and WebPageTest.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from testbed.archive.failures import ABORTED
from testbed.base import har_format as har
from testbed.base.har_format import UNKNOWN, Part
from testbed.client.chromium.devtools import Event
from testbed.client.chromium.milestones import EVENTS
from testbed.client.chromium.traffic import INTERNAL, BrowserRequest, is_web

# Not a name that imports take for that of our own exports.
CREATOR = "firstflight-chromium"
PHASES = ("blocked", "dns", "connect", "send", "wait", "receive")
FORM = "application/x-www-form-urlencoded"
DATA = re.compile(r"^(data:[^,]*),.*", re.DOTALL)


def write_har(
    path: Path,
    events: Sequence[Event],
    requests: Iterable[BrowserRequest],
    *,
    browser: str,
    page_url: str,
    plt_ms: float,
    start_s: float,
    seen: Part | None = None,
    timeline: Sequence[Part] = (),
) -> None:
    """Write a load as HAR, one entry a line.

    Requests without any response are added with status 0, as DevTools does, and a service worker's
    script with its own.

    Args:
        path: the file.
        events: of the load, in their order.
        requests: those that belong to the load.
        browser: name and version, with a slash between.
        page_url: what was loaded.
        plt_ms: when the load event ended.
        start_s: the navigation's start by the browser's monotonic clock.
        seen: what the page answered of paints and shifts.
        timeline: largest paints and shifts as DevTools tells them.
    """
    name, _, version = browser.partition("/")
    builder = _Builder()
    for event in events:
        builder.add(event["method"], event["params"])
    entries = [entry.document for entry in builder.finished()]
    page = builder.page | {"title": page_url}
    page["pageTimings"] = page["pageTimings"] | {"onLoad": plt_ms}
    if builder.loaded_s is not None:
        page["pageTimings"]["_loadEventFired"] = _ms(builder.loaded_s - start_s)
    if seen is not None:
        timings, more = _moments(seen)
        page["pageTimings"] |= timings
        page |= {**more, "_seen": seen}
    # Of the wall clock, which this browser reads once, at the first request.
    zero_s = builder.started_s - (builder.zero_s or start_s) + start_s
    page |= {"_timeline": [_paint(each, zero_s) for each in timeline]} if timeline else {}
    # What was given up in the middle of its response is told by that.
    untold = (each for each in requests if each.error != INTERNAL and (
              each.protocol is None or each.error not in (None, ABORTED)))  # fmt: skip
    entries += [_untold(request, builder.started_s, start_s) for request in untold]
    entries.sort(key=lambda entry: str(entry["startedDateTime"]))
    text = json.dumps(har.log(CREATOR, page, [], (name, version)), ensure_ascii=False)
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    # Not by `indent`: that writer is in Python, and ten times slower.
    path.write_text(f"{text[:-3]}\n{lines}\n]}}}}\n", "utf-8")


class _Entry:
    """An entry under construction, and what its numbers are made of."""

    def __init__(self, document: Part, sent_s: float) -> None:
        self.document = document
        self.sent_s = sent_s
        self.requested_s: float | None = None
        self.head_ms = 0.0
        self.blocked_cookies: list[Part] = []
        self.sent_headers: Mapping[str, str] | None = None
        self.cached = False

    @property
    def response(self) -> Part | None:
        """The response, if there is one yet."""
        response_part: Part | None = self.document.get("response")
        return response_part


class _Builder:
    """Entries from events; a request is known by its number until it is redirected."""

    def __init__(self) -> None:
        self.page = har.page(har.PAGE_ID, "", "", {})
        self.started_s = 0.0
        self.loaded_s: float | None = None
        self.zero_s: float | None = None
        self._entries: list[_Entry] = []
        self._current: dict[str, _Entry] = {}
        # What was told of a request or a response that is not told of itself yet.
        self._sent: dict[str, Part] = {}
        self._heads: dict[str, Part] = {}

    def add(self, method: str, params: Part) -> None:
        """Take over one event."""
        domain, _, name = method.partition(".")
        number: str = params.get("requestId", "")
        entry = self._current.get(number)
        if name == "requestWillBeSent":
            self._begin(number, entry, params)
        elif name == "requestWillBeSentExtraInfo":
            # A request that has its head already is going to be redirected.
            if entry is None or entry.sent_headers is not None:
                self._sent[number] = params
            else:
                _read_sent(entry, params)
        elif name == "responseReceivedExtraInfo":
            self._read_head(number, entry, params)
        elif domain == "Page":
            self._stamp(name, params)
        elif entry is None:
            return
        elif name == "requestServedFromCache":
            entry.cached = True
        elif name == "responseReceived":
            self._respond(entry, params["response"], self._heads.pop(number, None))
        elif name == "dataReceived":
            self._receive(entry, params)
        elif name == "loadingFinished":
            _finish(entry, params["timestamp"], params["encodedDataLength"])
        elif name == "resourceChangedPriority":
            entry.document["_priority"] = params["newPriority"]
        elif name == "loadingFailed":
            if params["errorText"] == ABORTED:
                _finish(entry, params["timestamp"], UNKNOWN)
            else:
                self._entries.remove(entry)
                del self._current[number]

    def finished(self) -> list[_Entry]:
        """Return the entries that came from the network and have a response."""
        return [entry for entry in self._entries if entry.response is not None and not entry.cached]

    def _stamp(self, name: str, params: Part) -> None:
        if name == "domContentEventFired" and self.zero_s is not None:
            self.page["pageTimings"]["onContentLoad"] = _ms(params["timestamp"] - self.zero_s)
        elif name == "loadEventFired" and self.loaded_s is None:
            self.loaded_s = params["timestamp"]

    def _moment(self, timestamp: float) -> str:
        """Return a moment of the browser's clock as HAR has it; the wall clock may be set."""
        return _iso(self.started_s + timestamp - (self.zero_s or 0.0))

    def _begin(self, number: str, before: _Entry | None, params: Part) -> None:
        if params.get("redirectResponse") and before is not None:
            self._respond(before, params["redirectResponse"], self._heads.pop(number, None))
            del self._current[number]
        if not is_web(params["request"]["url"]):
            return
        timestamp: float = params["timestamp"]
        if self.zero_s is None:
            self.zero_s, self.started_s = timestamp, params["wallTime"]
            self.page["startedDateTime"] = _iso(self.started_s)
        entry = _Entry(_new_entry(params) | {"startedDateTime": self._moment(timestamp)}, timestamp)
        self._entries.append(entry)
        self._current[number] = entry
        if number in self._sent:
            _read_sent(entry, self._sent.pop(number))

    def _read_head(self, number: str, entry: _Entry | None, params: Part) -> None:
        """Take the head as it came; it may be known before the browser tells of the response."""
        if entry is not None and entry.response is not None:
            entry.response["headers"] = har.pairs(params["headers"].items())
            return
        if entry is not None:
            entry.blocked_cookies = params.get("blockedCookies", [])
        self._heads[number] = params

    def _respond(self, entry: _Entry, response: Part, head: Part | None) -> None:
        document, request = entry.document, entry.document["request"]
        protocol: str = response.get("protocol", "")
        document["response"] = answer = _new_response(response, entry.blocked_cookies)
        request["httpVersion"] = protocol
        if response.get("requestHeaders"):
            request["headers"] = har.pairs(response["requestHeaders"].items())
            entry.sent_headers = response["requestHeaders"]
        if response.get("fromDiskCache"):
            entry.cached = True
        elif protocol.lower().startswith("http/1."):
            text = head.get("headersText") if head else None
            size = len(text) if text else _head_bytes(response)
            answer["headersSize"] = size
            answer["bodySize"] = max(0, response["encodedDataLength"] - size)
            if entry.sent_headers is not None:  # not of what a shared worker asks for
                request["headersSize"] = _request_bytes(request, entry.sent_headers)
        if head:
            answer["headers"] = har.pairs(head["headers"].items())
        document["connection"] = str(response.get("connectionId", ""))
        if response.get("remoteIPAddress"):
            document["serverIPAddress"] = response["remoteIPAddress"].strip("[]")
        self._time(entry, response.get("timing"))

    def _time(self, entry: _Entry, timing: Part | None) -> None:
        document = entry.document
        if not timing:
            document["timings"] = dict.fromkeys(("blocked", "dns", "connect", "ssl"), UNKNOWN)
            document["timings"] |= {"send": 0, "wait": 0, "receive": 0}
            document["timings"]["comment"] = "No timings available from Chrome"
            return
        starts = (timing[f"{phase}Start"] for phase in ("dns", "connect", "send"))
        document["timings"] = {
            "blocked": round(next((start for start in starts if start >= 0), UNKNOWN), 3),
            "dns": _lasted(timing, "dns"),
            "connect": _lasted(timing, "connect"),
            "send": round(timing["sendEnd"] - timing["sendStart"], 3),
            "wait": round(timing["receiveHeadersEnd"] - timing["sendEnd"], 3),
            "receive": 0,
            "ssl": _lasted(timing, "ssl"),
        }
        entry.requested_s = timing["requestTime"]
        entry.head_ms = timing["receiveHeadersEnd"]
        if not entry.cached:
            document["startedDateTime"] = self._moment(timing["requestTime"])
            queued_s = timing["requestTime"] - entry.sent_s
            if queued_s > 0:
                document["timings"]["_queued"] = _ms(queued_s)
        _add_up(document)

    def _receive(self, entry: _Entry, params: Part) -> None:
        if entry.response is not None:
            entry.response["content"]["size"] += params["dataLength"]
        moment = _ms(params["timestamp"] - (self.zero_s or 0.0))
        chunk = {"ts": moment, "bytes": params["dataLength"]}
        entry.document.setdefault("_chunks", []).append(chunk)
        _finish(entry, params["timestamp"], UNKNOWN)  # it may be the last that is told of it


def _new_entry(params: Part) -> Part:
    request, initiator = params["request"], _plain(params["initiator"])
    entry: Part = {
        "pageref": har.PAGE_ID,
        "startedDateTime": "",
        "time": 0,
        "request": _new_request(request),
        "cache": {},
        "_initialPriority": request["initialPriority"],
        "_priority": request["initialPriority"],
        "_initiator_detail": json.dumps(initiator, ensure_ascii=False, separators=(",", ":")),
        "_initiator_type": initiator["type"],
    }
    if params.get("type"):
        entry["_resourceType"] = params["type"].lower()
    if params.get("renderBlockingBehavior"):
        entry["_renderBlocking"] = params["renderBlockingBehavior"].lower()
    if initiator["type"] == "parser" and "url" in initiator:
        entry["_initiator"] = initiator["url"]
        if "lineNumber" in initiator:
            entry["_initiator_line"] = initiator["lineNumber"] + 1  # the browser counts from 0
    elif initiator["type"] == "script" and initiator.get("stack", {}).get("callFrames"):
        frame = initiator["stack"]["callFrames"][0]
        entry["_initiator"] = frame["url"]
        entry["_initiator_line"] = frame["lineNumber"] + 1
        entry["_initiator_column"] = frame["columnNumber"] + 1
        entry["_initiator_function_name"] = frame["functionName"]
        entry["_initiator_script_id"] = frame["scriptId"]
    return entry


def _plain(initiator: Part) -> Part:
    """Return what led to a request, without the browser's own identifiers."""
    plain = {name: value for name, value in initiator.items() if name != "requestId"}
    if "stack" in plain:
        plain["stack"] = _plain_stack(plain["stack"])
    return plain


def _plain_stack(stack: Part) -> Part:
    plain = {name: value for name, value in stack.items() if name != "parentId"}
    plain["callFrames"] = [frame | {"scriptId": "0"} for frame in stack["callFrames"]]
    if "parent" in stack:
        plain["parent"] = _plain_stack(stack["parent"])
    return plain


def _new_request(request: Part) -> Part:
    url = request["url"] + request.get("urlFragment", "")
    posted: str = request.get("postData", "")
    made: Part = {
        "method": request["method"],
        "url": url,
        "queryString": har.query(url),
        "headersSize": UNKNOWN,
        "bodySize": len(posted),
        "cookies": [],
        "headers": har.pairs(request["headers"].items()),
    }
    kind = _value_of(request["headers"], "content-type")
    if kind and posted:
        made["postData"] = {"mimeType": kind}
        if kind.startswith(FORM):
            made["postData"]["params"] = har.pairs(parse_qsl(posted, keep_blank_values=True))
        else:
            made["postData"]["text"] = posted
    if request.get("isLinkPreload"):
        made["_isLinkPreload"] = True
    return made


def _read_sent(entry: _Entry, params: Part) -> None:
    """Take the request's head as sent; most of it is also in what the page asked for."""
    request = entry.document["request"]
    entry.sent_headers = params["headers"]
    known = {(each["name"].lower(), each["value"]) for each in request["headers"]}
    request["headers"] += [
        each
        for each in har.pairs(params["headers"].items())
        if (each["name"].lower(), each["value"]) not in known
    ]
    if request.get("httpVersion", "").lower().startswith("http/1."):  # behind its response
        request["headersSize"] = _request_bytes(request, entry.sent_headers)
    request["cookies"] += [
        _cookie(each["cookie"])
        for each in params["associatedCookies"]
        if not each["blockedReasons"]
    ]


def _new_response(response: Part, blocked: Sequence[Part]) -> Part:
    headers: Mapping[str, str] = response["headers"]
    content: Part = {"size": 0, "mimeType": response["mimeType"]}
    if "charset" in response:
        content["_charset"] = response["charset"]
    lines = filter(None, _value_of(headers, "set-cookie").split("\n"))
    refused = {line for each in blocked if (line := each.get("cookieLine"))}
    made = har.response(
        response["status"],
        response["statusText"],
        response.get("protocol", ""),
        headers.items(),
        content,
        _value_of(headers, "location"),
        (UNKNOWN, UNKNOWN, response["encodedDataLength"]),
    )
    made["cookies"] = [_parse_cookie(line) for line in lines if line not in refused]
    return made | {
        "_fromDiskCache": bool(response.get("fromDiskCache")),
        "_fromEarlyHints": bool(response.get("fromEarlyHints")),
        "_fromServiceWorker": bool(response.get("fromServiceWorker")),
        "_fromPrefetchCache": bool(response.get("fromPrefetchCache")),
    }


def _cookie(cookie: Part) -> Part:
    """Return a cookie of the browser's store; one of the session has no end."""
    made = {name: cookie[name] for name in ("name", "value", "path", "domain") if cookie.get(name)}
    if cookie.get("expires", UNKNOWN) > 0:
        made["expires"] = _iso(cookie["expires"])
    return {"value": ""} | made | {name: bool(cookie.get(name)) for name in ("httpOnly", "secure")}


def _parse_cookie(line: str) -> Part:
    """Parse a Set-Cookie header's value (RFC 6265 section 5.2)."""
    first, *rest = line.split(";")
    name, _, value = first.partition("=")
    made: Part = {"name": name.strip(), "value": value.strip(), "httpOnly": False, "secure": False}
    for each in rest:
        word, _, given = each.strip().partition("=")
        if word.lower() in ("path", "domain", "expires") and given:
            made[word.lower()] = given
        elif word.lower() == "httponly":
            made["httpOnly"] = True
        elif word.lower() == "secure":
            made["secure"] = True
    return made


def _finish(entry: _Entry, ended_s: float, transferred: float) -> None:
    document, response = entry.document, entry.response
    if entry.requested_s is not None and "timings" in document:
        document["timings"]["receive"] = _ms(ended_s - entry.requested_s, -entry.head_ms)
        _add_up(document)
    if response is None or transferred < 0:
        return
    head = max(0, response["headersSize"])
    response["_transferSize"] = transferred
    response["bodySize"] = max(0, transferred - head)
    saved = response["content"]["size"] - response["bodySize"]
    if saved > 0:
        response["content"]["compression"] = saved


def _add_up(document: Part) -> None:
    document["time"] = sum(max(0.0, document["timings"][phase]) for phase in PHASES)


def _moments(seen: Part) -> tuple[Part, Part]:
    """Return what Browsertime has in ``pageTimings``, and what WebPageTest has in the page."""
    navigation, largest = seen.get("navigation") or {}, seen["largest"] or [None]
    first, contents = (
        seen["paints"].get(f"first-{name}") for name in ("paint", "contentful-paint")
    )
    timings = {
        "_firstPaint": first,
        "_firstContentfulPaint": contents,
        "_largestContentfulPaint": largest[-1],
        "_domInteractiveTime": navigation.get("domInteractive"),
        "_domContentLoadedTime": navigation.get("domContentLoadedEventStart"),
    }
    page = {
        "_render": first,
        "_firstPaint": first,
        "_firstContentfulPaint": contents,
        "_LargestContentfulPaint": largest[-1],
        **{f"_{name}": navigation.get(name) for name in EVENTS},
        "_userTimes": {e[1]: e[2] for e in seen.get("timings") or () if e[0] == "mark"} or None,
    }
    return _known(timings), _known(page)


def _known(values: Part) -> Part:
    return {name: value for name, value in values.items() if value is not None}


def _paint(event: Part, zero_s: float) -> Part:
    """Return moment in ms, size and URL of a largest paint, which may have none, or of a shift."""
    moment = {"type": event["type"], "ms": _ms(event["time"] - zero_s)}
    if "lcpDetails" not in event:
        return moment | {"value": event["layoutShiftDetails"]["value"]}
    paint = event["lcpDetails"]
    # As the page is asked for it.
    url = {"url": DATA.sub(r"\1", paint["url"])[:500]} if paint.get("url") else {}
    return moment | {"size": paint["size"]} | url


def _untold(request: BrowserRequest, wall_s: float, start_s: float) -> Part:
    began_ms = 1000 * (request.start_s - start_s)
    ended_s = request.start_s if request.end_s is None else request.end_s
    lasted_ms = 1000 * (ended_s - request.start_s)
    message: Part = {"cookies": [], "headers": [], "headersSize": UNKNOWN, "bodySize": UNKNOWN}
    message["httpVersion"] = ""
    why = {} if request.status else {"_error": request.error or "not complete at the load event"}
    request_part = {"method": request.method, "url": request.url, "queryString": [], **message}
    response = {
        "status": request.status,
        "statusText": "",
        "content": {"size": 0, "mimeType": ""},
        "redirectURL": "",
        **why,
        **message,
    }
    timings = dict.fromkeys(PHASES[:3], UNKNOWN) | {"send": 0, "wait": lasted_ms, "receive": 0}
    started = _iso(wall_s + began_ms / 1000)
    return har.entry(har.PAGE_ID, started, lasted_ms, request_part, response, timings)


def _request_bytes(request: Part, sent: Mapping[str, str]) -> int:
    """Return the bytes of a request's head in HTTP/1.x, as sent."""
    parts = urlsplit(request["url"])
    target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    line = f"{request['method']} {target} {request['httpVersion']}"
    return len(line) + 4 + sum(len(name) + len(value) + 4 for name, value in sent.items())


def _head_bytes(response: Part) -> int:
    """Return the bytes of a response's head in HTTP/1.x, where it is not known as it came."""
    line = f"{response['protocol']} {response['status']} {response['statusText']}"
    headers: Mapping[str, str] = response["headers"]
    return len(line) + 4 + sum(len(name) + len(value) + 4 for name, value in headers.items())


def _value_of(headers: Mapping[str, str], name: str) -> str:
    return next((value for each, value in headers.items() if each.lower() == name), "")


def _lasted(timing: Part, phase: str) -> float:
    start: float = timing[f"{phase}Start"]
    return round(timing[f"{phase}End"] - start, 3) if start >= 0 else UNKNOWN


def _ms(seconds: float, more_ms: float = 0.0) -> float:
    return round(seconds * 1000 + more_ms, 3)


def _iso(seconds: float) -> str:
    """Return a moment in seconds since 1970 as HAR has it, to the millisecond."""
    ms = int(seconds * 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(ms // 1000))}.{ms % 1000:03d}Z"
