"""What a browser tells, against its log, DevTools and packets: each number, less and more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.client.chromium.milestones import milestones_of
from testbed.model import Condition, LinkSpec, PageLoad, PageTiming, RequestTiming, TcpSpec, Trial
from testbed.model.observation import Observation
from testbed.proof.browser import (
    check_load_event,
    check_log,
    check_paints,
    check_phases,
    list_as_told,
)
from testbed.proof.check import Check, find_problems
from testbed.proof.conduct import check_connections, check_requests_sent, check_scanner
from testbed.proof.evidence import Evidence
from testbed.proof.visits import split_visits
from tests.capture.packets import ACK, CLIENT, PUSH, SERVER, Capture, Visit

ROOT, STYLE, SCRIPT = (f"http://www.page.test/{name}" for name in ("", "s.css", "s.js"))
AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "HeadlessChrome/150.0.1.2 Safari/537.36"
)
HEAD_BYTES = 400
PICTURE = "data:image/png;base64"
TIMINGS = (("mark", "app", 61.0, 0.0, ""), ("measure", "boot", 61.0, 70.0, ""),
           ("element", "hero", 144.0, 0.0, SCRIPT), ("server", "db", 50.0, 53.2, ROOT))  # fmt: skip
Alter = Callable[[dict[str, Any]], object]


def _entry(url: str, kind: str, at_ms: float, head_ms: float, end_ms: float) -> dict[str, Any]:
    found = {"_initiator_type": "parser", "_initiator": ROOT, "_renderBlocking": "blocking",
             "_initiator_line": 2} if url != ROOT else {"_initiator_type": "other"}  # fmt: skip
    opens = 20.0 if url == ROOT else -1
    sent_ms = at_ms + max(0.0, opens)
    return {
        "startedDateTime": f"2023-11-14T22:15:21.{round(at_ms):03}Z",
        "request": {"method": "GET", "url": url, "httpVersion": "http/1.1", "bodySize": 0,
                    "headersSize": HEAD_BYTES, "headers": [{"name": "User-Agent", "value": AGENT}]},
        "response": {"status": 200, "_transferSize": 900, "content": {"mimeType": "text/html"}},
        "timings": {"blocked": 0.0, "dns": -1, "connect": opens, "send": 0.0,
                    "wait": head_ms - sent_ms, "receive": end_ms - head_ms},
        "serverIPAddress": SERVER, "_resourceType": kind,
    } | found  # fmt: skip


def _log() -> dict[str, Any]:
    """A document from 0 to 60 ms, and what it names from 60 to 100 and to 140 ms."""
    seen = {"paints": {"first-paint": 144, "first-contentful-paint": 144}, "largest": [144],
            "lcp": [PICTURE, "main > img"], "navigation": {"domContentLoadedEventEnd": 140.4},
            "tasks": [[60, 80], [140, 70]], "timings": [list(each) for each in TIMINGS],
            "shifts": [[150, 0.25]]}  # fmt: skip
    timeline = [{"type": "largest-contentful-paint", "ms": 144.0, "size": 9, "url": PICTURE},
                {"type": "layout-shift", "ms": 150.0, "value": 0.25}]  # fmt: skip
    document = _entry(ROOT, "document", 0, 50, 60)
    document["timings"] |= {"ssl": 12.0}
    document["response"]["headers"] = [{"name": "Server-Timing", "value": "db; dur=53.2, edge"}]
    style = _entry(STYLE, "stylesheet", 60, 90, 100)
    style["timings"] |= {"_queued": 2.0, "blocked": 1.0, "wait": 29.0}
    return {
        "pages": [{
            "startedDateTime": "2023-11-14T22:15:21.000Z", "title": ROOT, "_seen": seen,
            "pageTimings": {"onContentLoad": 140.5, "onLoad": 141.0, "_loadEventFired": 141.05},
            "_timeline": timeline,
        }],
        "entries": [document, style, _entry(SCRIPT, "script", 60, 130, 140)],
    }  # fmt: skip


def _load() -> PageLoad:
    requests = (
        RequestTiming(ROOT, 200, 0.0, 60.0, 900, "1", "other", None, 20.0, 0.0, 0.0, 12.0),
        RequestTiming(STYLE, 200, 58.0, 100.0, 900, "1", f"parser {ROOT}", None, None, 2.0, 1.0),
        RequestTiming(SCRIPT, 200, 60.0, 140.0, 900, "2", f"parser {ROOT}"),
    )
    return PageLoad("chromium", "HeadlessChrome/150.0.1.2", 141.0, requests, ttfb_ms=50.0,
                    fp_ms=144.0, fcp_ms=144.0, lcp_ms=144.0, cls=0.25, dcl_ms=140.4,
                    lcp_url=PICTURE, lcp_element="main > img",
                    timings=tuple(PageTiming(*each) for each in TIMINGS))  # fmt: skip


def _capture() -> Capture:
    capture = Capture()
    for port, asked, came in ((2000, (20.0, 61.0), (50.0, 60.0, 90.0, 100.0)),
                              (2001, (60.0,), (130.0, 140.0))):  # fmt: skip
        visit = Visit(capture, port)
        visit.syn(b"", at_ms=0)
        visit.synack(0, at_ms=20)
        ends = (CLIENT, port), (SERVER, 80)
        for number, at_ms in enumerate(asked):
            seq = visit.isn + 1 + HEAD_BYTES * number
            capture.add(*ends, ACK | PUSH, seq, 5001, bytes(HEAD_BYTES), b"", at_ms)
        for number, at_ms in enumerate(came):
            capture.add(*ends[::-1], ACK, 5001 + 450 * number, seq, bytes(450), b"", at_ms)
    capture.packets.sort()
    return capture


CHECKS: tuple[Check, ...] = (
    check_log, check_load_event, check_phases, check_paints, check_requests_sent,
    check_connections, check_scanner,
)  # fmt: skip


def seen_of(
    tmp_path: Path, load: PageLoad, log: dict[str, Any], kernel: str = "virtual"
) -> Evidence:
    (tmp_path / "load.har").write_text(json.dumps({"log": log}))
    body = tmp_path / "document"
    body.write_bytes(b"<html>\n<link>\n\n<body>")
    named = [SimpleNamespace(url=url, how="parser", carrier=ROOT) for url in (STYLE, SCRIPT)]
    root = SimpleNamespace(url=ROOT, how="root", carrier=None, body=body, headers=())
    page = SimpleNamespace(root_url=ROOT, entries=(root, *named), device=None)
    capture = _capture()
    shown = {
        "quic": (), "traces": {}, "visits": split_visits(load), "capture": capture.read(tmp_path),
        "flows": capture.flows(tmp_path), "hosts": {SERVER: "www.page.test"}, "archive": page,
    }  # fmt: skip
    condition = Condition("p", "chromium", LinkSpec(), TcpSpec())
    trial = Trial(condition, 0, 0, kernel, "7.3")
    clients = (bytes(map(int, CLIENT.split("."))),)
    return Evidence(trial, Observation(load=load), tmp_path, clients, shown=shown)


def found(tmp_path: Path, load: PageLoad, log: dict[str, Any]) -> tuple[str, ...]:
    return find_problems(seen_of(tmp_path, load, log), CHECKS)


def test_an_honest_load(tmp_path: Path) -> None:
    seen = seen_of(tmp_path, _load(), _log())
    assert all(check.speaks_of(seen) for check in CHECKS)
    assert find_problems(seen, CHECKS) == ()
    assert list_as_told(seen) == ("lcp_element", "timings")


def test_a_load_in_real_time_has_long_tasks(tmp_path: Path) -> None:
    seen = seen_of(tmp_path, replace(_load(), long_tasks=2, tbt_ms=16.0), _log(), kernel="host")
    assert find_problems(seen, (check_log,)) == ()
    assert list_as_told(seen) == ("lcp_element", "long_tasks", "tbt_ms", "timings")
    for forged in ({"long_tasks": 1}, {"tbt_ms": 19.0}, {"tbt_ms": None}):
        told = replace(_load(), **({"long_tasks": 2, "tbt_ms": 16.0} | forged))
        assert find_problems(seen_of(tmp_path, told, _log(), kernel="host"), (check_log,)) != ()


@pytest.mark.parametrize("forged", [
    {"lcp_url": ROOT}, {"lcp_url": None}, {"lcp_element": "p"}, {"dcl_ms": None},
    {"long_tasks": 0}, {"timings": ()}, {"timings": (PageTiming(*TIMINGS[0]),)},
])  # fmt: skip
def test_each_word_of_what_a_page_told(tmp_path: Path, forged: dict[str, Any]) -> None:
    assert found(tmp_path, replace(_load(), **forged), _log()) != ()


@pytest.mark.parametrize(
    ("seen", "says"),
    [({"lcp": [ROOT, "main > img"]}, "the largest paint was of"),
     ({"lcp": ["", "main > img"]}, "the largest paint was of None"),
     ({"navigation": {"domContentLoadedEventEnd": 120.0}}, "DOMContentLoaded ended after 120.000"),
     ({"timings": [["element", "hero", 100.0, 0.0, SCRIPT]]}, f"{SCRIPT} was painted after 100"),
     ({"timings": [["server", "db", 50.0, 12.0, ROOT]]}, "it says db 12 ms"),
     ({"timings": [["server", "cpu", 50.0, 53.2, ROOT]]}, "it says cpu 53.2 ms")],
)  # fmt: skip
def test_what_page_and_log_tell_alike_and_nothing_else_shows(
    tmp_path: Path, seen: dict[str, Any], says: str
) -> None:
    log = _log()
    log["pages"][0]["_seen"] |= seen
    own = milestones_of(log["pages"][0]["_seen"], 50.0)
    assert says in " ".join(found(tmp_path, replace(_load(), **own), log))


def test_a_server_may_time_two_answers_of_one_address(tmp_path: Path) -> None:
    log, load = _log(), _load()
    again = json.loads(json.dumps(log["entries"][0]))
    again["response"]["headers"] = [{"name": "server-timing", "value": "db;dur=1"}]
    own = tuple(replace(each, lasted_ms=1.0) if each.kind == "server" else each
                for each in load.timings)  # fmt: skip
    told = [[e.kind, e.name, e.start_ms, e.lasted_ms, e.url] for e in own]
    log["pages"][0]["_seen"]["timings"] = told
    load = replace(load, timings=own)
    assert any("it says db 1 ms" in each for each in found(tmp_path, load, log))
    log["entries"].append(again)
    load = replace(load, requests=(*load.requests, load.requests[0]))
    assert not any("it says db" in each for each in found(tmp_path, load, log))


def test_an_older_log_has_fewer_moments(tmp_path: Path) -> None:
    log, load = _log(), _load()
    for name in ("lcp", "navigation", "tasks", "timings"):
        del log["pages"][0]["_seen"][name]
    old = replace(load, dcl_ms=None, lcp_url=None, lcp_element=None, timings=())
    assert found(tmp_path, old, log) == ()


def _numbers(of: object) -> Iterable[str]:
    for field in fields(of):  # type: ignore[arg-type]
        value = getattr(of, field.name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value:
            yield field.name


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("name", list(_numbers(_load())))
def test_each_number_of_a_load(tmp_path: Path, name: str, factor: float) -> None:
    load = _load()
    wrong = replace(load, **{name: getattr(load, name) * factor})
    assert found(tmp_path, wrong, _log()) != ()


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1])
@pytest.mark.parametrize(
    ("place", "name"),
    [(place, name) for place, each in enumerate(_load().requests) for name in _numbers(each)],
)
def test_each_number_of_a_request(tmp_path: Path, place: int, name: str, factor: float) -> None:
    load = _load()
    requests = list(load.requests)
    value = getattr(requests[place], name) * factor
    requests[place] = replace(requests[place], **{name: value})
    assert found(tmp_path, replace(load, requests=tuple(requests)), _log()) != ()


def _told(log: dict[str, Any], **paints: float) -> None:
    names = {"fp_ms": "first-paint", "fcp_ms": "first-contentful-paint"}
    seen = log["pages"][0]["_seen"]
    seen["paints"] |= {names[name]: value for name, value in paints.items() if name in names}
    seen["largest"] = [paints.get("lcp_ms", 144)]


BOTH: dict[str, tuple[dict[str, float], str]] = {
    "paint before the look-up": ({"fp_ms": 5, "fcp_ms": 5}, "the first paint was after 5 ms"),
    "paint before the style sheet": ({"fp_ms": 115, "fcp_ms": 115}, "the first paint was after"),
    "paint of another visit": ({"fcp_ms": 180}, "contents were painted after 180 ms"),
    "largest behind the load": ({"lcp_ms": 2904}, "the largest paint was after 2904 ms"),
}


@pytest.mark.parametrize(("paints", "says"), BOTH.values(), ids=list(BOTH))
def test_a_paint_that_page_and_log_tell_alike(
    tmp_path: Path, paints: dict[str, float], says: str
) -> None:
    log = _log()
    _told(log, **paints)
    problems = found(tmp_path, replace(_load(), **paints), log)  # type: ignore[arg-type]
    assert any(says in each for each in problems), problems


def test_the_document_s_end_for_the_load_event(tmp_path: Path) -> None:
    log = _log()
    timings = log["pages"][0]["pageTimings"]
    for plt_ms in (61.0, 100.0, 138.0):
        timings |= {"onLoad": plt_ms, "_loadEventFired": plt_ms, "onContentLoad": 60.0}
        problems = found(tmp_path, replace(_load(), plt_ms=plt_ms), log)
        assert any("which holds the load event back" in each for each in problems), problems


def test_a_paint_that_nothing_else_shows_is_as_told(tmp_path: Path) -> None:
    log = _log()
    log["pages"][0]["_timeline"][0]["ms"] = 160.0
    log["pages"][0]["_seen"]["largest"] = [160]
    seen = seen_of(tmp_path, replace(_load(), lcp_ms=160.0), log)
    assert find_problems(seen, CHECKS) == ()
    assert list_as_told(seen) == ("fp_ms", "fcp_ms", "lcp_element", "timings")


def _phases(log: dict[str, Any], **waits: float) -> None:
    log["entries"][0]["timings"] |= waits


def _agent(log: dict[str, Any]) -> None:
    for entry in log["entries"]:
        entry["request"]["headers"] = [{"name": "User-Agent", "value": "x"}]


def _header(log: dict[str, Any]) -> None:
    for entry in log["entries"]:
        entry["request"]["headers"].append({"name": "X-Pad", "value": "0" * 600})


def _size(log: dict[str, Any]) -> None:
    log["entries"][1]["request"]["headersSize"] -= 300


ALTERED: dict[str, tuple[Alter, str]] = {
    "a handshake of half the time": (
        lambda log: _phases(log, connect=10.0),
        "was not opened when",
    ),
    "an answer at another time": (lambda log: _phases(log, receive=4.0), "did not begin when data"),
    "another user agent": (_agent, "its user agent is ['x']"),
    "a header of its own": (_header, "sent with X-Pad, which Chromium does not send"),
    "other sizes than left": (_size, "more bytes of requests left"),
}


@pytest.mark.parametrize(("alter", "says"), ALTERED.values(), ids=list(ALTERED))
def test_a_log_that_packets_contradict(tmp_path: Path, alter: Alter, says: str) -> None:
    log = _log()
    alter(log)
    problems = found(tmp_path, _load(), log)
    assert any(says in each for each in problems), problems


def test_a_browser_without_its_preload_scanner(tmp_path: Path) -> None:
    """It asks for a script when the style sheet before it has come."""
    load, log = _load(), _log()
    late = replace(load.requests[2], start_ms=100.0)
    log["entries"][2] = _entry(SCRIPT, "script", 100, 130, 140)
    seen = seen_of(tmp_path, replace(load, requests=(*load.requests[:2], late)), log)
    (problem,) = check_scanner(seen)
    assert problem.startswith(f"{SCRIPT} was asked for after 100.000 ms")
