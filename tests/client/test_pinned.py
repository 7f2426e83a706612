"""Pinned clocks and random numbers in the real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.client import CLIENTS
from testbed.client.interface import LoadOrder
from testbed.model import PageLoad
from tests.client.conftest import TIMEOUT_S, TwoEnds
from tests.client.replay import Serve
from tests.client.sites import Site

pytestmark = [pytest.mark.root, pytest.mark.browser]

ROOT = "https://www.page.test/"
# Each asks for URLs of values that differ between two loads of an ordinary browser.
ASK = """
const ask = (what, value) => { new Image().src = `/NAME/${what}?${value}`; };
"""
SOURCES = """
ask('now', Date.now());
ask('new', new Date().getTime());
ask('call', encodeURIComponent(Date()));
class Moment extends Date {}
ask('subclass', [+new Moment(), new Moment() instanceof Date]);
ask('given', new Date(2020, 1, 2).toISOString() + new Date(5).getTime() + Date.UTC(1970, 0));
for (let i = 0; i < 3; i += 1) { ask(`random${i}`, Math.random()); }
ask('values', crypto.getRandomValues(new Uint32Array(4)));
ask('uuid', crypto.randomUUID());
ask('stopwatch', performance.now());
"""
LOOPS = """
const start = Date.now(), watch = performance.now();
while (Date.now() - start < 60000);
while (performance.now() - watch < 60000);
ask('ended', 1);
"""
UNTOUCHED = """
const [entry] = performance.getEntriesByType('navigation');
const real = Math.abs(performance.timing.navigationStart - performance.timeOrigin) <= 1;
ask('untouched', [entry.startTime, entry.responseStart > 0, real]);
let refused = '';
try { crypto.getRandomValues([1]); } catch (error) { refused = error.name; }
ask('refused', refused);
"""
WORKER = """
fetch('/worker/values?' + [Math.random(), Date.now(), performance.now(), crypto.randomUUID()]);
"""
FIRST, SECOND, WORK = f"{ROOT}first.js", f"{ROOT}second.js", f"{ROOT}worker.js"


def named(name: str, *scripts: str) -> bytes:
    return "".join(["{", ASK.replace("NAME", name), *scripts, "}"]).encode()


@pytest.fixture
def random_site() -> Site:
    """Two scripts that arrive in any order, a frame, a worker, loops that wait for a moment."""
    site = Site(ROOT)
    body = (
        b"<!doctype html><title>t</title><script async src=/first.js></script>"
        b"<script async src=/second.js></script><iframe src=/frame.html></iframe>"
        b"<iframe srcdoc='<script>new Image().src=`/srcdoc/random?${Math.random()}`</script>'>"
        b"</iframe><script>new Worker('/worker.js');</script>"
    )
    site.add(ROOT, body, "text/html", how="root")
    site.add(FIRST, named("first", SOURCES), "text/javascript")
    site.add(SECOND, named("second", SOURCES, UNTOUCHED), "text/javascript")
    frame = b"<script>" + named("frame", SOURCES) + b"</script>"
    site.add(f"{ROOT}frame.html", frame, "text/html", how="frame")
    site.add(WORK, WORKER.encode(), "text/javascript")
    site.add(f"{ROOT}not-before-the-load-event.png", b"", "image/png")
    return site


Pinned = Callable[..., PageLoad]


@pytest.fixture
def load(two_ends: TwoEnds, bundle: Path, authority: Path, tmp_path: Path) -> Pinned:
    def once(site: Site, number: int, *, pinned: bool) -> PageLoad:
        folder = tmp_path / f"load{number}"
        for part in ("scratch", "out"):
            (folder / part).mkdir(parents=True)
        order = LoadOrder(
            archive=site.archive(), prefix=two_ends.client.prefix, tfo=False, think_time="none",
            bundle=bundle, scratch=folder / "scratch", out=folder / "out", timeout_s=TIMEOUT_S,
            tls=authority, pinned=pinned,
        )  # fmt: skip
        return CLIENTS["chromium"].load(order)

    return once


def by_place(load: PageLoad) -> dict[str, str]:
    """What was asked for with which value; the path names the place."""
    parts = (request.url.removeprefix(ROOT).partition("?") for request in load.requests)
    return {path: value for path, _, value in parts if value}


def test_loops_that_wait_for_a_moment_end(serve_tls: Serve, load: Pinned) -> None:
    site = Site(ROOT)
    site.add(ROOT, b"<!doctype html><script>" + named("loop", LOOPS) + b"</script>", "text/html")
    serve_tls(site, h2=False)
    assert by_place(load(site, 1, pinned=True)) == {"loop/ended": "1"}


def test_pinned_loads_ask_for_the_same_whatever_comes_first(
    random_site: Site, serve_tls: Serve, load: Pinned
) -> None:
    replay = serve_tls(random_site, h2=False)
    replay.slow = {FIRST}
    one = load(random_site, 1, pinned=True)
    replay.slow = {SECOND, f"{ROOT}frame.html"}
    two = load(random_site, 2, pinned=True)
    values = by_place(one)
    assert values == by_place(two)
    assert one.pinned
    assert two.pinned
    assert len(values) == 3 * 11 + len(("untouched", "refused", "srcdoc", "worker"))
    assert values["second/untouched"] == "0,true,true"
    assert values["second/refused"] == "TypeError"
    assert values["first/now"] == "1767225600000"
    assert values["first/subclass"] == "1767225600000,true"
    assert values["first/given"] == "2020-02-02T00:00:00.000Z50"
    for what in ("random0", "values", "uuid"):
        assert len({values[f"{name}/{what}"] for name in ("first", "second", "frame")}) == 3
    assert len({values[f"first/random{i}"] for i in range(3)}) == 3
    assert 0.0 < one.plt_ms < TIMEOUT_S * 1000


def test_free_loads_differ(random_site: Site, serve_tls: Serve, load: Pinned) -> None:
    serve_tls(random_site, h2=False)
    one, two = (load(random_site, number, pinned=False) for number in (1, 2))
    assert not one.pinned
    assert by_place(one).keys() == by_place(two).keys()
    same = {path for path, value in by_place(one).items() if by_place(two)[path] == value}
    seeded = {path for path in same if "random" in path or "given" in path}
    # Of 0.1 ms each: some may be equal by chance.
    stopwatches = {f"{name}/stopwatch" for name in ("first", "second", "frame")}
    assert not stopwatches <= same
    assert same - seeded - stopwatches <= {"second/untouched", "second/refused"}
