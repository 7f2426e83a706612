"""A small made-up site, and how each producer would write its load down."""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import brotli  # type: ignore[import-untyped]

CSS = "".join(f"p.c{n * 7919}{{width:{n}px}}" for n in range(90)).encode()
START = datetime(2024, 5, 6, 7, 8, 9, 500000, tzinfo=UTC)
ROOT = "https://www.site.example/"
HTML = (
    '<!doctype html><link rel=stylesheet href=/style.css><script src="https://cdn.site.example/'
    'app.js"></script><img src="/old.png"><p>Grüße ☃</p>'
    + "".join(f"<p>{n * n * 7919}" for n in range(300))
)


@dataclass(frozen=True)
class Sent:
    """One exchange as it was on the wire, ``content`` before its coding."""

    url: str
    mime: str
    content: bytes
    coding: str = ""
    status: int = 200
    location: str = ""
    initiator: str = ""
    kind: str = "parser"
    start_ms: int = 0
    protocol: str = "h2"
    document: bool = False

    @property
    def wire(self) -> bytes:
        if self.coding == "gzip":
            return gzip.compress(self.content, 6, mtime=0)
        return brotli.compress(self.content, quality=5) if self.coding == "br" else self.content

    @property
    def headers(self) -> list[tuple[str, str]]:
        headers = [("content-type", self.mime), ("cache-control", "max-age=60")]
        if self.coding:
            headers.append(("content-encoding", self.coding))
        if self.location:
            headers.append(("location", self.location))
        return headers

    @property
    def head(self) -> str:
        lines = [f"HTTP/1.1 {self.status} OK", *(f"{n}: {v}" for n, v in self.headers)]
        return "\r\n".join([*lines, f"content-length: {len(self.wire)}", "", ""])

    @property
    def is_text(self) -> bool:
        return not self.mime.startswith("image/")


SITE = (
    Sent("http://www.site.example/", "", b"", status=301, location=ROOT, protocol="http/1.1"),
    Sent(ROOT, "text/html; charset=utf-8", HTML.encode(), "gzip", start_ms=50, document=True),
    Sent(ROOT + "style.css", "text/css", CSS, "br", initiator=ROOT, start_ms=120),
    Sent("https://cdn.site.example/app.js", "text/javascript", b"let a=1;" * 99, "gzip",
         initiator=ROOT, start_ms=121, protocol="http/1.1"),
    Sent(ROOT + "old.png", "", b"", status=302, location="/new.png", initiator=ROOT, start_ms=130),
    Sent(ROOT + "new.png", "image/png", bytes(range(256)) * 4, initiator=ROOT, start_ms=180),
    Sent(ROOT + "data.json?q=1&r=%20", "application/json", b'{"a": [1, 2]}', start_ms=900,
         initiator="https://cdn.site.example/app.js", kind="script"),
)  # fmt: skip
LOAD_MS = 700


def pairs(headers: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers]


def referer(sent: Sent) -> list[dict[str, str]]:
    return pairs([("Referer", sent.initiator)] if sent.initiator else [])


def moment(ms: float) -> str:
    when = START + timedelta(milliseconds=ms)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_of(sent: Sent) -> dict[str, str]:
    """The body, as HAR has it."""
    if sent.is_text:
        return {"text": sent.content.decode()}
    return {"text": base64.b64encode(sent.content).decode(), "encoding": "base64"}


def _entry(sent: Sent, bodies: bool) -> dict[str, Any]:
    """What all producers write the same way."""
    content: dict[str, Any] = {"size": len(sent.content), "mimeType": sent.mime or "x-unknown"}
    content |= text_of(sent) if bodies and sent.content else {}
    return {
        "pageref": "page_1", "startedDateTime": moment(sent.start_ms), "time": 40.5,
        "request": {
            "method": "GET", "url": sent.url, "httpVersion": sent.protocol,
            "headers": pairs([("user-agent", "none")]), "queryString": [], "cookies": [],
            "headersSize": -1, "bodySize": 0,
        },
        "response": {
            "status": sent.status, "statusText": "", "httpVersion": sent.protocol,
            "headers": pairs(sent.headers), "cookies": [], "content": content,
            "redirectURL": sent.location, "headersSize": -1, "bodySize": -1,
        },
        "cache": {},
        "timings": {"send": 0, "wait": 40, "receive": 0.5},
    }  # fmt: skip


def har(creator: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    page = {"id": "page_1", "startedDateTime": moment(0), "title": "A made-up site",
            "pageTimings": {"onContentLoad": 300, "onLoad": LOAD_MS}}  # fmt: skip
    log = {"version": "1.2", "creator": {"name": creator, "version": "1.0"}, "pages": [page]}
    return {"log": log | {"entries": entries}}


def devtools(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> dict[str, Any]:
    """Chrome's "Save all as HAR": HTTP/2 has no sizes but the transferred one."""
    entries = []
    for sent in site:
        entry = _entry(sent, bodies)
        old = sent.protocol != "h2"
        entry["request"]["headers"] += pairs([(":authority", "x")] if not old else [])
        head = len(sent.head) if old else 60
        entry["response"] |= {
            "headersSize": head if old else -1,
            "bodySize": len(sent.wire) if old else -1,
            "_transferSize": head + len(sent.wire),
            "_error": None,
        }
        stack = {"callFrames": [{"functionName": "", "url": sent.initiator, "lineNumber": 1}]}
        initiator: dict[str, Any] = {"type": "other"}
        if sent.initiator and sent.kind == "script":
            initiator = {"type": "script", "stack": stack}
        elif sent.initiator:
            initiator = {"type": "parser", "url": sent.initiator, "lineNumber": 3}
        entry |= {"_initiator": initiator, "_priority": "High"}
        entry["_resourceType"] = "document" if sent.document else "other"
        entries.append(entry)
    return har("WebInspector", entries)


def firefox(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> dict[str, Any]:
    """Firefox's "Save All As HAR": bodySize has the head, no initiators but the Referer."""
    entries = []
    for sent in site:
        entry = _entry(sent, bodies)
        entry["request"]["headers"] += referer(sent)
        entry["response"]["httpVersion"] = "HTTP/2" if sent.protocol == "h2" else "HTTP/1.1"
        entry["response"]["headersSize"] = len(sent.head)
        entry["response"]["bodySize"] = len(sent.head) + len(sent.wire)
        if not bodies:
            entry["response"]["content"]["comment"] = "Response bodies are not included."
        entries.append(entry)
    return har("Firefox", entries)


def browsertime(site: tuple[Sent, ...] = SITE, *, bodies: bool = False) -> dict[str, Any]:
    """chrome-har by Browsertime: initiators are URLs; over HTTP/2 bodySize has the head."""
    entries = []
    for sent in site:
        entry = _entry(sent, bodies)
        old = sent.protocol != "h2"
        head = len(sent.head) if old else 60
        entry["response"] |= {
            "headersSize": head if old else -1,
            "bodySize": len(sent.wire) + (0 if old else head),
            "_transferSize": len(sent.wire) + head,
        }
        entry |= {"_initialPriority": "High", "_priority": "High", "_requestTime": 1.5}
        if sent.initiator:
            entry |= {"_initiator": sent.initiator, "_initiator_type": sent.kind}
            entry["_initiator_line"] = 3
        entries.append(entry)
    return har("Browsertime", entries)


def playwright(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> dict[str, Any]:
    """Playwright's recordHar: what it counted is exact; only a Referer tells what led here."""
    entries = []
    for sent in site:
        entry = _entry(sent, bodies)
        head, size = len(sent.head) if sent.protocol != "h2" else 0, len(sent.wire)
        entry["request"]["headers"] += referer(sent)
        entry["response"] |= {"headersSize": head, "bodySize": size, "_transferSize": size + head}
        entries.append(entry)
    return har("Playwright", entries)


def mitmproxy(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> dict[str, Any]:
    """mitmproxy's hardump: no page, and as the head's size that of Python's words for it."""
    entries = []
    for sent in site:
        entry = _entry(sent, bodies)
        del entry["pageref"]
        headers = [*sent.headers, ("content-length", str(len(sent.wire)))]
        entry["request"]["headers"] += referer(sent)
        entry["response"] |= {
            "httpVersion": {"h2": "HTTP/2.0"}.get(sent.protocol, "HTTP/1.1"), "statusText": "OK",
            "headers": pairs(headers), "headersSize": len(str(headers)) + 40,
            "bodySize": len(sent.wire),
        }  # fmt: skip
        entries.append(entry)
    document = har("mitmproxy", entries)
    return {"log": document["log"] | {"pages": []}}


def webpagetest(site: tuple[Sent, ...] = SITE, *, bodies: bool = True) -> dict[str, Any]:
    """WebPageTest's export: its own fields have the truth, some numbers are texts."""
    entries = []
    for sent in site:
        entry = _entry(sent, bodies)
        entry["request"]["url"] = sent.url.partition("?")[0]
        entry |= {
            "_full_url": sent.url, "_objectSize": str(len(sent.wire)),
            "_objectSizeUncompressed": len(sent.content),
            "_bytesIn": len(sent.wire) + len(sent.head),
            "_initiator": sent.initiator, "_initiator_type": sent.kind.capitalize(),
        }  # fmt: skip
        entry["response"]["headersSize"] = len(sent.head)
        entry["response"]["bodySize"] = len(sent.wire)
        entries.append(entry)
    return har("WebPagetest", entries)
