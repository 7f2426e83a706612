"""Pages that go on after their load event, or whose load event no byte triggers."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from testbed.model import Record
from tests.acceptance.house import House, Ran, assert_ok
from tests.measured import load_of
from wings.pages.tests.recorder.site import Answer, Site, png, serving, typed

pytestmark = [pytest.mark.guest, pytest.mark.browser]

WWW = "http://www.after.test"
HEAD = "<!doctype html><link rel=icon href=data:,><title>After</title><p>text<img src=/a.png>"
ONCE = """\
<link rel=prefetch href=/next.js><link rel=preload as=image href=/early.png><audio preload=auto
src=/a.wav></audio><script type=speculationrules>
{"prefetch": [{"source": "list", "urls": ["/next"], "eagerness": "immediate"}]}</script><script>
new EventSource('/events');
fetch('/stream').then(({ body }) => { const r = body.getReader(); r.read().then(() => r.read()); });
onload = () => {
  navigator.sendBeacon('/beacon', 'loaded');
  fetch('/kept', { keepalive: true, method: 'POST', body: 'x' });
  setTimeout(() => fetch('/api/late').then(() => fetch('/api/later')), 30);
  setTimeout(() => {
    const image = new Image(); image.src = '/lazy.png'; document.body.append(image);
    const frame = document.createElement('iframe'); frame.src = '/frame';
    document.body.append(frame); import('/hydrate.js'); navigator.sendBeacon('/beacon2', 'later');
  }, 20);
};
addEventListener('pagehide', () => navigator.sendBeacon('/gone', 'gone'));
</script>"""
"""What is done once: prefetched, streamed, told, fetched late, hydrated."""
FOR_EVER = """<script>onload = () => {
  setInterval(() => fetch('/api/poll'), 150); setInterval(() => fetch('/big.bin'), 400);
  setInterval(() => fetch(`/at/${performance.now()}`), 300); };</script>"""
"""Requests without an end, some for what was never recorded, some under way at the end."""
BUSY = "<script async src=/busy.js></script>"
LATER = "<script>onload = () => setTimeout(() => { location.href = '/next'; }, 50);</script>"
PAGES = {"once": ONCE, "for-ever": FOR_EVER, "busy": BUSY, "later": LATER}
ENDLESS = "for-ever"
"""Takes long to record."""
BUSY_MS = 200
COMPUTING = f"const t = performance.now(); while (performance.now() - t < {BUSY_MS});"
OPENED = """<script>setTimeout(() => {
document.open(); document.write('<p>x'); %s }, 0);</script><img src=/a.png>"""
"""What a script opens has its load event when a script closes it (HTML, section 8.4)."""
WAITS_MS = 900
CLOSES = f"setTimeout(() => document.close(), {WAITS_MS});"


class After(Site):
    """Has what the pages ask for."""

    def answer(self, method: str, url: str) -> Answer:
        path = url.removeprefix(WWW)
        name = path.removeprefix("/page/")
        if path == "/events":
            return typed(b"data: 1\n\n" * 9, "text/event-stream", cut=40)
        if name in PAGES or "." not in path:
            return typed((HEAD + PAGES.get(name, "")).encode(), "text/html")
        if path.endswith(".wav"):
            sound = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
            sound += b"data" + struct.pack("<I", 8000) + bytes(8000)
            return typed(b"RIFF" + struct.pack("<I", len(sound)) + sound, "audio/wav")
        if path.endswith(".js"):
            return typed(COMPUTING.encode() if "busy" in path else b"let x = 1;", "text/javascript")
        return typed(bytes(100_000) if path.endswith(".bin") else png(1), "image/png")


def load(house: House, *names: str) -> Ran:
    with serving(After()) as site:
        for name in names:
            house.record(site, f"{WWW}/page/{name}", name)
    return house.run(page=list(names), rtt_ms=20)


@pytest.fixture(scope="module")
def ran(house: House) -> Ran:
    return load(house, *(name for name in PAGES if name != ENDLESS))


def one(ran: Ran, page: str) -> Record:
    return ran.one(page=page, rtt_ms=20.0)


def paths(record: Record, *, later: bool) -> set[str]:
    load = load_of(record)
    those = load.after_load if later else load.loading
    return {request.url.removeprefix(WWW) for request in those}


def test_what_a_page_does_after_its_load_event_is_its_own_affair(ran: Ran) -> None:
    record = one(ran, "once")
    assert_ok(record)
    load, replay = load_of(record), record.replay
    late = {"/api/late", "/api/later", "/lazy.png", "/frame", "/hydrate.js", "/beacon2"}
    assert late <= paths(record, later=True)
    assert {"/stream", "/events", "/a.wav", "/beacon"} <= paths(record, later=False)
    assert replay is not None and replay.exact + len(replay.inexact) == len(load.requests)
    assert load.settled_ms == pytest.approx(max(each.end_ms for each in load.requests))
    assert load.settled_ms is not None and load.settled_ms > load.plt_ms + 30


@pytest.mark.nightly
def test_requests_without_an_end_are_listened_to_for_a_while(house: House) -> None:
    ran = load(house, ENDLESS)
    record = one(ran, ENDLESS)
    assert_ok(record)
    loaded, replay = load_of(record), record.replay
    assert paths(record, later=False) == {"/page/for-ever", "/a.png"}
    assert loaded.settled_ms is None and len(loaded.after_load) > 50
    assert max(each.start_ms for each in loaded.requests) < loaded.plt_ms + 11_000
    assert replay is not None and replay.missed
    assert len(loaded.requests) >= replay.exact + len(replay.missed)
    trials = json.loads((ran.folder / "summary.json").read_text())["cells"]
    counts = {trial["after_load"] for cell in trials for trial in cell["trials"]}
    assert len(loaded.after_load) in counts


def test_a_script_that_computes_is_the_client_s_time(ran: Ran) -> None:
    record = one(ran, "busy")
    assert_ok(record)
    load, proof = load_of(record), record.proof
    last_ms = max(each.end_ms for each in load.loading)
    assert load.plt_ms == load.settled_ms == pytest.approx(last_ms + BUSY_MS, abs=2)
    assert proof is not None and proof.account["client"] == pytest.approx(BUSY_MS, abs=5)


def test_a_page_that_goes_on_to_another_is_not_that_page(ran: Ran) -> None:
    record = one(ran, "later")
    assert record.outcome == "failed" and record.reason is not None
    assert f"{WWW}/page/later went on to {WWW}/next: record that one" in record.reason


def written(house: House, name: str, document: str) -> str:
    """A page of this document and a picture, imported from HAR."""

    def entry(path: str, mime: str, text: str) -> dict[str, object]:
        request = {"method": "GET", "url": WWW + path, "httpVersion": "HTTP/1.1", "headers": [],
                   "cookies": [], "queryString": [], "headersSize": -1, "bodySize": 0}  # fmt: skip
        response = {"status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "cookies": [],
                    "headers": [{"name": "Content-Type", "value": mime}], "redirectURL": "",
                    "content": {"size": len(text), "mimeType": mime, "text": text},
                    "headersSize": -1, "bodySize": len(text)}  # fmt: skip
        return {"startedDateTime": "2026-05-01T10:00:00Z", "time": 20, "pageref": "p", "cache": {},
                "timings": {"send": 0, "wait": 20, "receive": 0}, "request": request,
                "response": response}  # fmt: skip

    page = {"startedDateTime": "2026-05-01T10:00:00Z", "id": "p", "title": f"{WWW}/",
            "pageTimings": {"onLoad": 60}}  # fmt: skip
    entries = [entry("/", "text/html", HEAD + document), entry("/a.png", "image/png", "x" * 50)]
    log = {"version": "1.2", "creator": {"name": "hand", "version": "1"}, "pages": [page],
           "entries": entries}  # fmt: skip
    file = Path(house.folder, f"{name}.har")
    file.write_text(json.dumps({"log": log}))
    house.import_page(file, name)
    return name


def test_a_load_event_that_waits_for_the_page_itself_or_never_comes(house: House) -> None:
    closes = written(house, "closes", OPENED % CLOSES)
    never = written(house, "never", OPENED % "")
    ran = house.run(page=[closes, never], rtt_ms=20)
    record = ran.one(page=closes)
    assert_ok(record)
    assert load_of(record).plt_ms > WAITS_MS
    record = ran.one(page=never)
    assert record.outcome == "failed" and record.reason is not None
    assert "nothing is outstanding: more time cannot help; " in record.reason, record.reason
    assert "it had settled after " in record.reason
