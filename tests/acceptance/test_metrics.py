"""What engineers ask of a load: moments, what the page timed itself, and a film of its twin."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import EXIT_CONFIGURATION, EXIT_OK
from tests.acceptance.house import House, Ran, assert_ok
from tests.measured import load_of
from wings.pages.tests.recorder.site import Site, serving, typed

pytestmark = [pytest.mark.guest, pytest.mark.browser]

WWW = "http://www.timed.test"
PAGE = b"""<!doctype html><title>Timed</title><link rel=icon href=data:,>
<script>performance.mark('head')</script><link rel=stylesheet href=/a.css>
<main id=shop><p elementtiming=words>Words</p><img class="hero wide" elementtiming=hero
src=/hero.bmp width=600 height=400></main><script src=/app.js></script>"""
SCRIPT = b"""performance.mark('app'); performance.measure('boot', 'head', 'app');
performance.mark('half \\ud800 a pair');"""

# What has too few bytes for its size counts as no largest paint.
NOISE = struct.pack("<2sIIIIiiHHIIiiII", b"BM", 7254, 0, 54, 40, 60, 40, 1, 24, *[0] * 6)
NOISE += random.Random(1).randbytes(7200)  # noqa: S311 - a picture


def timed() -> Site:
    site = Site()
    told = ("Server-Timing", 'db;dur=53.2;desc="a, b", cache;desc="hit"')
    site.put(f"{WWW}/", typed(PAGE, "text/html", told))
    site.put(f"{WWW}/a.css", typed(b"main { background: #0a0; height: 600px }", "text/css"))
    site.put(f"{WWW}/hero.bmp", typed(NOISE, "image/bmp"))
    site.put(f"{WWW}/app.js", typed(SCRIPT, "text/javascript"))
    return site


@pytest.fixture(scope="module")
def ran(house: House) -> Ran:
    with serving(timed()) as site:
        house.record(site, f"{WWW}/", "timed")
    return house.run(page="timed", film=[False, True])


def measured(ran: Ran) -> Any:
    (record,) = (r for r in ran.records if not r.trial.condition.film)  # type: ignore[attr-defined]
    return record


def filmed(ran: Ran) -> Any:
    (record,) = (r for r in ran.records if r.trial.condition.film)  # type: ignore[attr-defined]
    return record


def test_moments_and_what_the_page_timed_itself(ran: Ran) -> None:
    record = measured(ran)
    assert_ok(record)
    load = load_of(record)
    assert load.dcl_ms is not None and load.ttfb_ms is not None
    assert load.ttfb_ms < load.dcl_ms <= load.plt_ms
    assert load.lcp_url == f"{WWW}/hero.bmp"
    assert load.lcp_element == "main#shop > img.hero.wide"
    assert (load.long_tasks, load.tbt_ms) == (None, None)  # computing takes no virtual time
    timings = {(each.kind, each.name): each for each in load.timings}
    assert list(timings) == [
        ("mark", "head"), ("mark", "app"), ("mark", "half \N{REPLACEMENT CHARACTER} a pair"),
        ("measure", "boot"), ("element", "words"), ("element", "hero"),
        ("server", "db"), ("server", "cache"),
    ]  # fmt: skip
    boot = timings["measure", "boot"]
    assert boot.start_ms + boot.lasted_ms == pytest.approx(timings["mark", "app"].start_ms)
    assert timings["element", "hero"].start_ms == load.lcp_ms
    assert (timings["server", "db"].lasted_ms, timings["server", "db"].url) == (53.2, f"{WWW}/")
    assert record.proof.as_told == ("lcp_element", "timings")


def test_viewers_of_har_find_the_moments(ran: Ran) -> None:
    record = measured(ran)
    load = load_of(record)
    path = ran.folder / "trials" / record.trial_id / "load.har"
    page = json.loads(path.read_text("utf-8"))["log"]["pages"][0]
    assert page["_render"] == load.fp_ms
    assert page["_firstContentfulPaint"] == page["pageTimings"]["_firstContentfulPaint"]
    assert page["_LargestContentfulPaint"] == load.lcp_ms
    assert page["_domContentLoadedEventEnd"] == load.dcl_ms
    assert page["_loadEventEnd"] == load.plt_ms


def test_a_film_is_a_load_of_its_own(ran: Ran, house: House) -> None:
    record = filmed(ran)
    assert_ok(record)
    frames = sorted((ran.folder / "trials" / record.trial_id).glob("frame-*.png"))
    assert len(frames) >= 3  # before, words, picture
    assert not list((ran.folder / "trials" / measured(ran).trial_id).glob("frame-*"))
    code, said = house.command("pages", "filmstrip", str(ran.folder))
    assert code == EXIT_OK, said
    line, page = said.splitlines()
    assert "film=true seed=0: speed index " in line
    assert f"load time {load_of(record).plt_ms:.1f} ms, measured " in line
    drawn = Path(page).read_text("utf-8")
    assert drawn.count("<img ") == len(frames)
    # A film must not be of another load: what is visible is complete when the largest paint is.
    complete_ms = float(line.partition("visually complete ")[2].partition(" ms")[0])
    lcp_ms = load_of(record).lcp_ms
    assert lcp_ms is not None and abs(complete_ms - lcp_ms) < 50


def test_results_without_a_film_have_no_filmstrip(house: House, tmp_path: Path) -> None:
    code, _ = house.command("pages", "filmstrip", str(tmp_path))
    assert code == EXIT_CONFIGURATION


def test_only_a_browser_draws(house: House) -> None:
    house.take("file-10k")
    text = 'title = "t"\npage = "file-10k"\nclient = "graph"\nfilm = true\n'
    assert 'the client "graph" has no film' in house.refused(text)
