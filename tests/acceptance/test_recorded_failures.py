"""Pages whose requests fail in many ways: what was recorded so is expected so, and only that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.archive.reading import Archive
from testbed.model import Record
from tests.acceptance.house import House, Plant, assert_bad, assert_ok
from tests.measured import load_of
from wings.pages.tests.recorder.site import Answer, Site, serving, typed

pytestmark = [pytest.mark.guest, pytest.mark.browser]

WWW, CDN = "http://www.failing.test", "http://cdn.failing.test"
PAGE = f"""<!doctype html><title>Failing</title>
<link rel=stylesheet href=/gone.css><link rel=stylesheet href=/plain.css>
<script src=/gone.js></script><script src=/plain.js></script>
<script type=module src=/module.js></script><script type=module src=/module.js></script>
<script async src=http://nowhere.test/t.js></script>
<script async src=http://refusing.test/t.js></script>
<img src=/gone.png><img src=http://blocked.test/x.png><img src=http://resetting.test/x.png>
<video src=/gone.mp4></video><audio src=/gone.mp3 preload=auto></audio><p>text<script>
const ask = (url, more) => fetch(url, more).catch(() => 0);
ask('{CDN}/uncors.json');
ask('{CDN}/preflight.json', {{headers: {{'X-Kind': 'a'}}}});
ask('{CDN}/corp.bin', {{mode: 'no-cors'}});
const leave = (url, ms) => {{
  const stopper = new AbortController();
  ask(url, {{signal: stopper.signal}}).then(() => stopper.abort());
  if (ms) setTimeout(() => stopper.abort(), ms);
}};
leave('/mute.txt', 50);
leave('/held.txt');
</script><script src={CDN}/orb.json></script>
"""
POLICY = ("Content-Security-Policy", "img-src 'self' http://resetting.test")


class Failing(Site):
    """Answers, refuses, resets and keeps silent."""

    @property
    def rules(self) -> tuple[str, ...]:
        nowhere = ("MAP nowhere.test ~NOTFOUND", "MAP refusing.test 127.0.0.1:1")
        return (*nowhere, f"MAP * 127.0.0.1:{self.port}")

    def answer(self, method: str, url: str) -> Answer:
        name = url.rpartition("/")[2]
        if "resetting" in url:
            raise ConnectionResetError
        if name.startswith("gone"):
            return Answer(b"<h1>gone</h1>", "410 Gone", (("Content-Type", "text/html"),))
        answers = {
            "": typed(PAGE.encode(), "text/html", POLICY),
            "mute.txt": typed(b"late", "text/plain", delay_s=60),
            "held.txt": typed(b"x" * 5000, "text/plain", cut=1000),
            "module.js": typed(b"export default 1;", "text/javascript"),
            "corp.bin": typed(b"abc", "text/css", ("Cross-Origin-Resource-Policy", "same-origin")),
        }
        plain = typed(b"{}", "text/plain", ("X-Content-Type-Options", "nosniff"))
        return answers.get(name) or (plain if "plain" in name else typed(b"{}", "application/json"))


@pytest.fixture(scope="module")
def archive(house: House) -> Archive:
    with serving(Failing()) as site:
        house.record(site, f"{WWW}/", "failing")
    return house.archive("failing")


def test_each_failure_is_kept(archive: Archive) -> None:
    assert {each.url: each.failure for each in archive.failures} == {
        "http://nowhere.test/t.js": "net::ERR_NAME_NOT_RESOLVED",
        "http://refusing.test/t.js": "net::ERR_CONNECTION_REFUSED",
        "http://resetting.test/x.png": "net::ERR_EMPTY_RESPONSE",
        "http://blocked.test/x.png": "csp",
        f"{CDN}/preflight.json": "net::ERR_FAILED",
        f"{WWW}/mute.txt": "net::ERR_ABORTED",
    }


def test_what_failed_so_is_expected_so(house: House, archive: Archive) -> None:
    (record,) = house.run(page="failing").records
    assert_ok(record)
    same = {each.url: each.failure for each in archive.recorded if each.failure}
    assert failures(record) == same | {"http://resetting.test/x.png": "net::ERR_EMPTY_RESPONSE"}
    statuses = {each.url: each.status for each in load_of(record).requests}
    assert [url for url, status in statuses.items() if status == 410] == [
        f"{WWW}/gone.{kind}" for kind in ("css", "js", "png", "mp4", "mp3")
    ]


def failures(record: Record) -> dict[str, str | None]:
    """How the requests of its load failed that did."""
    return {each.url: each.failure for each in load_of(record).requests if not each.status}


SHOP, ADS = "https://www.shop.test", "https://ads.test"
TOLD = {
    f"{ADS}/nowhere.js": "net::ERR_NAME_NOT_RESOLVED",
    "https://refusing.test/t.js": "net::ERR_CONNECTION_REFUSED",
    "https://silent.test/t.json": "net::ERR_CONNECTION_TIMED_OUT",
    f"{SHOP}/reset.json": "net::ERR_HTTP2_PROTOCOL_ERROR",
    f"{SHOP}/mute.json": "net::ERR_ABORTED",
    "https://expired.test/t.js": "net::ERR_CERT_DATE_INVALID",
    "https://tracker.test/t.js": "net::ERR_BLOCKED_BY_CLIENT",
}
# What the file does not tell of: kept by CSP or for its scheme, refused by CORS, given up.
IMPORTED = f"""<!doctype html><title>Shop</title><link rel=stylesheet href=/gone.css>
<img src=https://elsewhere.test/x.png><script src=http://insecure.test/m.js></script>
{"".join(f"<script async src={url}></script>" for url in TOLD if url.endswith(".js"))}
<p>text<script>
const ask = (url, more) => fetch(url, more).catch(() => 0);
const stopper = new AbortController();
ask('/given-up.bin', {{signal: stopper.signal}});
ask('/mute.json', {{signal: stopper.signal}});
setTimeout(() => stopper.abort(), 5);
for (const url of ['/reset.json', 'https://silent.test/t.json', 'https://cdn.shop.test/a.json'])
  ask(url);
</script>"""


def entry(url: str, status: int = 200, mime: str = "text/plain", body: str = "x",
          **more: object) -> dict[str, object]:  # fmt: skip
    """An entry as DevTools writes it."""
    response = {
        "status": status, "statusText": "", "httpVersion": "h2" if status else "",
        "headers": [{"name": "content-type", "value": mime}] if status else [],
        "content": {"size": len(body), "mimeType": mime, "text": body}, "redirectURL": "",
        "headersSize": -1, "bodySize": len(body), "cookies": [], **more,
    }  # fmt: skip
    request = {"method": "GET", "url": url, "httpVersion": "h2", "headers": [], "bodySize": 0,
               "headersSize": -1, "cookies": [], "queryString": []}  # fmt: skip
    return {"startedDateTime": "2026-07-01T00:00:00.000Z", "time": 1 if status else 400,
            "request": request, "response": response, "cache": {}, "timings": {}}  # fmt: skip


def write_har(path: Path, entries: list[dict[str, object]]) -> Path:
    """A HAR with these."""
    log = {"version": "1.2", "creator": {"name": "WebInspector", "version": "537.36"}}
    path.write_text(json.dumps({"log": {**log, "entries": entries}}))
    return path


@pytest.fixture(scope="module")
def shop(house: House) -> str:
    document = entry(f"{SHOP}/", mime="text/html", body=IMPORTED)
    told = {"content-security-policy": "img-src 'self'"}
    told |= dict.fromkeys(("accept-ch", "critical-ch"), "Sec-CH-UA-Model")
    document["response"]["headers"] += [  # type: ignore[index]
        {"name": name, "value": value} for name, value in told.items()
    ]
    entries = [
        document, entry(f"{SHOP}/gone.css", 404, "text/html"), entry(f"{SHOP}/given-up.bin"),
        entry("https://cdn.shop.test/a.json"), entry(f"{SHOP}/favicon.ico", mime="image/x-icon"),
        *(entry(url, 0, "", "", _error=error) for url, error in TOLD.items()),
    ]  # fmt: skip
    house.import_page(write_har(house.folder / "shop.har", entries), "shop")
    archive = house.archive("shop")
    assert {each.url: each.failure for each in archive.failures} == TOLD
    return "shop"


def test_a_file_tells_of_failures_too(house: House, shop: str) -> None:
    (record,) = house.run(page=shop).records
    assert_ok(record)
    assert failures(record) == {
        f"{SHOP}/": "Internal Redirect",
        f"{ADS}/nowhere.js": "net::ERR_NAME_NOT_RESOLVED",
        "https://refusing.test/t.js": "net::ERR_CONNECTION_REFUSED",
        "https://silent.test/t.json": "net::ERR_HTTP2_PROTOCOL_ERROR",
        f"{SHOP}/reset.json": "net::ERR_HTTP2_PROTOCOL_ERROR",
        f"{SHOP}/mute.json": "net::ERR_ABORTED",
        "https://expired.test/t.js": "net::ERR_HTTP2_PROTOCOL_ERROR",
        "https://elsewhere.test/x.png": "csp",
        "http://insecure.test/m.js": "mixed-content",
        "https://cdn.shop.test/a.json": "net::ERR_FAILED",
        f"{SHOP}/given-up.bin": "net::ERR_ABORTED",
    }


def test_a_failure_that_was_not_recorded_is_one(house: House, shop: str, plant: Plant) -> None:
    listeners = "listeners = lab_listeners(archive, addresses, condition.protocol)"
    fewer = "listeners = tuple(each for each in listeners if each.host != 'cdn.shop.test')"
    plant("kinds/page_lab.py", listeners, f"{listeners}\n    {fewer}")
    (record,) = house.run(page=shop).records
    says = "cdn.shop.test/a.json (recorded: 200, here: net::ERR_CONNECTION_REFUSED)"
    assert_bad(record, says, "failed")
