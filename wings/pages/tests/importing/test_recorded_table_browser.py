"""The real browser asks the anonymised page for what the recorded one was asked for, in order."""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

import pytest

from testbed.archive.reading import Archive, read_archive
from testbed.client.chromium.browser import find_browser
from testbed.pages.build import build_page
from wings.pages.exchange import HttpProtocol, PageExchange, Recording
from wings.pages.importing.recorded_table import write_table
from wings.pages.tests.conftest import HEADER, Small
from wings.pages.tests.replay import Replay, assert_none_early, browse
from wings.pages.tests.test_browser import MORE_LOADS, rank_correlation

pytestmark = pytest.mark.browser

SITE = "https://www.a.example/"
FONTS = "https://fonts.b.example/"
SCRIPTS = "https://js.c.example/"


def make_exchange(url: str, mime: str, size: int, start_ms: float, **more: object) -> PageExchange:
    """A text is compressed to a quarter."""
    text = mime.startswith("text/") or mime in ("application/json", "image/svg+xml")
    h2: HttpProtocol = "h2" if url.startswith(FONTS) else "http/1.1"
    values: dict[str, object] = {
        "status": 200, "protocol": h2, "headers_size": None if h2 == "h2" else 620, "body": None,
        "body_size": size, "decoded_size": 4 * size if text else size, "mime": mime,
        "initiator": SITE, "how": "parser", "start_ms": start_ms, "dur_ms": 40.0,
    }  # fmt: skip
    return PageExchange(url, **{**values, **more})  # type: ignore[arg-type]


def make_recording() -> Recording:
    """A small site of our time: three hosts, a redirect, fonts, scripts that ask, errors."""
    css, app = f"{SITE}main.css?v=3", f"{SCRIPTS}app.js"
    get = make_exchange
    exchanges = (
        get(SITE, "text/html", 9000, 0.0, initiator=None, how="root", dur_ms=200.0),
        get(css, "text/css", 3000, 20.0),
        get(app, "text/javascript", 12_000, 30.0),
        get(f"{SITE}logo.svg", "image/svg+xml", 900, 40.0),
        get(f"{SITE}hero.webp", "image/webp", 30_000, 80.0),
        get(f"{SITE}old.png", "text/html", 0, 90.0, status=301, decoded_size=0,
            headers=(("Location", "/new.png"),)),
        get(f"{SITE}new.png", "image/png", 5000, 120.0, how="redirect",
            initiator=f"{SITE}old.png"),
        get(f"{SITE}gone.js", "text/javascript", 300, 130.0, status=404),
        get(f"{SITE}frame.html", "text/html", 2000, 140.0, how="frame"),
        get(f"{FONTS}a.woff2", "font/woff2", 20_000, 100.0, initiator=css, how="css"),
        get(f"{FONTS}bg.avif", "image/avif", 7000, 101.0, initiator=css, how="css"),
        get(f"{SCRIPTS}data.json", "application/json", 2500, 150.0, initiator=app, how="script"),
        get(f"{SCRIPTS}api", "application/json", 500, 155.0, initiator=app, how="script",
            method="POST", status=500),
        get(f"{SCRIPTS}lazy.js", "text/javascript", 4000, 160.0, initiator=app, how="script"),
        get(f"{FONTS}pixel.gif", "image/gif", 43, 220.0, initiator=f"{SCRIPTS}lazy.js",
            how="script"),
        get(f"{SITE}late.png", "image/png", 5000, 900.0, after_load=True),
    )  # fmt: skip
    return Recording("A site", SITE, date(2026, 1, 2), "made up", exchanges)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("anonymous")
    recording = make_recording()
    write_table(folder / "site", recording, licence="none")
    return build_page(folder / "site", folder / "cache")


@pytest.fixture(scope="module")
def loaded(built: Path) -> tuple[Archive, Replay]:
    archive = read_archive(built)
    return archive, browse(archive, find_browser(), tls=built / "tls")


def test_the_same_hosts_and_sizes(loaded: tuple[Archive, Replay]) -> None:
    archive, load = loaded
    by_url = {entry.url: entry for entry in archive.entries}
    asked = Counter((by_url[v.url].host, by_url[v.url].body_size) for v in load.visits)
    recorded = [x for x in make_recording().exchanges if not x.after_load]
    assert asked == Counter((f"{x.url.split('/')[2]}.p.test", x.body_size) for x in recorded)
    assert (load.cut, load.late) == ([], len(recorded))
    heads = {entry.headers_size for entry in archive.entries}
    assert heads == {None, 620}


def test_the_same_order_below_each_parent(built: Path, loaded: tuple[Archive, Replay]) -> None:
    archive, load = loaded
    for _ in range(MORE_LOADS):
        if min(correlations(archive, load).values()) >= 0.8:
            break
        load = browse(archive, find_browser(), tls=built / "tls")
    found = correlations(archive, load)
    assert min(found.values()) >= 0.8, found


def correlations(archive: Archive, load: Replay) -> dict[tuple[str | None, bool], float]:
    """How alike the recorded order and that of ``load`` are, below each parent."""
    # As the browser found them: on the wire, handshakes and priorities come on top.
    place = {url: float(index) for index, url in enumerate(load.report["found"])}
    timed = defaultdict(list)
    for entry in archive.entries:
        if entry.start_ms is None or entry.url not in place or entry.how in ("frame", "script"):
            continue
        # The browser looks ahead for scripts: how far depends on how fast the document comes.
        below = (entry.parent, entry.mime == "text/javascript")
        timed[below].append((entry.start_ms, place[entry.url]))
    several = {below: found for below, found in timed.items() if len(found) > 1}
    assert sorted(map(len, several.values())) == [2, 2, 4]
    return {
        below: rank_correlation(*map(list, zip(*found, strict=True)))
        for below, found in several.items()
    }


def test_a_script_asks_in_the_recorded_order(loaded: tuple[Archive, Replay]) -> None:
    # It does so within one tick of the browser's clock, so that only its text tells.
    entries = {entry.mime + entry.id: entry for entry in loaded[0].entries}
    script = entries["text/javascript2"]
    assert script.body is not None
    text = zlib.decompress(script.body.read_bytes(), 31).decode()
    asked = [x.url.removeprefix("https:") for x in loaded[0].entries if x.carrier == script.url]
    assert len(asked) == 3
    assert re.findall(r'ff\("[a-z]+","([^"]+)"', text) == asked


def test_nothing_before_its_parent(loaded: tuple[Archive, Replay]) -> None:
    assert_none_early(*loaded)


TYPES = (
    "application/pdf", "application/zip", "application/gzip", "application/x-protobuf",
    "application/wasm", "application/xml", "text/xml", "text/csv", "text/vtt", "text/json",
    "text/event-stream", "application/ld+json", "application/manifest+json", "multipart/mixed",
    "application/octet-stream", "application/vnd.ms-fontobject", "font/woff2", "font/ttf",
    "video/mp4", "audio/mpeg", "audio/ogg", "image/webp", "image/avif", "image/x-icon",
    "application/vnd.apple.mpegurl", "application/rss+xml", "application/javascript", "text/x-c",
    "binary/octet-stream", "application/x-www-form-urlencoded", "model/gltf-binary",
)  # fmt: skip


@pytest.mark.parametrize("status", [200, 404, 503])
def test_responses_of_any_type_and_status_come_whole(
    small: Small, tmp_path: Path, status: int
) -> None:
    """Opaque response blocking would cut short what is asked for as what it is not."""
    rows = "".join(
        f"{n},0,b{n % 3}.example,{mime},{status},40480,90000,url-in-main-html,,,\n"
        f"c{n},{n},d.example,image/gif,200,523,43,url-in-other,,,\n"
        for n, mime in enumerate(TYPES, start=1)
    )
    folder = small("0,,a.example,text/html,200,29480,49000,root,,0,100\n" + rows)
    assert (folder / "resources.csv").read_text().startswith(HEADER)
    archive = read_archive(build_page(folder, tmp_path / "cache"))
    load = browse(archive, find_browser())
    assert Counter(visit.url for visit in load.visits) == {x.url: 1 for x in archive.entries}
    assert load.cut == []
    assert load.late == len(archive.entries)


def test_a_plain_page_uses_secure_hosts(small: Small, tmp_path: Path) -> None:
    table = HEADER.strip() + ",protocol\n"
    rows = (
        "0,,a.example,text/html,200,4480,9000,root,,0,100,http\n"
        "1,0,b.example,text/css,200,980,500,url-in-main-html,,,,https\n"
        "2,1,c.example,image/gif,200,523,43,url-in-css,,,,http\n"
        "3,1,b.example,image/gif,200,523,43,url-in-css,,,,https\n"
        "4,0,b.example,text/javascript,200,980,500,url-in-main-html,,,,https\n"
        "5,4,a.example,image/gif,200,523,43,url-in-js,,,,http\n"
        "6,4,b.example,image/gif,200,523,43,url-in-js,,,,https\n"
        "7,0,b.example,text/html,200,1980,2500,url-in-main-html,,,,https\n"
        "8,7,b.example,image/gif,200,523,43,url-in-html,,,,https\n"
        "9,0,a.example,text/html,302,480,,url-in-main-html,,,,http\n"
        "10,9,b.example,text/html,200,1480,1000,redirect,,,,https\n"
    )
    folder = small("")
    (folder / "resources.csv").write_text(table + rows)
    built = build_page(folder, tmp_path / "cache")
    archive = read_archive(built)
    load = browse(archive, find_browser(), tls=built / "tls")
    assert sorted(visit.url for visit in load.visits) == sorted(e.url for e in archive.entries)
    assert load.late == len(archive.entries)
