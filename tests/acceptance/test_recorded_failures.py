"""A page whose requests fail in many ways: what was recorded so is expected so, and nothing else."""

from __future__ import annotations

import pytest

from testbed.archive.reading import Archive
from tests.acceptance.house import House, Plant, Ran, assert_bad, assert_ok
from tests.measured import load_of
from wings.pages.tests.recorder.site import Answer, Site, png, serving, typed

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
    ran = house.run(page="failing")
    (record,) = ran.records
    assert_ok(record)
