"""A browser that does what it should not: each time a clear error, and nothing left running."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import time
from importlib import import_module
from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from testbed.client.chromium import Chromium
from testbed.client.interface import EarlyClient, LoadError, LoadOrder, LoadTimeoutError
from testbed.model import Opening, PageLoad
from tests.client.chromium.fake import write_browser
from tests.client.conftest import compile_shim
from tests.client.sites import Site

ROOT = "http://www.page.test/"


@pytest.fixture
def order(tmp_path: Path) -> LoadOrder:
    site = Site(ROOT)
    site.add(ROOT, b"x", "text/html", how="root")
    (tmp_path / "bundle" / "native").mkdir(parents=True)
    (tmp_path / "bundle" / "native" / "tfo.so").touch()
    for name in ("scratch", "out"):
        (tmp_path / name).mkdir()
    return LoadOrder(archive=site.archive(), prefix=(), tfo=False, think_time="none",
                     bundle=tmp_path / "bundle", scratch=tmp_path / "scratch", out=tmp_path / "out",
                     timeout_s=20.0)  # fmt: skip


def load(order: LoadOrder, way: str) -> PageLoad:
    return Chromium(write_browser(order.scratch, way), sandbox=False).load(order)


def test_a_browser_that_cannot_be_modified_as_asked_does_not_start(order: LoadOrder) -> None:
    compile_shim(order.bundle / "native" / "keyshare.so")
    order = dataclasses.replace(order, opening=Opening("chromium", key_share="x25519"))
    said = "status 125: (?s:.*)keyshare: .* has Chromium 156's list of TLS groups 0 times, not once"
    with pytest.raises(LoadError, match=said):
        load(order, "plain")


def running(folder: Path) -> list[str]:
    """Command lines of processes that were started from ``folder``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text()
        except OSError:
            continue
        if str(folder) in words and int(process.name) != os.getpid():
            found.append(words)
    return found


def test_a_load(order: LoadOrder) -> None:
    loaded = load(order, "plain")
    assert (loaded.client_version, loaded.plt_ms) == ("Fake/1.0", 1000.5)
    assert (loaded.missing, loaded.extra, loaded.failed) == ((), (), ())
    (request,) = loaded.requests
    assert (request.start_ms, request.end_ms, request.connection) == (0.0, 500.0, "1")
    assert (loaded.ttfb_ms, loaded.fp_ms, loaded.fcp_ms, loaded.lcp_ms) == (250, 300, 304, 500)
    assert loaded.cls == 0.0
    assert loaded.browser["cpu_s"] == 0.5
    har = json.loads((order.out / "load.har").read_text())["log"]
    assert har["browser"] == {"name": "Fake", "version": "1.0"}
    assert [entry["request"]["url"] for entry in har["entries"]] == [ROOT]
    assert running(order.scratch) == []


@pytest.mark.parametrize(
    ("way", "message"),
    [("dies", r"the browser ended too early, with status 1: (?s:.*)cannot open display"),
     ("ends", r"the browser ended too early, with status 7: (?s:.*)out of memory"),
     ("closes", "the browser closed its DevTools pipe and goes on"),
     ("crashes", rf"{ROOT}: the page crashed; see client\.log"),
     ("refuses", r"refused Performance\.enable: 'Performance\.enable' wasn't found"),
     ("nowhere", rf"net::ERR_NAME_NOT_RESOLVED at {ROOT}")],
)  # fmt: skip
def test_a_load_that_comes_to_nothing(order: LoadOrder, way: str, message: str) -> None:
    with pytest.raises(LoadError, match=message) as caught:
        load(order, way)
    assert not isinstance(caught.value, LoadTimeoutError)
    assert running(order.scratch) == []


def test_a_browser_that_takes_too_long(order: LoadOrder) -> None:
    brief = dataclasses.replace(order, timeout_s=1.0)
    with pytest.raises(LoadTimeoutError, match=r"no answer to Browser\.getVersion in time"):
        load(brief, "sleeps")
    assert running(order.scratch) == []


def test_a_load_that_takes_too_long(order: LoadOrder) -> None:
    brief = dataclasses.replace(order, timeout_s=1.0)
    chromium = Chromium(write_browser(order.scratch, "stalls"), sandbox=False)
    late = rf"{ROOT} had no load event in 1 s, and nothing is outstanding: more time cannot help"
    # To start it may take longer.
    with chromium.started(order.seat) as started, pytest.raises(LoadError, match=late):
        started.load(brief)
    assert running(order.scratch) == []


def test_dialogs_are_answered(order: LoadOrder) -> None:
    assert load(order, "asks").plt_ms == 1000.5


def test_workers_are_observed_before_they_run(order: LoadOrder) -> None:
    load(order, "works")
    log = (order.out / "client.log").read_text()
    assert "['Network.enable', 'Runtime.runIfWaitingForDebugger']" in log


def test_a_browser_that_does_not_exist(order: LoadOrder) -> None:
    missing = order.scratch / "none"
    with pytest.raises(MissingError, match=f"cannot start `{missing}`: No such file"):
        Chromium(missing, sandbox=False).load(order)


def test_a_browser_that_was_started_before_its_page_is_known(order: LoadOrder) -> None:
    chromium = Chromium(write_browser(order.scratch, "plain"), sandbox=False)
    assert isinstance(chromium, EarlyClient)
    with chromium.started(order.seat) as started:
        assert len(running(order.scratch)) > 0
        assert started.load(order).plt_ms == 1000.5
    assert running(order.scratch) == []


def test_one_that_is_never_asked_for_a_page_is_ended(order: LoadOrder) -> None:
    chromium = Chromium(write_browser(order.scratch, "plain"), sandbox=False)
    with pytest.raises(KeyError), chromium.started(order.seat):
        raise KeyError
    assert running(order.scratch) == []


def test_a_moment_is_waited_for_and_then_the_guest_forgets(order: LoadOrder) -> None:
    moment_ns, forgotten_ns = time.time_ns() + 300_000_000, []
    order = dataclasses.replace(
        order, wait_until_ns=moment_ns, restart=lambda: forgotten_ns.append(time.time_ns())
    )
    load(order, "plain")
    assert len(forgotten_ns) == 1
    assert forgotten_ns[0] >= moment_ns


def test_a_single_visit_tells_nothing_of_visits(order: LoadOrder) -> None:
    seen = load(order, "plain")
    assert (seen.earlier, seen.began_ns, seen.visits) == ((), None, (seen,))


@pytest.mark.parametrize(
    ("key", "message"),
    [("another=", r"authority\.spki is not that of the lab's authority; run .* pages build"),
     (None, r"authority\.spki: No such file or directory; run .* pages build")],
)  # fmt: skip
def test_a_page_with_certificates_of_others(
    order: LoadOrder, tmp_path: Path, key: str | None, message: str
) -> None:
    if key is not None:
        (tmp_path / "authority.spki").write_text(key)
    with pytest.raises(LoadError, match=message):
        load(dataclasses.replace(order, tls=tmp_path), "plain")


def test_descriptors_do_not_pile_up(order: LoadOrder) -> None:
    gc.collect()  # which may close what other tests have left
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(LoadError):
        load(order, "dies")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


VISITED, LEFT = "Page.navigate", ["Page.navigate", "Network.clearBrowserCache"]


@pytest.mark.parametrize("keep", [False, True])
def test_several_visits(order: LoadOrder, keep: bool) -> None:
    idle: list[int] = []
    asked = dataclasses.replace(
        order, visits=3, keep_cache=keep, idle=lambda: idle.append(time.time_ns())
    )
    loaded = load(asked, "plain")
    first, second, third = loaded.visits
    assert third is loaded and loaded.earlier == (first, second)
    began = [visit.began_ns or 0 for visit in loaded.visits]
    assert len(idle) == 2
    assert 0 < began[0] < idle[0] <= began[1] < idle[1] <= began[2]
    assert [len(visit.requests) for visit in loaded.visits] == [1, 1, 1]
    assert first.earlier == ()
    # Each visit's own file, and the empty page between two of them.
    names = ["load.har", "visit-1.har", "visit-2.har"]
    assert sorted(path.name for path in order.out.glob("*.har")) == names
    for name in names:
        har = json.loads((order.out / name).read_text())["log"]
        assert [entry["request"]["url"] for entry in har["entries"]] == [ROOT]
    leaving = LEFT[:1] if keep else LEFT
    told = [VISITED, *leaving, VISITED, *leaving, VISITED]
    assert str(told) in (order.out / "client.log").read_text()
    assert running(order.scratch) == []


@pytest.mark.parametrize("keep", [False, True])
def test_what_the_cache_answers_is_not_owed_where_it_is_kept(order: LoadOrder, keep: bool) -> None:
    site = Site(ROOT)
    site.add(ROOT, b"x", "text/html", how="root")
    site.add(f"{ROOT}other", b"y", "image/png")
    # Without, the browser is waited for: what comes from a cache is no request of the page.
    asked = dataclasses.replace(
        order, archive=site.archive(), visits=2, keep_cache=keep, timeout_s=20.0 if keep else 2.0
    )
    loaded = load(asked, "caches")
    assert [len(visit.requests) for visit in loaded.visits] == [2, 1]
    assert [visit.missing for visit in loaded.visits] == [(), () if keep else (f"{ROOT}other",)]


def test_a_page_that_cannot_be_left(order: LoadOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    # The package's name for it is its function.
    monkeypatch.setattr(import_module("testbed.client.chromium.visit"), "ANSWER_S", 1.0)
    said = f"{ROOT} could not be left after a visit"
    with pytest.raises(LoadError, match=said):
        load(dataclasses.replace(order, visits=2), "stays")
    assert running(order.scratch) == []
