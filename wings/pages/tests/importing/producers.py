"""How more tools write the made-up site of ``site``: what each does otherwise than HAR 1.2 has it.

The shapes follow what the tools' own exports look like; the contents are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from wings.pages.tests.importing.site import (
    LOAD_MS,
    ROOT,
    SITE,
    START,
    Sent,
    browsertime,
    devtools,
    firefox,
    mitmproxy,
    moment,
    pairs,
    playwright,
    text_of,
    webpagetest,
)

Document = dict[str, Any]
Producer = Callable[..., Document]
_HTTP = {"h2": "HTTP/2.0", "http/1.1": "HTTP/1.1"}


def _plain(sent: Sent, bodies: bool) -> Document:
    content: Document = {"size": len(sent.content), "mimeType": sent.mime}
    content |= text_of(sent) if bodies else {}
    request = {
        "method": "GET", "url": sent.url, "httpVersion": _HTTP[sent.protocol],
        "headers": pairs([("Referer", sent.initiator), ("Cookie", "theme=dark; ref=" + ROOT)]),
        "queryString": [], "cookies": [{"name": "theme", "value": "dark"}],
        "headersSize": 210, "bodySize": 0,
    }  # fmt: skip
    response = {
        "status": sent.status, "statusText": "OK", "httpVersion": _HTTP[sent.protocol],
        "headers": pairs([*sent.headers, ("content-length", str(len(sent.wire)))]),
        "cookies": [], "content": content, "redirectURL": sent.location,
        "headersSize": len(sent.head), "bodySize": len(sent.wire),
    }  # fmt: skip
    timings = {"blocked": -1, "dns": -1, "connect": -1, "send": 0, "wait": 40, "receive": 1}
    return {"startedDateTime": moment(sent.start_ms), "time": 41, "request": request,
            "response": response, "cache": {}, "timings": timings,
            "serverIPAddress": "192.0.2.1"}  # fmt: skip


def _session(name: str, entries: list[Document], **more: Any) -> Document:
    return {"log": {"version": "1.2", "creator": {"name": name, "version": "5.0"},
                    **more} | {"entries": entries}}  # fmt: skip


def chrome_2014(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """Chrome before it had fields of its own: no initiators, a cache told by sizes alone."""
    document = devtools(site, bodies=bodies)
    document["log"]["creator"]["version"] = "537.36"
    for entry in document["log"]["entries"]:
        for name in ("_initiator", "_priority", "_resourceType"):
            del entry[name]
        entry["timings"] = {"blocked": 0.7, "dns": -1, "connect": -1, "ssl": -1, **entry["timings"]}
    again = deepcopy(document["log"]["entries"][2])
    again["response"] |= {"_transferSize": 0, "bodySize": 0, "headersSize": 60}
    document["log"]["entries"].append(again)
    return document


def chrome_today(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """Chrome of today: data: URLs, WebSockets with messages, extensions, failed requests."""
    document = devtools(site, bodies=bodies)
    entries = document["log"]["entries"]
    for url, status in (
        ("data:image/gif;base64,R0lGODlhAQABAAAAACw=", 200),
        ("wss://www.site.example/live", 101),
        ("chrome-extension://abcdefgh/inject.js", 200),
        ("blob:https://www.site.example/1d3b", 200),
        ("https://ads.example/blocked.js", 0),
    ):
        entry = deepcopy(entries[2])
        entry["request"]["url"] = url
        entry["response"] |= {"status": status, "_error": "net::ERR_BLOCKED_BY_CLIENT"}
        entry["_webSocketMessages"] = [{"type": "send", "time": 1.5, "opcode": 1, "data": "hi"}]
        entries.append(entry)
    preflight = deepcopy(entries[6])
    preflight["request"]["method"] = "OPTIONS"
    preflight["response"] |= {"status": 204, "content": {"size": 0, "mimeType": "x-unknown"}}
    preflight["_initiator"] = {"type": "preflight", "url": entries[6]["request"]["url"]}
    return {"log": document["log"] | {"entries": [*entries, preflight]}}


def safari(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """WebKit's Web Inspector: times with microseconds, null where nothing is known."""
    entries = [_plain(sent, bodies) | {"pageref": "page_0"} for sent in site]
    for entry, sent in zip(entries, site, strict=True):
        entry |= {"_fetchType": "Network Load", "_priority": "high", "connection": None}
        entry["response"] |= {"_transferSize": len(sent.wire), "redirectURL": sent.location or None}
        entry["response"]["headersSize"] = -1
        entry["startedDateTime"] = entry["startedDateTime"].replace("Z", "123Z")
    page = {"startedDateTime": moment(0), "id": "page_0", "title": ROOT,
            "pageTimings": {"onLoad": 700}}  # fmt: skip
    return _session("WebKit Web Inspector", entries, pages=[page])


def charles(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """Charles: a zone without a colon, its own states, sizes of the coded body."""
    entries = [_plain(sent, bodies) for sent in site]
    for entry in entries:
        entry["startedDateTime"] = entry["startedDateTime"].replace("Z", "+0000")
        entry |= {"_charlesStatus": "COMPLETE", "connection": "443"}
        entry["response"]["_charlesStatus"] = "COMPLETE"
    return _session("Charles Proxy", entries)


def fiddler(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """Fiddler: seven digits and an offset, comments, CONNECT tunnels, sizes of -1."""
    tunnel = Sent("http://www.site.example:443/", "", b"")
    entries = [_plain(sent, bodies) for sent in (tunnel, *site)]
    entries[0]["request"] |= {"method": "CONNECT", "url": "www.site.example:443"}
    for number, entry in enumerate(entries):
        entry["startedDateTime"] = entry["startedDateTime"].replace("Z", "0000+00:00")
        entry |= {"comment": f"[#{number}]", "connection": "ClientPort:51234;EgressPort:51235"}
        entry["response"]["content"]["compression"] = 0
        entry["response"]["bodySize"] = -1
    return _session("Fiddler", entries, pages=[], comment="exported @ 5/6/2024 9:08:09 AM")


def proxyman(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """Proxyman: ids and remote devices, HTTP versions in lower case, no sizes."""
    entries = [_plain(sent, bodies) for sent in site]
    for number, entry in enumerate(entries):
        entry |= {"_id": str(number), "_isHTTPS": True, "_remoteDeviceIP": None, "comment": ""}
        for message in (entry["request"], entry["response"]):
            message |= {"httpVersion": message["httpVersion"].lower(), "headersSize": -1}
        entry["response"]["bodySize"] = -1
    return _session("Proxyman", entries, pages=[])


def http_toolkit(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """HTTP Toolkit: exchanges that were cut, discarded bodies, messages of WebSockets."""
    entries = [_plain(sent, bodies) for sent in site]
    cut = deepcopy(entries[2])
    cut["request"]["url"] = ROOT + "aborted"
    cut["response"] = {"status": 0, "statusText": "", "headers": [], "content": {"size": 0}}
    cut |= {"_requestStatus": "aborted", "time": -1, "timings": {"send": -1, "wait": -1}}
    live = deepcopy(entries[2])
    live["response"] |= {"status": 101, "content": {"mimeType": "", "size": -1}}
    live |= {"_resourceType": "websocket", "_webSocketMessages": []}
    entries[5]["response"]["content"] = {"mimeType": "image/png", "size": -1, "_discarded": True}
    return _session("HTTP Toolkit", [*entries, cut, live], pages=[])


def browsermob(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """BrowserMob Proxy: empty comments everywhere, no onLoad, the head within the body's size."""
    entries = [_plain(sent, bodies) | {"pageref": "Page 0", "comment": ""} for sent in site]
    for entry in entries:
        for message in (entry["request"], entry["response"], entry["response"]["content"]):
            message["comment"] = ""
    page = {"id": "Page 0", "startedDateTime": moment(0), "title": "", "comment": "",
            "pageTimings": {"comment": ""}}  # fmt: skip
    return _session("BrowserMob Proxy", entries, pages=[page], browser=None, comment="")


def zap(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """ZAP: notes and types of its messages, every time a round one, no timings."""
    entries = [_plain(sent, bodies) for sent in site]
    for entry in entries:
        entry |= {"_zapMessageId": 7, "_zapMessageNote": "", "_zapMessageType": "1"}
        entry["startedDateTime"] = entry["startedDateTime"][:19] + "+00:00"
        entry["timings"] = None
    return _session("ZAP", entries, comment="exported")


def burp(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """Exporters for Burp: no creator, no times at all, headers as an object."""
    entries = [_plain(sent, bodies) for sent in site]
    for entry in entries:
        del entry["startedDateTime"], entry["timings"], entry["time"], entry["cache"]
        headers = entry["response"]["headers"]
        entry["response"]["headers"] = {header["name"]: header["value"] for header in headers}
    return {"log": {"version": "1.1", "entries": entries}}


def phantomjs(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """PhantomJS's netsniff: never bodies, sizes of what was decoded, a page named by its URL."""
    entries = [_plain(sent, bodies=False) | {"pageref": ROOT} for sent in site]
    for entry in entries:
        size = entry["response"]["content"]["size"]
        entry["response"] |= {"bodySize": size, "headersSize": -1, "httpVersion": "HTTP/1.1"}
        entry["request"]["bodySize"] = -1
    page = {"id": ROOT, "startedDateTime": moment(15), "title": "A", "pageTimings": {"onLoad": 685}}
    return _session("PhantomJS", entries, pages=[page])


def explorer(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """The F12 tools of Edge's first engine: numbers as text, null and NaN, dates of JavaScript."""
    entries = [_plain(sent, bodies) | {"pageref": "0"} for sent in site]
    for entry, sent in zip(entries, site, strict=True):
        entry |= {"time": str(entry["time"]), "serverIPAddress": None}
        entry["startedDateTime"] = int(START.timestamp() * 1000) + sent.start_ms
        entry["response"] |= {"bodySize": str(entry["response"]["bodySize"])}
        entry["timings"]["wait"] = float("nan")
        if bodies and not sent.content:
            entry["response"]["content"]["text"] = None
    page = {"id": "0", "startedDateTime": START.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (UTC)"),
            "title": None, "pageTimings": {"onLoad": LOAD_MS}}  # fmt: skip
    return _session("F12 Developer Tools", entries, pages=[page])


def insomnia(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> Document:
    """Insomnia and Postman: the requests that somebody chose, seconds apart, HTTP/1.1 only."""
    entries = [_plain(sent, bodies) for sent in site if sent.status == 200]
    for number, entry in enumerate(entries):
        entry |= {"startedDateTime": moment(3000.0 * number), "comment": "New Request"}
        entry["response"] |= {"httpVersion": "HTTP/1.1", "headersSize": -1}
        entry["request"]["httpVersion"] = "unknown"
    return _session("Insomnia REST Client", entries)


KNOWN: tuple[Producer, ...] = (devtools, firefox, browsertime, webpagetest, playwright, mitmproxy)
FURTHER: tuple[Producer, ...] = (
    chrome_2014, chrome_today, safari, charles, fiddler, proxyman, http_toolkit, browsermob, zap,
    burp, phantomjs, explorer, insomnia,
)  # fmt: skip
