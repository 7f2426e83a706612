"""Random changes to HARs of every producer, imported one after another in one process.

``python -m wings.pages.tests.importing.mutations 10000 [FIRST]`` counts what became of them, and
names the slowest; the tests do a few hundred (``FIRSTFLIGHT_MUTATIONS`` says how many).  The number
of a mutation is its seed: a failure can be had again by it alone.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from testbed.base.errors import TestbedError
from testbed.pages.build import build_page
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page
from wings.pages.tests.importing.producers import FURTHER, KNOWN
from wings.pages.tests.importing.site import ROOT, SITE, Sent
from wings.pages.verify import verify_archive

OWN_SITE = (
    *SITE,
    Sent("https://img-1a2b3c4d.site.example/a?token=a1B2c3D4e5F6g7H8&u=" + ROOT, "image/png",
         b"x" * 50, initiator=ROOT, start_ms=200),
    Sent(ROOT + "reset/3f9aB7kQ2mZx8LpW4tYv?tok=abc123&ll=48.1371,11.5761", "text/html",
         b"<!doctype html>", "br", initiator=ROOT, start_ms=210),
)  # fmt: skip
PRODUCERS = (*KNOWN, *FURTHER)
SCALARS: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 65_536, 40, 1000, 2**31, 2**63, 10**18, 10**30, 0.5, -0.0,
    1e308, float("nan"), float("inf"), "", " ", "0", "-1", "9" * 400, "null", "\x00", "\u2028",
    "\ud800", "é", [], {}, [[]], [None], {"name": 5}, "GET", "POST", "HEAD", "OPTIONS", "CONNECT",
    "TRACE", "get", 200, 204, 206, 301, 302, 304, 307, 404, 500, 101, 999, "h2", "h3", "HTTP/1.0",
    "unknown", "text/html", "text/css", "image/png", "image/svg+xml", "application/json",
    "font/woff2", "x/y", "text/html; charset=utf-16le", "gzip", "br", "zstd", "deflate", "gzip, br",
    "br, br, br", "base64", ROOT, "http://www.site.example/", "https://www.site.example",
    "//www.site.example/", "/a", "?", "#", "https://www.site.example/%",
    "https://www.site.example/%2e%2e/..", "https://[::1]/", "data:,", "http://127.0.0.1/",
    "https://localhost/", "https://bücher.example/ü", "https://a@b.example:81/",
    "wss://www.site.example/", "blob:https://x/1", "about:blank", "../../etc/passwd", "/etc/passwd",
    "2024-05-06T07:08:09Z", "2024-05-06T23:08:09.123456789+14:00", "0001-01-01",
    "9999-12-31T23:59Z", 1714979289000, "Mon, 06 May 2024 07:08:09 GMT", "page_1", "page_2",
)  # fmt: skip
COOKIES = (
    "landing=https%3A%2F%2Fwww.site.example%2F", "h=img-1a2b3c4d.site.example",
    "s=a1B2c3D4e5F6g7H8",
    "t=text/html; x=script; y=https; z=application/json", "p=/style.css", "n=4111111111111111",
    "q=<script src='a.js'></script>", "j={\"u\":\"https://www.site.example/\"}",
    "m=joe@site.example",
    "w=www.site.example; i=img-1a2b3c4d", "o=//cdn.site.example/app.js", "d=1234567890123456",
)  # fmt: skip


def make_mutation(number: int) -> bytes:
    """The file of a HAR with a few changes, most of them to its structure."""
    chance = random.Random(number)  # noqa: S311
    producer = chance.choice(PRODUCERS)
    document = copy.deepcopy(producer(OWN_SITE, bodies=chance.random() < 0.6))
    for _ in range(chance.choice((1, 1, 2, 3, 5, 12))):
        chance.choice(_CHANGES)(document, chance)
    text = json.dumps(document, ensure_ascii=chance.random() < 0.8)
    data = text.encode("utf-8", "surrogatepass")
    return chance.choice(_WRAPPINGS)(data, chance) if chance.random() < 0.15 else data


def check(data: bytes, chance: random.Random) -> str:
    """Import ``data`` as a user would: whether that made an ``archive``, a ``table``, an ``error``.

    Raises:
        AssertionError: what was made is not whole, or more than it was.
        Exception: whatever is no error of the project's own.
    """
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        source, pages = top / "load.har", top / "pages"
        pages.mkdir()
        source.write_bytes(data)
        options = WriteOptions(anonymize=chance.random() < 0.2, keep_secrets=chance.random() < 0.2)
        try:
            recording = read_recording(source, url=ROOT if chance.random() < 0.1 else None)
            kind = write_page(pages / "page", recording, options).kind
        except TestbedError as error:
            assert str(error).strip(), "an error says what is wrong"
            assert list(pages.iterdir()) == [], "nothing is half-written"
            return "error"
        finally:
            assert sorted(path.name for path in top.iterdir()) == ["load.har", "pages"]
            assert source.read_bytes() == data
        assert [path.name for path in pages.iterdir()] == ["page"]
        assert all(not path.is_symlink() for path in pages.rglob("*"))
        assert verify_archive(build_page(pages / "page", top / "cache")) == []
        return kind


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place within a JSON value: what it is in, and its key there."""
    places: list[tuple[Any, Any]] = []
    for key, inner in members(value):
        places += [(value, key), *_places(inner)]
    return places


def members(value: Any) -> Iterable[tuple[Any, Any]]:
    """Keys and values directly inside a JSON value."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _set(document: Any, chance: random.Random) -> None:
    if places := _places(document):
        owner, key = chance.choice(places)
        owner[key] = copy.deepcopy(chance.choice(SCALARS))


def _swap(document: Any, chance: random.Random) -> None:
    if places := _places(document):
        (owner, key), (other, name) = chance.choice(places), chance.choice(places)
        owner[key] = copy.deepcopy(other[name])


def _drop(document: Any, chance: random.Random) -> None:
    if places := _places(document):
        owner, key = chance.choice(places)
        del owner[key]


def _splice(document: Any, chance: random.Random) -> None:
    """A text gets a piece of another one in its middle."""
    if places := [(o, k) for o, k in _places(document) if isinstance(o[k], str)]:
        (owner, key), (other, name) = chance.choice(places), chance.choice(places)
        at = chance.randrange(len(owner[key]) + 1)
        piece = other[name][: chance.choice((1, 3, 20, 4000))]
        owner[key] = owner[key][:at] + piece + owner[key][at + chance.choice((0, 1, 5)) :]


def _resize(document: Any, chance: random.Random) -> None:
    """Sizes and times of an entry that fit to nothing."""
    for owner, key in _places(document):
        if isinstance(key, str) and ("ize" in key or "ime" in key) and chance.random() < 0.2:
            owner[key] = chance.choice((-1, 0, 1, 40, 331, 5000, 100_000, 500_000, 10**9, "12"))


def _repeat(document: Any, chance: random.Random) -> None:
    lists = [owner[key] for owner, key in _places(document) if isinstance(owner[key], list)]
    if lists and (chosen := chance.choice(lists)):
        chosen.insert(chance.randrange(len(chosen) + 1), copy.deepcopy(chance.choice(chosen)))
        if chance.random() < 0.3:
            chance.shuffle(chosen)


def _headers(document: Any, chance: random.Random) -> None:
    """A cookie or another header that the page, its secrets or its body hang on."""
    lists = [o[k] for o, k in _places(document) if k == "headers" and isinstance(o[k], list)]
    if lists:
        name, value = chance.choice(
            (
                *(("Cookie", cookie) for cookie in COOKIES),
                *(("Set-Cookie", cookie) for cookie in COOKIES),
                ("Location", chance.choice(SITE).url), ("Referer", chance.choice(SITE).url),
                ("Content-Encoding", chance.choice(("br", "gzip", "zstd", "x"))),
                ("Content-Length", str(chance.choice((0, 1, 40, 10**6, 10**12)))),
                ("Link", "</a?token=a1B2c3D4e5F6g7H8>; rel=preload"),
                ("Transfer-Encoding", "chunked"),
            )
        )  # fmt: skip
        chance.choice(lists).append({"name": name, "value": value})


def _address(document: Any, chance: random.Random) -> None:
    """An address with a secret, or with what redaction must leave alone, in its query."""
    places = [(o, k) for o, k in _places(document) if k == "url" and isinstance(o[k], str)]
    if places:
        owner, key = chance.choice(places)
        name = chance.choice(("token", "state", "password", "q", "tok", "lat", "phone", "key"))
        value = chance.choice(COOKIES).partition("=")[2]
        owner[key] += f"{'&' if '?' in owner[key] else '?'}{name}={value}"


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _flip(data: bytes, chance: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(chance.choice((1, 3, 20))):
        out[chance.randrange(len(out))] = chance.randrange(256)
    return bytes(out)


_CHANGES: tuple[Callable[[Any, random.Random], None], ...] = (
    _set, _set, _swap, _drop, _splice, _splice, _resize, _repeat, _headers, _headers, _address,
)  # fmt: skip
_WRAPPINGS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _cut,
    _flip,
    lambda data, chance: _flip(gzip.compress(data, 1), chance),
    lambda data, _: gzip.compress(data, 1),
    lambda data, _: data.decode("utf-8", "replace").encode("utf-16"),
    lambda data, chance: b"\xef\xbb\xbf" + data + chance.choice((b"\n", b"\x00", b"{}", data)),
)


def main(argv: list[str]) -> int:
    """Check as many mutations as asked for; how many ended how, and the slowest."""
    count, first = int(argv[1]), int(argv[2]) if len(argv) > 2 else 0
    ends: Counter[str] = Counter()
    slowest = (0.0, first)
    for number in range(first, first + count):
        start = time.perf_counter()
        try:
            ends[check(make_mutation(number), random.Random(number))] += 1  # noqa: S311
        except Exception as error:
            ends["FAILED"] += 1
            print(f"{number}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        slowest = max(slowest, (time.perf_counter() - start, number))
    print(f"{dict(ends)}; the slowest, {slowest[1]}, took {slowest[0]:.1f} s")
    return 1 if ends["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
