"""Requests from the browser's events: redirects, caches, silence, what a load still owes."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.client.chromium.traffic import BrowserTraffic, urls_asked

ROOT = "http://www.page.test/"


def sent(number: str, url: str, at: float, **more: Any) -> dict[str, Any]:
    params = {"requestId": number, "timestamp": at, "request": {"url": url, "method": "GET"},
              "initiator": {"type": "parser", "url": ROOT}, "type": "Image"}  # fmt: skip
    return {"method": "Network.requestWillBeSent", "params": params | more}


def answered(number: str, at: float, status: int = 200, **more: Any) -> dict[str, Any]:
    response = {"status": status, "protocol": "http/1.1", "connectionId": 40} | more
    params = {"requestId": number, "timestamp": at, "response": response}
    return {"method": "Network.responseReceived", "params": params}


def told(name: str, number: str, at: float, **more: Any) -> dict[str, Any]:
    return {"method": f"Network.{name}", "params": {"requestId": number, "timestamp": at} | more}


def finished(number: str, at: float, size: int = 9) -> dict[str, Any]:
    return told("loadingFinished", number, at, encodedDataLength=size)


@pytest.fixture
def traffic() -> BrowserTraffic:
    return BrowserTraffic()


def test_one_request(traffic: BrowserTraffic) -> None:
    timing = {"dnsStart": 1.0, "dnsEnd": 21.5, "connectStart": -1, "connectEnd": -1}
    traffic.add([sent("1", ROOT, 5.0), answered("1", 5.5, timing=timing), finished("1", 6.0)])
    (request,) = traffic.requests()
    assert (request.url, request.method, request.status) == (ROOT, "GET", 200)
    assert (request.start_s, request.end_s, request.transfer_bytes) == (5.0, 6.0, 9)
    assert (request.dns_ms, request.connect_ms) == (20.5, None)
    assert (request.queued_ms, request.blocked_ms, request.tls_ms) == (None, None, None)
    assert (request.connection, request.protocol) == ("1", "http/1.1")
    assert request.initiator == f"parser {ROOT}"


def test_sockets_are_no_requests(traffic: BrowserTraffic) -> None:
    told_of = told("webSocketCreated", "2", 5.0, url="wss://live.test/socket")
    traffic.add([told_of])
    assert (traffic.sockets, traffic.requests()) == (["wss://live.test/socket"], [])


@pytest.mark.parametrize(
    ("starts", "blocked_ms"),
    [((2.5, 30.0, 90.0), 2.5), ((-1, 30.0, 90.0), 30.0), ((-1, -1, 90.0), 90.0)],
)
def test_what_a_request_waited_for_before_it_left(
    traffic: BrowserTraffic, starts: tuple[float, ...], blocked_ms: float
) -> None:
    names = ("dnsStart", "connectStart", "sendStart")
    timing = dict(zip(names, starts, strict=True)) | {"sslStart": 50.0, "sslEnd": 80.0}
    for place, requested_s in enumerate((5.25, 4.75)):
        number = str(place)
        timing["requestTime"] = requested_s
        traffic.add([sent(number, ROOT, 5.0), answered(number, 5.5, timing=dict(timing))])
    later, sooner = traffic.requests()
    assert (later.queued_ms, later.blocked_ms, later.tls_ms) == (250.0, blocked_ms, 30.0)
    assert sooner.queued_ms == 0.0


def test_connections_are_numbered_by_first_use(traffic: BrowserTraffic) -> None:
    for number, connection in (("1", 900), ("2", 14), ("3", 900), ("4", 0)):
        traffic.add([sent(number, ROOT, 1.0), answered(number, 2.0, connectionId=connection)])
    assert [request.connection for request in traffic.requests()] == ["1", "2", "1", None]


def test_a_redirect_is_two_requests(traffic: BrowserTraffic) -> None:
    away = {"status": 302, "protocol": "http/1.1", "connectionId": 7, "encodedDataLength": 300}
    target = f"{ROOT}target"
    traffic.add([sent("1", ROOT, 1.0), sent("1", target, 2.0, redirectResponse=away)])
    traffic.add([answered("1", 3.0), finished("1", 4.0)])
    first, second = traffic.requests()
    assert (first.status, first.end_s, first.transfer_bytes) == (302, 2.0, 300)
    assert (second.url, second.status, second.end_s) == (target, 200, 4.0)


def test_an_initiator_without_a_url_is_the_innermost_script(traffic: BrowserTraffic) -> None:
    stack = {"callFrames": [{"url": f"{ROOT}s.js"}, {"url": ROOT}]}
    traffic.add([sent("1", ROOT, 1.0, initiator={"type": "script", "stack": stack})])
    traffic.add([sent("2", ROOT, 1.0, initiator={"type": "other"})])
    assert [one.initiator for one in traffic.requests()] == [f"script {ROOT}s.js", "other"]


@pytest.mark.parametrize("source", ["fromDiskCache", "fromPrefetchCache", "fromServiceWorker"])
def test_what_a_cache_answered_did_not_go_out(traffic: BrowserTraffic, source: str) -> None:
    traffic.add([sent("1", ROOT, 1.0), answered("1", 2.0, **{source: True}), finished("1", 3.0)])
    traffic.add([sent("2", ROOT, 1.0), told("requestServedFromCache", "2", 2.0)])
    traffic.add([sent("3", "data:text/plain,x", 1.0)])
    assert traffic.requests() == []


def test_what_a_kept_cache_answered_is_owed_no_more() -> None:
    events = [sent("1", ROOT, 1.0), answered("1", 2.0, fromDiskCache=True), finished("1", 3.0)]
    for keeps in (False, True):
        traffic = BrowserTraffic(kept=() if keeps else None)
        traffic.add(events)
        assert traffic.requests() == [] and traffic.cached() == (ROOT,)
        assert traffic.is_settled(5.0, [ROOT]) is keeps
        assert not traffic.is_settled(5.0, [ROOT, f"{ROOT}s.css"])


def test_what_we_blocked_did_not_go_out_and_is_not_waited_for(traffic: BrowserTraffic) -> None:
    icon = f"{ROOT}favicon.ico"
    end = told("loadingFailed", "1", 2.0, errorText="net::ERR_BLOCKED", blockedReason="inspector")
    traffic.add([sent("1", icon, 1.0), end])
    assert traffic.requests() == []
    assert traffic.is_settled(5.0, [])


def test_a_failure_has_no_status_but_where_nothing_was_to_come(traffic: BrowserTraffic) -> None:
    for number, status in (("1", 200), ("2", 204)):
        end = told("loadingFailed", number, 3.0, errorText="net::ERR_ABORTED", canceled=True)
        traffic.add([sent(number, ROOT, 1.0), answered(number, 2.0, status), end])
    cut, empty = traffic.requests()
    assert (cut.status, cut.error) == (0, "net::ERR_ABORTED")
    assert (empty.status, empty.error) == (204, None)


@pytest.mark.parametrize(
    ("kind", "status", "error", "kept"),
    [("Script", 500, "net::ERR_ABORTED", 500), ("Script", 200, "net::ERR_ABORTED", 0),
     ("Script", 500, "net::ERR_CONNECTION_RESET", 0), ("Stylesheet", 410, "net::ERR_ABORTED", 410)],
)  # fmt: skip
def test_what_is_an_errors_page_is_let_go(
    traffic: BrowserTraffic, kind: str, status: int, error: str, kept: int
) -> None:
    end = told("loadingFailed", "1", 3.0, errorText=error, type=kind)
    traffic.add([sent("1", f"{ROOT}a.js", 1.0), answered("1", 2.0, status), end])
    (request,) = traffic.requests()
    assert request.status == kept


def test_a_rule_that_blocks_a_request_is_its_failure(traffic: BrowserTraffic) -> None:
    end = told("loadingFailed", "1", 3.0, errorText="", blockedReason="csp", canceled=False)
    traffic.add([sent("1", ROOT, 1.0), end])
    assert [each.error for each in traffic.requests()] == ["csp"]


def test_a_request_without_an_answer_as_recorded_is_not_awaited() -> None:
    for silent, answered_all in (((), False), ((ROOT,), True)):
        traffic = BrowserTraffic(silent=silent)
        traffic.add([sent("1", f"{ROOT}#top", 1.0)])
        assert traffic.is_answered is answered_all


def test_a_service_workers_script_has_an_end_only(traffic: BrowserTraffic) -> None:
    traffic.add([sent("1", f"{ROOT}worker.js", 1.0), finished("1", 2.0)])
    (request,) = traffic.requests()
    assert (request.status, request.protocol, request.transfer_bytes) == (200, None, None)


@pytest.mark.parametrize(
    ("body", "told_size", "size"), [(371, 147, None), (371, 518, 518), (0, 147, 147)]
)
def test_a_size_without_the_body_is_no_size(
    traffic: BrowserTraffic, body: int, told_size: int, size: int | None
) -> None:
    script = f"{ROOT}sw.js"
    traffic.add([sent("1", script, 1.0, documentURL=script, type="Script")])
    traffic.add([answered("1", 2.0, encodedDataLength=147)])
    traffic.add([told("dataReceived", "1", 2.5, dataLength=body)] if body else [])
    traffic.add([finished("1", 3.0, told_size)])
    assert [request.transfer_bytes for request in traffic.requests()] == [size]


def test_a_revalidated_body_came_from_the_cache(traffic: BrowserTraffic) -> None:
    traffic.add([sent("1", f"{ROOT}data", 1.0), answered("1", 2.0, encodedDataLength=147)])
    traffic.add([told("dataReceived", "1", 2.5, dataLength=6000), finished("1", 3.0, 147)])
    assert [request.transfer_bytes for request in traffic.requests()] == [147]


def test_a_load_owes_what_is_due_and_what_began_before_its_event(traffic: BrowserTraffic) -> None:
    late = f"{ROOT}late"
    traffic.add([sent("1", ROOT, 1.0), answered("1", 1.5)])
    assert not traffic.is_settled(2.0, [ROOT])  # it has begun
    traffic.add([finished("1", 1.9)])
    assert traffic.is_settled(2.0, [ROOT])
    assert not traffic.is_settled(2.0, [ROOT, late])  # not asked for yet
    assert not traffic.is_settled(2.0, [ROOT, ROOT])  # to be asked for twice
    traffic.add([sent("2", f"{late}#part", 3.0)])
    assert not traffic.is_settled(2.0, [ROOT, late])  # not answered yet
    assert traffic.is_settled(2.0, [ROOT])  # it is not due
    traffic.add([answered("2", 4.0), finished("2", 4.0)])
    assert traffic.is_settled(2.0, [ROOT, late])


def test_a_body_that_nobody_reads_is_not_waited_for(traffic: BrowserTraffic) -> None:
    traffic.add([sent("1", ROOT, 1.0)])
    assert not traffic.is_answered
    traffic.add([answered("1", 2.0), told("dataReceived", "1", 2.5, dataLength=3)])
    assert traffic.is_answered
    traffic.end_unread()
    assert traffic.requests()[0].end_s == 2.5


def test_an_event_stream_is_not_waited_for(traffic: BrowserTraffic) -> None:
    traffic.add([sent("1", ROOT, 1.0, type="EventSource")])
    assert traffic.is_answered


def test_a_response_without_its_request_has_one(traffic: BrowserTraffic) -> None:
    """A service worker that was started again is heard from its first response on."""
    url = f"{ROOT}kept.txt"
    timing = {"requestTime": 4.0, "dnsStart": -1, "connectStart": -1, "sendStart": 1.0}
    late = answered("7", 5.0, url=url, timing=timing) | {"sessionId": "worker"}
    traffic.add([late, finished("7", 6.0)])
    (request,) = traffic.requests()
    assert (request.url, request.start_s, request.end_s) == (url, 4.0, 6.0)
    assert [*urls_asked(traffic.events, {"worker"})] == [url]
    assert [*urls_asked(traffic.events, {"page"})] == []
