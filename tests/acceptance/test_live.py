"""Pages with a service worker, revalidations, WebSockets, event streams, beacons: made or told."""

from __future__ import annotations

from collections import Counter

import pytest

from testbed.model import HAR_FILE
from tests.acceptance.house import House, Ran, assert_exact, assert_ok
from tests.measured import load_of
from tests.web import make_context
from wings.pages.tests.recorder.site import Answer, Site, png, serving, typed

pytestmark = [pytest.mark.guest, pytest.mark.browser]

HOST = "www.live.test"
WWW = f"https://{HOST}"
RTT_MS, RECONNECT_MS = 150.0, 3000  # the latter is the browser's own
DONE = "/done.png"  # asked for when the page's scripts have had what they waited for

WORKER = """
addEventListener('install', (event) => {
  skipWaiting();
  event.waitUntil(caches.open('v1').then((cache) => cache.addAll(['/kept.txt', '/style.css'])));
});
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('fetch', (event) => {
  event.respondWith(caches.match(event.request).then((hit) => hit || fetch(event.request)));
});
"""
WITH_WORKER = f"""<!doctype html><title>Worker</title><link rel=stylesheet href=/style.css><script>
const claimed = new Promise((resolve) => {{
  navigator.serviceWorker.addEventListener('controllerchange', resolve);
}});
navigator.serviceWorker.register('/sw.js').then(() => claimed).then(async () => {{
  await (await fetch('/kept.txt')).text();
  await (await fetch('/through.txt')).text();
  new Image().src = '{DONE}';
}});
</script>
"""
REVALIDATED = f"""<!doctype html><title>Revalidated</title><script>
const read = async (path) => (await (await fetch(path)).text()).length;
(async () => {{
  const first = await read('/data.json');
  const again = await read('/data.json');
  new Image().src = `/seen.png?${{first}}=${{again}}`;
  new Image().src = '{DONE}';
}})();
</script>
"""
SOCKETS = f"""<!doctype html><title>Sockets</title><img src=/one.png><script>
const scheme = location.protocol.replace('http', 'ws');
for (const host of ['{HOST}', 'x.live.test:81']) {{
  const socket = new WebSocket(`${{scheme}}//${{host}}/socket`);
  socket.onopen = () => socket.send('hello');
}}
new Image().src = '{DONE}';
</script>
"""
STREAM = f"""<!doctype html><title>Stream</title><script>
let events = 0;
new EventSource('/events').onmessage = () => {{
  events += 1;
  if (events === 2) {{ new Image().src = '{DONE}'; }}
}};
</script>
"""
BEACON = f"""<!doctype html><title>Beacon</title><img src={DONE}><script>
navigator.sendBeacon('/beacon', 'ten bytes.');
addEventListener('load', () => navigator.sendBeacon('/late', 'eleven bytes'));
</script>
"""
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
PAGES = {"worker": WITH_WORKER, "revalidated": REVALIDATED, "sockets": SOCKETS,
         "plain-sockets": SOCKETS, "stream": STREAM, "beacon": BEACON}  # fmt: skip
ROOTS = dict.fromkeys(PAGES, WWW) | {"plain-sockets": f"http://{HOST}"}


class Live(Site):
    """Has any picture."""

    @property
    def rules(self) -> tuple[str, ...]:
        return f"MAP {HOST}:443 127.0.0.1:{self.tls_port}", f"MAP * 127.0.0.1:{self.port}"

    def answer(self, method: str, url: str) -> Answer:
        if url.partition("?")[0].endswith(".png"):
            return typed(png(9), "image/png")
        return super().answer(method, url)


def make_live(name: str) -> Live:
    site = Live()
    page = PAGES[name]
    site.put(f"{ROOTS[name]}/", typed((page + HOLD).encode(), "text/html"))
    site.put(f"{WWW}/sw.js", typed(WORKER.encode(), "text/javascript"))
    once = ("Cache-Control", "no-store")
    site.put(f"{WWW}/kept.txt", typed(b"kept" * 99, "text/plain", once))
    site.put(f"{WWW}/style.css", typed(b"body { color: red }", "text/css", once))
    site.put(f"{WWW}/through.txt", typed(b"through" * 99, "text/plain", once))
    tag = (("ETag", '"1"'), ("Cache-Control", "no-cache"))
    site.put(f"{WWW}/data.json", typed(b"[1, 2]" * 999, "application/json", *tag))
    site.put(f"{WWW}/events", typed(b"data: 1\n\ndata: 2\n\n" + bytes(99), "text/event-stream",
                                    once, cut=18))  # fmt: skip
    site.put(f"{WWW}/beacon", Answer(status="204 No Content"), "POST")
    site.put(f"{WWW}/late", Answer(status="204 No Content"), "POST")
    return site


@pytest.fixture(scope="module")
def said(house: House, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the recorder said of each page."""
    folder = tmp_path_factory.mktemp("tls")
    folder.chmod(0o755)
    context = make_context(folder, HOST)
    words = {}
    for name, root in ROOTS.items():
        with serving(make_live(name), context) as site:
            authority = str(folder / "authority.pem")
            # A service worker may be silent for a while before it goes on.
            wait = ("--wait", "5") if name == "worker" else ()
            words[name] = house.record(site, f"{root}/", name, "--ca", authority, *wait)
    return words


@pytest.fixture(scope="module")
def ran(house: House, said: dict[str, str]) -> Ran:
    return house.run(page=list(said), rtt_ms=RTT_MS)


@pytest.mark.nightly(but="^worker$")
@pytest.mark.parametrize("name", PAGES)
def test_all_of_it_is_asked_for_and_answered_exactly(house: House, ran: Ran, name: str) -> None:
    record = ran.one(page=name)
    assert_ok(record)
    load, replay = load_of(record), record.replay
    assert load is not None and replay is not None
    assert (replay.inexact, replay.missed) == ((), ())
    assert (load.missing, load.extra, load.failed) == ((), (), ())
    root = ROOTS[name]
    assert {request.url for request in load.requests} >= {f"{root}{DONE}", f"{root}/hold/0.png"}
    if name != "stream":
        assert_exact(record, house.archive(name))


@pytest.mark.nightly
@pytest.mark.parametrize("name", PAGES)
def test_over_http_2_as_well(house: House, over_h2: Ran, name: str) -> None:
    assert_ok(over_h2.one(page=name))


@pytest.fixture(scope="module")
def over_h2(house: House, said: dict[str, str]) -> Ran:
    return house.run(page=list(said), protocol="h2")


def test_a_service_worker_asks_for_what_it_asked_for(house: House, ran: Ran) -> None:
    """What it answers from its own store, or after it has asked itself, is asked for once."""
    asked = Counter(entry.url for entry in house.archive("worker").entries)
    assert (asked[f"{WWW}/kept.txt"], asked[f"{WWW}/through.txt"]) == (1, 1)
    assert (asked[f"{WWW}/style.css"], asked[f"{WWW}/sw.js"]) == (2, 1)
    record = ran.one(page="worker")
    entries = {entry["request"]["url"]: entry for entry in ran.har(record)}
    assert entries[f"{WWW}/sw.js"]["response"]["status"] == 200
    # The browser counts the script's head alone, which is no length to hold against the server's.
    counted = {r.url: r.transfer_bytes for r in load_of(record).requests}
    assert [url for url, size in counted.items() if size is None] == [f"{WWW}/sw.js"]


def test_the_har_of_a_load_with_a_service_worker_is_a_page(house: House, ran: Ran) -> None:
    record = ran.one(page="worker")
    har = ran.folder / "trials" / record.trial_id / HAR_FILE
    told = house.import_page(har, "worker-again")
    assert "Requests left out, answered by a service worker: " in told
    assert len(house.archive("worker-again").entries) == len(house.archive("worker").entries)


def test_a_revalidation_is_answered_as_it_was(house: House, ran: Ran) -> None:
    data = f"{WWW}/data.json"
    kept = [entry for entry in house.archive("revalidated").entries if entry.url == data]
    assert [(entry.status, entry.body_size) for entry in kept] == [(200, 5994), (304, 0)]
    load = load_of(ran.one(page="revalidated"))
    first, again = (request for request in load.requests if request.url == data)
    assert first.transfer_bytes is not None and again.transfer_bytes is not None
    assert again.transfer_bytes < 1000 < 5994 < first.transfer_bytes


def test_a_client_without_a_cache_can_ask_again_too(house: House, said: dict[str, str]) -> None:
    ran = house.run(page="revalidated", client=["graph", "wget2"], protocol="h1")
    asked = load_of(ran.one(client="graph"))
    statuses = [r.status for r in asked.requests if r.url == f"{WWW}/data.json"]
    assert statuses == [200, 304]
    assert_ok(ran.one(client="graph"))
    assert_ok(ran.one(client="wget2"))


@pytest.mark.nightly(but="^ran$")
@pytest.mark.parametrize("loads", ["ran", "over_h2"])
def test_sockets_are_replayed_or_refused_and_told_once(
    said: dict[str, str], loads: str, request: pytest.FixtureRequest
) -> None:
    some: Ran = request.getfixturevalue(loads)
    for name, scheme in (("sockets", "wss"), ("plain-sockets", "ws")):
        told = f"WebSocket, whose messages are replayed in their order: {scheme}://{HOST}/socket"
        assert told in said[name]
        replay = some.one(page=name).replay
        assert replay is not None
        assert (f"{scheme}://{HOST}/socket".replace("ws", "http", 1), True) in [
            (talk.url, talk.exact) for talk in replay.talks
        ]
    assert some.said.count("WebSockets replayed") == 1
    assert "WebSockets replayed" in (some.folder / "report.html").read_text()


def test_a_stream_is_asked_for_again_when_it_ends(house: House, ran: Ran) -> None:
    record = ran.one(page="stream")
    assert load_of(record).plt_ms > RECONNECT_MS
    times = [r.start_ms for r in load_of(record).requests if r.url == f"{WWW}/events"]
    assert len(times) > 1
