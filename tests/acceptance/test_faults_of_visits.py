"""Several visits of a page, and faults in them: none of these may pass as proven.

What one real load of two visits wrote down is altered and judged again; the others are in what the
browser and the lab are made to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from testbed.base.errors import EXIT_OK
from testbed.model import CAPTURE_FILE, HAR_FILE, VISIT_HARS, Record
from testbed.wire.packets import read_capture
from tests.acceptance.altered import Alter, Done, Seen
from tests.acceptance.house import House, Plant, Ran, assert_ok
from tests.measured import load_of
from tests.pages.recorder.site import Site, png, serving, typed
from tests.wire.packets import write_frames

pytestmark = [pytest.mark.guest, pytest.mark.browser]

PAGE, TABLE, SECURE = "tum-website", "wikipedia", "wikipedia-h2"
KNOBS = {"page": PAGE, "client": "chromium", "rtt_ms": 20, "visits": 2, "idle_s": 5}
"""Connections of the first visit are used in the second."""
WWW = "http://www.cached.test"
KEPT = ("Cache-Control", "max-age=86400")
HTML = b"<!doctype html><title>Cached</title>" + b"".join(
    b'<img src="/%d.png">' % number for number in range(3)
)
SECOND_NS = 1_000_000_000


@pytest.fixture(scope="module", autouse=True)
def pages(house: House) -> None:
    """A page of the repository, and one whose pictures a browser may keep for a day."""
    house.take(PAGE, TABLE, SECURE)
    site = Site()
    site.put(f"{WWW}/", typed(HTML, "text/html", ("Cache-Control", "no-store")))
    for number in range(3):
        site.put(f"{WWW}/{number}.png", typed(png(number), "image/png", KEPT))
    with serving(site):
        house.record(site, f"{WWW}/", "cached")


@pytest.fixture(scope="module")
def done(house: House) -> Done:
    """One real load of two visits."""
    ran = house.run(**KNOBS)
    assert ran.code == EXIT_OK, ran.said
    return Done(ran.one(), ran.folder, house.archive(PAGE).digest)


def urls(ran: Ran, **knobs: Any) -> list[list[str]]:
    """What was asked for in each visit of a load that is proven."""
    (record,) = (
        each for each in ran.records
        if all(getattr(each.trial.linked, name) == value for name, value in knobs.items())
    )  # fmt: skip
    assert_ok(record)
    load = load_of(record)
    assert load is not None and load.missing == load.earlier[0].missing == ()
    folder = ran.folder / "trials" / record.trial_id
    hars = (json.loads((folder / name).read_text()) for name in (VISIT_HARS[0], HAR_FILE))
    return [[each["request"]["url"] for each in har["log"]["entries"]] for har in hars]


def test_what_a_browser_kept_is_not_missing(house: House) -> None:
    ran = house.run(**KNOBS | {"page": "cached"}, between=["keep", "clear-cache"])
    whole = [f"{WWW}/", *(f"{WWW}/{number}.png" for number in range(3))]
    assert urls(ran, between="keep") == [whole, whole[:1]]
    assert urls(ran, between="clear-cache") == [whole, whole]


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"page": SECURE, "protocol": "h2", "tls_resumption": True, "web_server": "nginx-quic"},
    ],
    ids=["h1", "h2"],
)
def test_connections_are_kept_from_one_visit_to_the_next(
    house: House, knobs: dict[str, Any]
) -> None:
    ran = house.run(**KNOBS | knobs, between="keep")
    first, second = urls(ran)
    assert sorted(first) == sorted(second)
    (record,) = ran.records
    load, proof = load_of(record), record.proof
    assert load is not None and proof is not None
    assert load.plt_ms < load.earlier[0].plt_ms
    assert [visit.tcp > 0 for visit in proof.visits] == ([True, False] if knobs else [])


def visit_of(seen: Seen, number: int) -> dict[str, Any]:
    """What was seen of the visit of that number, from 0."""
    load: dict[str, Any] = seen["load"]
    found: dict[str, Any] = [*load["earlier"], load][number]
    return found


def swapped(seen: Seen) -> None:
    load = seen["load"]
    (first,) = load.pop("earlier")
    seen["load"] = {**first, "earlier": [load | {"earlier": []}]}


def left_out(seen: Seen) -> None:
    seen["load"]["earlier"] = []


def twice(seen: Seen) -> None:
    seen["load"]["earlier"] *= 2


def began(number: int, later_ns: int) -> Alter:
    """A visit is said to have begun at another time."""

    def alter(seen: Seen) -> None:
        visit_of(seen, number)["began_ns"] += later_ns

    return alter


def times(number: int, factor: float) -> Alter:
    """All times of a visit are others."""

    def alter(seen: Seen) -> None:
        visit = visit_of(seen, number)
        visit["plt_ms"] *= factor
        for request in visit["requests"]:
            request["end_ms"] *= factor

    return alter


def moved(source: int) -> Alter:
    """The last request of a visit is named in the other one."""

    def alter(seen: Seen) -> None:
        requests = visit_of(seen, source)["requests"]
        visit_of(seen, 1 - source)["requests"].append(requests.pop())

    return alter


def repeated(seen: Seen) -> None:
    """The second visit is what was seen of the first."""
    first, second = visit_of(seen, 0), visit_of(seen, 1)
    for name in ("plt_ms", "ttfb_ms", "requests"):
        second[name] = first[name]


def request_dropped(seen: Seen) -> None:
    visit_of(seen, 0)["requests"].pop()


FIRST, LAST = "visit 1 of 2: ", "visit 2 of 2: "
ALTERED: dict[str, tuple[Alter, str]] = {
    "swapped": (swapped, LAST),
    "left out": (left_out, "the page was visited 1 times, asked was 2"),
    "counted twice": (twice, "the page was visited 3 times, asked was 2"),
    "the first 1 s sooner": (began(0, -SECOND_NS), f"{FIRST}its first packet left 1000."),
    "the first 1 s later": (began(0, SECOND_NS), FIRST),
    "the second 1 s sooner": (began(1, -SECOND_NS), f"{LAST}its first packet left 1000."),
    "the second 1 s later": (began(1, SECOND_NS), LAST),
    "the first 1 % longer": (times(0, 1.01), f"{FIRST}the load ended after "),
    "the second 1 % longer": (times(1, 1.01), f"{LAST}the load ended after "),
    "a request of the first in the second": (moved(0), LAST),
    "a request of the second in the first": (moved(1), LAST),
    "the first told twice": (repeated, f"{LAST}the load ended after "),
    "a request of the first too few": (request_dropped, "the client names 13"),
}


@pytest.mark.parametrize(
    ("alter", "says"), [pytest.param(*each, id=name) for name, each in ALTERED.items()]
)
def test_what_was_observed(done: Done, alter: Alter, says: str, tmp_path: Path) -> None:
    assert_unproven(done.judge(alter, tmp_path), says)


def test_without_a_fault_it_is_proven(done: Done, tmp_path: Path) -> None:
    assert_ok(done.judge(lambda _: None, tmp_path))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda at_ns, began_ns: at_ns if at_ns < began_ns else None, f"{LAST}the client sent no"),
        (
            lambda at_ns, began_ns: at_ns if at_ns < began_ns else at_ns + SECOND_NS,
            f"{LAST}its first packet left 1000.",
        ),
        (lambda at_ns, began_ns: None if at_ns < began_ns else at_ns, f"{FIRST}the client sent no"),
    ],
    ids=["second missing", "second later", "first missing"],
)
def test_what_was_captured(
    done: Done, change: Callable[[int, int], int | None], says: str, tmp_path: Path
) -> None:
    load = load_of(done.record)
    assert load is not None and load.began_ns is not None
    folder = copytree(done.folder, tmp_path / "results")
    capture = folder / "trials" / done.record.trial_id / CAPTURE_FILE
    frames = [
        (at_ns, packet.frame)
        for packet in read_capture(capture).packets
        if (at_ns := change(packet.at_ns, load.began_ns)) is not None
    ]
    write_frames(capture, frames)
    assert_unproven(replace(done, folder=folder).judge(lambda _: None, tmp_path), says)


VISIT, LAB = "client/chromium/visit.py", "kinds/page_lab.py"
PLANTED: list[tuple[str, str, str, str, str]] = [
    ("cache not emptied", VISIT, "if not errand.keep_cache:", "if errand.keep_cache:",
     "3 requests of the recording not made"),
    ("a visit too many", VISIT, "< errand.visits", "<= errand.visits",
     "the page was visited 3 times, asked was 2"),
    ("a visit too few", VISIT, "return tuple(visits)", "return tuple(visits[1:])",
     "the page was visited 1 times, asked was 2"),
    ("idle for less", LAB, "condition.idle_s)", "condition.idle_s / 2)",
     "visit 2 of 2: idle_s = 20, but it began "),
    ("not idle", VISIT, "if errand.idle is not None:", "if errand.idle is None:",
     "visit 2 of 2: idle_s = 20, but it began "),
    ("a beginning too soon", VISIT, "began_ns = time.time_ns()",
     "began_ns = time.time_ns() - 10**9", "visit 1 of 2: its first packet left 1000."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "old", "new", "says"),
    [pytest.param(*fault, id=name) for name, *fault in PLANTED],
)
def test_a_fault_in_guest_code(
    house: House, plant: Plant, module: str, old: str, new: str, says: str
) -> None:
    plant(module, old, new)
    (record,) = house.run(**KNOBS | {"page": "cached", "idle_s": 20}).records
    assert record.outcome in ("unproven", "failed")
    assert record.reason is not None and says in record.reason, record.reason


def assert_unproven(record: Record, says: str) -> None:
    """The visits prove no number, and the reason names the fault."""
    assert record.outcome == "unproven"
    assert record.reason is not None and says in record.reason, record.reason
