"""Small recordings: a document over HTTP/2, what it leads to, and a plain HTTP/1.1 host."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from testbed.archive.reading import read_archive
from wings.pages.exchange import PageExchange, Recording

ROOT_URL = "https://www.example.com/"
STYLE = gzip.compress(b"body { color: red }", mtime=0)
PIXEL = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"


def make_exchange(url: str, body: bytes | None = b"", **more: Any) -> PageExchange:
    """An exchange whose sizes are those of its body, found by the root's parser."""
    size = len(body or b"")
    values: dict[str, Any] = {"body": body, "body_size": size, "decoded_size": size,
                              "initiator": ROOT_URL, "how": "parser"}  # fmt: skip
    return PageExchange(url, **{"status": 200, **values, **more})


def make_recording(*more: PageExchange, **facts: Any) -> Recording:
    """A page of four exchanges, and ``more``."""
    exchanges = (
        make_exchange(
            ROOT_URL,
            b"<!doctype html><link rel=stylesheet href=/a.css>",
            protocol="h2",
            headers=(("content-type", "text/html; charset=utf-8"), ("date", "today")),
            mime="text/html", initiator=None, how="root", start_ms=0.0, dur_ms=100.25,
        ),
        make_exchange(
            "https://www.example.com/a.css?v=1&b=", STYLE, protocol="h2",
            request_headers=(("accept", "text/css"),),
            headers=(("content-type", "text/css"), ("content-encoding", "gzip")),
            mime="text/css", decoded_size=19, start_ms=50.0, dur_ms=70.0,
        ),
        make_exchange(
            "http://img.example.com:8080/old",
            headers=(("Location", "/p.gif#there"), ("Content-Length", "0")),
            headers_size=400, status=302, how="css",
            initiator="https://www.example.com/a.css?v=1&b=", start_ms=130.0, dur_ms=10.0,
        ),
        make_exchange(
            "http://img.example.com:8080/p.gif", PIXEL, headers=(("Content-Type", "image/gif"),),
            headers_size=100, mime="image/gif", how="redirect",
            initiator="http://img.example.com:8080/old", start_ms=141.0, dur_ms=9.0,
            after_load=True,
        ),
    )  # fmt: skip
    recording = Recording(title="A page", url=ROOT_URL, recorded=date(2026, 2, 3), source="made up",
                          exchanges=(*exchanges, *more), load_ms=142.5)  # fmt: skip
    return replace(recording, **facts)


def body_of(page: Path, index: int) -> Path:
    """The file of an entry's body."""
    body = read_archive(page).entries[index].body
    assert body is not None
    return body


def edit_entry(page: Path, index: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change an entry of a page's HAR."""
    path = page / "page.har"
    har = json.loads(path.read_text())
    change(har["log"]["entries"][index])
    path.write_text(json.dumps(har))
