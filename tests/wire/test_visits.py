"""Visits of a load in its capture: their windows, and what contradicts how often and when."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.model import PageLoad, RequestTiming
from testbed.wire.visits import FOREVER_NS, check_visits, split_visits
from tests.wire.packets import CLIENT, SERVER, START_NS, SYN, Capture

CLIENTS = [socket.inet_aton(CLIENT)]
BEGAN_MS, IDLE_S, AGAIN_MS = 10.0, 5.0, 6000.0
ONE = "visit 1 of 2: "
OTHER = "visit 2 of 2: "


def a_visit(began_ms: float | None, *ends_ms: float, plt_ms: float = 900.0) -> PageLoad:
    """A visit whose requests ended so long after its navigation."""
    requests = tuple(RequestTiming("http://a/", 200, 0.0, end, 10, "1") for end in ends_ms)
    began_ns = None if began_ms is None else START_NS + round(began_ms * 1e6)
    return PageLoad("chromium", "1", plt_ms, requests, began_ns=began_ns)


def two(again_ms: float = AGAIN_MS) -> PageLoad:
    """Two visits; the first had its load event after 900 ms, its last request after 980."""
    return replace(a_visit(again_ms, 100), earlier=(a_visit(BEGAN_MS, 100, 980),))


def said(folder: Path, load: PageLoad, *sent_ms: float, visits: int = 2, **more: bool) -> list[str]:
    """What is held against the visits when the client sent at those moments."""
    capture = Capture()
    # What the server says is of no visit.
    capture.add((SERVER, 80), (CLIENT, 2000), SYN, 1, at_ms=0)
    for at_ms in sent_ms:
        capture.add((CLIENT, 2000), (SERVER, 80), SYN, round(at_ms), at_ms=at_ms)
    read = capture.read(folder)
    return list(
        check_visits(load, visits, IDLE_S, read, CLIENTS, **{"real_time": False} | more)
    )  # fmt: skip


def test_an_only_visit_is_all_of_its_capture(tmp_path: Path) -> None:
    (window,) = split_visits(a_visit(None, 100))
    assert window.holds(0) and window.holds(FOREVER_NS - 1) and window.is_under_way(START_NS)
    assert window.say("late") == "late"
    assert said(tmp_path, a_visit(None, 100), visits=1) == []


def test_windows_of_two_visits() -> None:
    first, last = split_visits(two())
    began, again = (START_NS + round(at_ms * 1e6) for at_ms in (BEGAN_MS, AGAIN_MS))
    assert [first.holds(at) for at in (began - 1, began, again - 1, again)] == [
        False, True, True, False,
    ]  # fmt: skip
    assert last.holds(again) and last.holds(FOREVER_NS - 1) and not last.holds(again - 1)
    # By its last request, which ended behind the load event; the other by its load event.
    settled, settled_last = began + 980_000_000, again + 900_000_000
    assert first.is_under_way(settled) and not first.is_under_way(settled + 1)
    assert last.is_under_way(settled_last) and not last.is_under_way(settled_last + 1)
    assert [first.say("late"), last.say("late")] == [f"{ONE}late", f"{OTHER}late"]


def test_the_first_packet_of_each_visit_is_the_client_s(tmp_path: Path) -> None:
    capture = Capture()
    for at_ms in (11, 20, 6001):
        capture.add((SERVER, 80), (CLIENT, 2000), SYN, 1, at_ms=at_ms)
        capture.add((CLIENT, 2000), (SERVER, 80), SYN, at_ms, at_ms=at_ms + 1)
    read = capture.read(tmp_path)
    firsts = [window.first_packet_ns(read, CLIENTS) for window in split_visits(two())]
    assert firsts == [START_NS + at_ms * 1_000_000 for at_ms in (12, 6002)]


def test_visits_that_began_with_their_packets(tmp_path: Path) -> None:
    assert said(tmp_path, two(), 10, 14, 6004.9) == []


def test_a_late_first_packet(tmp_path: Path) -> None:
    late = f"{OTHER}its first packet left 5.100 ms after it began"
    assert said(tmp_path, two(), 10, 6005.1) == [late]
    assert said(tmp_path, two(), 10, 6005.1, real_time=True) == []
    # What was sent before a visit is not its own.
    assert said(tmp_path, two(), 9, 6000) == [f"{ONE}the client sent nothing"]


@pytest.mark.parametrize(("sent_ms", "name"), [(10, OTHER), (6000, ONE)])
def test_a_visit_in_which_nothing_was_sent(tmp_path: Path, sent_ms: int, name: str) -> None:
    assert said(tmp_path, two(), sent_ms) == [f"{name}the client sent nothing"]


@pytest.mark.parametrize(("asked", "had"), [(1, 2), (3, 2), (2, 1)])
def test_another_number_of_visits(tmp_path: Path, asked: int, had: int) -> None:
    load = two() if had == 2 else a_visit(None, 100)
    assert said(tmp_path, load, 10, 6000, visits=asked) == [
        f"the page was visited {had} times, asked was {asked}"
    ]


@pytest.mark.parametrize(
    ("again_ms", "idle"), [(5990.0, []), (5980.0, ["4.990"]), (5000.0, ["4.010"])]
)
def test_an_idle_time_that_was_cut(tmp_path: Path, again_ms: float, idle: list[str]) -> None:
    """It begins with the end of the first visit's last request."""
    assert said(tmp_path, two(again_ms), 10, again_ms) == [
        f"{OTHER}idle_s = 5, but it began {after} s after the last" for after in idle
    ]
