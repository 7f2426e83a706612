"""A page load of the model from what was seen of a visit: its milestones, and what it cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.client.chromium import read_load
from testbed.client.chromium.cost import (
    Spent,
    Stopwatch,
    cost_of,
    cpu_of,
    longest_queued,
    metrics_of,
    read_queues,
)
from testbed.client.chromium.milestones import add_up_shifts, milestones_of
from testbed.client.chromium.traffic import BrowserTraffic
from testbed.client.chromium.visit import Visit
from testbed.client.interface import LoadError, LoadOrder
from testbed.model import PageLoad, PageTiming
from tests.client.chromium.test_traffic import answered, finished, sent
from tests.client.sites import Site

START_S = 10.0
ROOT = "http://www.page.test/"


@pytest.fixture
def order(site: Site, tmp_path: Path) -> LoadOrder:
    return LoadOrder(archive=site.archive(), prefix=(), tfo=True, think_time="none",
                     bundle=tmp_path, scratch=tmp_path, out=tmp_path, timeout_s=1.0)  # fmt: skip


def read(order: LoadOrder, *events: dict[str, Any]) -> PageLoad:
    traffic = BrowserTraffic()
    traffic.add(events)
    seen = Visit(
        *(50.5, 0, START_S, traffic),
        milestones_of(None, 5.0),
        False,
        None,
        [],
        {"cpu_s": 1.0},
    )
    return read_load(seen, "HeadlessChrome/1", order)


def test_a_request_that_had_not_ended_has_failed(order: LoadOrder) -> None:
    late = "http://www.page.test/s.js"
    root = (sent("1", ROOT, 10.0), answered("1", 10.01), finished("1", 10.02))
    load = read(order, *root, sent("2", late, 10.03), answered("2", 10.04))
    assert (load.plt_ms, load.client_version) == (50.5, "HeadlessChrome/1")
    assert load.failed == (late,)
    assert (load.requests[1].status, load.requests[1].end_ms) == (0, 50.5)
    assert load.browser == {"cpu_s": 1.0}
    assert (load.ttfb_ms, load.cls) == (5.0, None)
    assert "http://www.page.test/s.css" in load.missing


def test_what_begins_after_the_load_event_need_not_end(order: LoadOrder) -> None:
    root = (sent("1", ROOT, 10.0), answered("1", 10.01), finished("1", 10.02))
    load = read(order, *root, sent("2", "http://www.page.test/other", 10.06))
    assert (load.failed, load.extra) == ((), ())
    assert [request.start_ms > load.plt_ms for request in load.requests] == [False, True]
    assert load.after_load == load.requests[1:]
    due = read(order, *root, sent("2", "http://www.page.test/s.css", 10.06))
    assert due.failed == ("http://www.page.test/s.css",)


def test_what_a_request_waited_for(order: LoadOrder) -> None:
    timing = {"dnsStart": 0, "dnsEnd": 20.5, "connectStart": 20.5, "connectEnd": 120.75}
    root = (sent("1", ROOT, 10.0), answered("1", 10.01, timing=timing), finished("1", 10.02))
    load = read(order, *root, sent("2", f"{ROOT}s.css", 10.0))
    assert (load.requests[0].dns_ms, load.requests[0].connect_ms) == (20.5, 100.25)
    assert (load.requests[1].dns_ms, load.requests[1].connect_ms) == (None, None)


def test_no_request_at_all(order: LoadOrder) -> None:
    with pytest.raises(LoadError, match="no request"):
        read(order)


NOTHING: dict[str, Any] = {
    **dict.fromkeys(("ttfb_ms", "fp_ms", "fcp_ms", "lcp_ms", "cls", "dcl_ms")),
    **dict.fromkeys(("lcp_url", "lcp_element", "long_tasks", "tbt_ms")), "timings": (),
}  # fmt: skip


def test_a_page_that_shows_something() -> None:
    paints = {"first-paint": 80.0, "first-contentful-paint": 84.0}
    seen = {"paints": paints, "largest": [84.0, 120.5], "shifts": [[90.0, 0.25]]}
    assert milestones_of(seen, 40.5) == NOTHING | {"ttfb_ms": 40.5, "fp_ms": 80.0, "fcp_ms": 84.0,
                                                   "lcp_ms": 120.5, "cls": 0.25}  # fmt: skip


def test_a_page_that_times_itself() -> None:
    told = {"paints": {"first-contentful-paint": 84.0}, "largest": [84.0], "shifts": None,
            "lcp": ["", "main > p"], "navigation": {"domContentLoadedEventEnd": 70.5},
            "tasks": [[20.0, 60.0], [60.0, 100.0], [200.0, 51.5]],
            "timings": [["mark", "app", 61.0, 0, ""]]}  # fmt: skip
    found = milestones_of(told, 0.0, real_time=True)
    assert (found["dcl_ms"], found["lcp_url"], found["lcp_element"]) == (70.5, None, "main > p")
    assert found["timings"] == (PageTiming("mark", "app", 61.0, 0, ""),)
    # Of the second 76 ms are behind the paint of contents.
    assert (found["long_tasks"], found["tbt_ms"]) == (3, 27.5)
    assert milestones_of(told, 0.0)["tbt_ms"] is None


def test_an_empty_page_paints_nothing_and_does_not_shift() -> None:
    found = milestones_of({"paints": {}, "largest": [], "shifts": []}, 40.5)
    assert (found["fp_ms"], found["fcp_ms"], found["lcp_ms"], found["cls"]) == (None,) * 3 + (0.0,)


def test_a_browser_or_a_page_that_does_not_say() -> None:
    nothing = NOTHING
    assert milestones_of(None, 0.0) == nothing
    assert milestones_of({"paints": {}, "largest": None, "shifts": None}, 0.0) == nothing


@pytest.mark.parametrize(
    ("shifts", "expected"),
    [
        ([], 0.0),
        ([(0.0, 0.5), (900.0, 0.25)], 0.75),
        ([(0.0, 0.5), (1001.0, 0.25)], 0.5),  # a second without any ends a window
        ([(1000.0 * n, 0.125) for n in range(10)], 0.75),  # and so do five seconds
        ([(900.0, 0.25), (0.0, 0.5)], 0.75),  # in whatever order they are told
    ],
)
def test_the_largest_window_of_shifts_counts(
    shifts: list[tuple[float, float]], expected: float
) -> None:
    assert add_up_shifts(shifts) == expected


METRICS = {"NavigationStart": 9.0, "TaskDuration": 0.5, "ScriptDuration": 0.25}


def write_queues(proc: Path, **threads: int) -> None:
    for name, queued_ns in threads.items():
        process, _, thread = name.removeprefix("t").partition("_")
        folder = proc / process / "task" / thread
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedstat").write_text(f"1000 {queued_ns} 7\n")


def test_answers_of_the_browser() -> None:
    processes = [{"id": 7, "cpuTime": 0.25}, {"id": 9, "cpuTime": 0.5}]
    assert cpu_of({"processInfo": processes}) == {7: 0.25, 9: 0.5}
    assert metrics_of({"metrics": [{"name": "TaskDuration", "value": 0.5}]}) == {
        "TaskDuration": 0.5
    }


def test_in_virtual_time_only_the_browsers_own_account() -> None:
    cost = cost_of(METRICS, {7: 0.25, 9: 0.5})
    assert cost == {"cpu_s": 0.75, "task_s": 0.5, "script_s": 0.25}


def test_in_real_time_what_was_spent_before_does_not_count(tmp_path: Path) -> None:
    write_queues(tmp_path, t7_7=1_000_000_000, t7_8=0)
    before = Spent({7: 0.25}, read_queues([7, 9], tmp_path), tmp_path)
    write_queues(tmp_path, t7_7=1_500_000_000, t7_8=250_000_000, t9_9=750_000_000)
    cost = cost_of(METRICS, {7: 0.5, 9: 0.5}, before)
    assert (cost["cpu_s"], cost["load_cpu_s"], cost["queued_s"]) == (1.0, 0.75, 0.75)


def test_threads_that_have_ended_are_left_out(tmp_path: Path) -> None:
    write_queues(tmp_path, t7_7=5)
    (tmp_path / "7" / "task" / "8").mkdir()
    assert read_queues([7, 8], tmp_path) == {"7/7": 5e-9}
    assert longest_queued({"7/7": 5e-9}, {}) == 0.0


def test_a_stopwatch_in_virtual_time_says_nothing() -> None:
    for real_time, names in ((False, set()), (True, {"launch_s", "wall_s", "driver_cpu_s"})):
        stopwatch = Stopwatch(real_time=real_time)
        stopwatch.split("launch_s")
        stopwatch.split()
        assert set(stopwatch.read()) == names
