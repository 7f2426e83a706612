"""Pages that talk over other channels than plain requests: recorded, and replayed as they were."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from testbed.model import PageLoad, Record
from tests.acceptance.house import House, Ran, assert_ok
from tests.measured import load_of
from tests.web import make_context
from wings.pages.tests.recorder.site import Answer, Site, png, serving, typed

pytestmark = [pytest.mark.guest, pytest.mark.browser]

HOST = "www.channels.test"
WWW = f"https://{HOST}"
DONE = "/done.png"
PAUSE_S = 0.3
RTT_MS = 60.0

SHARED = """
onconnect = async ({ ports: [port] }) => {
  port.postMessage((await (await fetch('/shared.txt')).text()).length);
};
"""
WORKER = """
addEventListener('install', (event) => {
  skipWaiting();
  event.waitUntil(caches.open('v1').then((cache) => cache.addAll(['/', '/kept.txt'])));
});
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('fetch', (event) => {
  event.respondWith(caches.match(event.request).then((hit) => hit || fetch(event.request)));
});
"""
PAGES = {
    "shared": f"""<script>
const worker = new SharedWorker('/shared.js');
worker.port.onmessage = ({{ data }}) => {{ new Image().src = `{DONE}?${{data}}`; }};
</script>""",
    "socket": f"""<script>
const socket = new WebSocket(`wss://${{location.host}}/socket?room=1`);
const said = [];
socket.onmessage = ({{ data }}) => {{
  said.push(data);
  if (said.length === 1) {{ socket.send('hello'); }}
  if (said.length === 3) {{ new Image().src = `{DONE}?${{said.join('-')}}`; }}
}};
</script>""",
    "events": f"""<script>
const events = new EventSource('/events');
let seen = 0;
events.onmessage = () => {{ seen += 1; if (seen === 3) {{ new Image().src = '{DONE}'; }} }};
</script>""",
    "stream": f"""<script>
(async () => {{
  await (await fetch('/stream.txt')).text();
  new Image().src = '{DONE}';
}})();
</script>""",
    "worker": f"""<script>
const {{ serviceWorker }} = navigator;
const claimed = new Promise((resolve) => {{
  serviceWorker.addEventListener('controllerchange', resolve);
  serviceWorker.controller && resolve();
}});
serviceWorker.register('/sw.js').then(() => claimed).then(async () => {{
  await (await fetch('/kept.txt')).text();
  await (await fetch('/through.txt')).text();
  new Image().src = '{DONE}';
}});
</script>""",
}
# Pictures one after the other hold the load event back until the scripts have had what they want.
HELD = 30
HOLD = f"""<script>
const hold = (left) => {{
  const picture = new Image();
  picture.onload = () => left && hold(left - 1);
  picture.src = `/hold/${{left}}.png`;
}};
hold({HELD});
</script>"""


class Channels(Site):
    """Has any picture."""

    @property
    def rules(self) -> tuple[str, ...]:
        return f"MAP {HOST}:443 127.0.0.1:{self.tls_port}", f"MAP * 127.0.0.1:{self.port}"

    def answer(self, method: str, url: str) -> Answer:
        if url.partition("?")[0].endswith(".png"):
            return typed(png(9), "image/png")
        return super().answer(method, url)


def make_site(name: str) -> Channels:
    site = Channels()
    page = f"<!doctype html><link rel=icon href=data:,><title>{name}</title>{PAGES[name]}{HOLD}"
    once = ("Cache-Control", "no-store")
    site.put(f"{WWW}/", typed(page.encode(), "text/html", once))
    site.put(f"{WWW}/shared.js", typed(SHARED.encode(), "text/javascript"))
    site.put(f"{WWW}/shared.txt", typed(b"shared" * 99, "text/plain"))
    site.put(f"{WWW}/sw.js", typed(WORKER.encode(), "text/javascript"))
    site.put(f"{WWW}/kept.txt", typed(b"kept" * 99, "text/plain", once))
    site.put(f"{WWW}/through.txt", typed(b"through" * 99, "text/plain", once))
    how: dict[str, object] = {"pause_s": PAUSE_S}
    lines = tuple(b"data: %d\n\n" % number for number in range(3))
    site.put(f"{WWW}/events", typed(b"", "text/event-stream", pieces=lines, cut=0, **how))
    parts = tuple(bytes([65 + number]) * 2000 for number in range(4))
    site.put(f"{WWW}/stream.txt", typed(b"", "text/plain", pieces=parts, **how))
    site.talks["/socket?room=1"] = ("one", 0, PAUSE_S, "hello", "three")
    return site


Said = Callable[[str], str]


@pytest.fixture(scope="module")
def said(house: House, tmp_path_factory: pytest.TempPathFactory) -> Said:
    """Records a page, once; what the recorder said of it."""
    folder = tmp_path_factory.mktemp("tls")
    folder.chmod(0o755)
    context = make_context(folder, HOST)

    @functools.cache
    def record(name: str) -> str:
        with serving(make_site(name), context) as site:
            authority = str(folder / "authority.pem")
            wait = ("--wait", "5") if name == "worker" else ()
            return house.record(site, f"{WWW}/", name, "--ca", authority, *wait)

    return record


def run(house: House, said: Said, *names: str, **knobs: object) -> Ran:
    for name in names:
        said(name)
    return house.run(page=list(names), rtt_ms=RTT_MS, **knobs)


def loaded(record: Record) -> PageLoad:
    """The load, which asked for all that it was to, and got it."""
    assert_ok(record)
    load, replay = load_of(record), record.replay
    assert (load.missing, load.extra, load.failed) == ((), (), ())
    assert replay is not None and (replay.inexact, replay.missed, replay.sockets) == ((), (), ())
    return load


def lasted_ms(load: PageLoad, path: str) -> float:
    (asked,) = (each for each in load.requests if each.url == f"{WWW}{path}")
    return asked.end_ms - asked.start_ms


def test_a_shared_worker_is_seen(house: House, said: Said) -> None:
    ran = run(house, said, "shared")
    asked = {request.url for request in loaded(ran.one(page="shared")).requests}
    assert {f"{WWW}/shared.js", f"{WWW}/shared.txt", f"{WWW}{DONE}?594"} <= asked
    assert "not quiet" not in said("shared") and "a guess" not in said("shared")


def test_a_socket_says_what_it_said(house: House, said: Said) -> None:
    ran = run(house, said, "socket")
    record = ran.one(page="socket")
    asked = {request.url: request for request in loaded(record).requests}
    assert f"{WWW}{DONE}?one-hello-three" in asked
    assert record.replay is not None
    (talk,) = record.replay.talks
    assert (talk.url, talk.said, talk.heard, talk.exact) == (f"{WWW}/socket?room=1", 3, 1, True)
    assert asked[f"{WWW}{DONE}?one-hello-three"].start_ms > 1000 * PAUSE_S
    assert "messages are replayed in their order: wss://www.channels.test/socket" in said("socket")
    assert "1 WebSocket replayed." in ran.said


def test_events_come_when_they_came(house: House, said: Said) -> None:
    ran = run(house, said, "events")
    assert lasted_ms(loaded(ran.one(page="events")), "/events") >= 2000 * PAUSE_S
    assert f"Event stream, which stays open: {WWW}/events." in said("events")


@pytest.mark.nightly
def test_a_body_comes_in_its_pieces(house: House, said: Said) -> None:
    ran = run(house, said, "stream")
    assert lasted_ms(loaded(ran.one(page="stream")), "/stream.txt") >= 3000 * PAUSE_S


@pytest.mark.nightly
def test_a_second_visit_is_served_by_the_worker(house: House, said: Said) -> None:
    (record,) = run(house, said, "worker", visits=2, between="keep").records
    load = load_of(record)
    assert (load.missing, load.extra, load.failed) == ((), (), ())
    asked = {request.url for request in load.requests}
    assert asked >= {f"{WWW}/through.txt", f"{WWW}{DONE}", f"{WWW}/hold/30.png"}
    assert not asked & {f"{WWW}/", f"{WWW}/kept.txt"}


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_over_http_2_and_3(house: House, said: Said, protocol: str) -> None:
    names = ["shared", "socket", "events", "stream"]
    ran = run(house, said, *names, protocol=protocol, web_server="nginx-quic")
    for name in names:
        loaded(ran.one(page=name))


@pytest.mark.nightly
def test_at_once_nothing_waits(house: House, said: Said) -> None:
    ran = run(house, said, "socket", "events", "stream", push_times="at-once")
    loaded(ran.one(page="socket"))
    for name, path in (("events", "/events"), ("stream", "/stream.txt")):
        assert lasted_ms(loaded(ran.one(page=name)), path) < 1000 * PAUSE_S
