"""HAR of a load in a browser: each field from the event that has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.client.chromium.devtools_har import write_har
from testbed.client.chromium.traffic import BrowserTraffic
from tests.client.chromium.test_traffic import finished, told
from tests.client.har_model import Har

ROOT = "http://www.page.test/"
PIXEL = "http://www.page.test/go?a=1&b=x%20y&a=2"
SENT = {"Host": "www.page.test", "Cookie": "id=7", "Accept": "*/*"}
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nSet-Cookie: a=b; Path=/; HttpOnly\r\n\r\n"
COOKIE = {"name": "id", "value": "7", "path": "/", "domain": "page.test", "expires": -1}
TIMING = {
    **{"requestTime": 100.010, "dnsStart": 1.0, "dnsEnd": 21.0},
    **{"connectStart": 21.0, "connectEnd": 121.5, "sslStart": -1, "sslEnd": -1},
    **{"sendStart": 121.5, "sendEnd": 122.0, "receiveHeadersEnd": 222.25},
}


def asked(number: str, url: str, at: float, **more: Any) -> dict[str, Any]:
    stack = {"callFrames": [{"url": ROOT, "lineNumber": 4, "columnNumber": 9, "scriptId": "66",
                             "functionName": "ask"}], "parentId": {"id": "3"}}  # fmt: skip
    request = {"url": url, "method": "GET", "headers": {"Accept": "*/*"}, "initialPriority": "Low"}
    params = {"requestId": number, "timestamp": at, "wallTime": 1000.0 + at, "type": "Image"}
    params |= {"initiator": {"type": "script", "stack": stack, "requestId": "9"}}
    params |= {"request": request | more.pop("request", {})}
    return {"method": "Network.requestWillBeSent", "params": params | more}


def replied(number: str, at: float, **more: Any) -> dict[str, Any]:
    response = {"status": 200, "statusText": "OK", "mimeType": "image/png", "charset": ""}
    response |= {"headers": {"Content-Type": "image/png", "Set-Cookie": "a=b; Path=/; HttpOnly"}}
    response |= {"protocol": "http/1.1", "connectionId": 500, "remoteIPAddress": "10.0.0.2"}
    response |= {"encodedDataLength": len(HEAD), "timing": TIMING}
    return told("responseReceived", number, at, response=response | more)


def as_sent(number: str, **headers: str) -> dict[str, Any]:
    cookies = [{"cookie": COOKIE, "blockedReasons": []}, {"cookie": {}, "blockedReasons": ["x"]}]
    return told("requestWillBeSentExtraInfo", number, 0.0, headers=SENT | headers,
                associatedCookies=cookies)  # fmt: skip


def as_came(number: str, text: str = HEAD, **headers: str) -> dict[str, Any]:
    return told("responseReceivedExtraInfo", number, 0.0, headersText=text,
                headers={"Content-Type": "image/png"} | headers)  # fmt: skip


@pytest.fixture
def entries(tmp_path: Path) -> Any:
    def write(*events: dict[str, Any]) -> list[dict[str, Any]]:
        traffic = BrowserTraffic()
        traffic.add(json.loads(json.dumps(events)))
        path = tmp_path / "load.har"
        write_har(path, traffic.events, traffic.requests(), browser="HeadlessChrome/1.2",
                  page_url=ROOT, plt_ms=300.5, start_s=99.5)  # fmt: skip
        text = path.read_text("utf-8")
        Har.model_validate_json(text)
        log = json.loads(text)["log"]
        assert log["browser"] == {"name": "HeadlessChrome", "version": "1.2"}
        assert log["pages"][0]["pageTimings"]["onLoad"] == 300.5
        found: list[dict[str, Any]] = log["entries"]
        return found

    return write


def test_a_whole_entry(entries: Any) -> None:
    (entry,) = entries(asked("1", PIXEL, 100.0), as_sent("1"), as_came("1"), replied("1", 100.3),
                       told("dataReceived", "1", 100.35, dataLength=70, encodedDataLength=50),
                       told("resourceChangedPriority", "1", 100.36, newPriority="High"),
                       told("dataReceived", "1", 100.4, dataLength=30, encodedDataLength=10),
                       {"method": "Page.domContentEventFired", "params": {"timestamp": 100.45}},
                       finished("1", 100.5, len(HEAD) + 60))  # fmt: skip
    detail = json.loads(entry.pop("_initiator_detail"))
    assert detail["stack"] == {
        "callFrames": [{"url": ROOT, "lineNumber": 4, "columnNumber": 9, "scriptId": "0",
                        "functionName": "ask"}]
    }  # fmt: skip
    assert "requestId" not in detail
    line = "GET /go?a=1&b=x%20y&a=2 HTTP/1.1\r\n"
    head = line + "".join(f"{name}: {value}\r\n" for name, value in SENT.items()) + "\r\n"
    assert entry == {
        "pageref": "page_1", "startedDateTime": "1970-01-01T00:18:20.010Z", "time": 490.0,
        "request": {"method": "GET", "url": PIXEL,
                    "queryString": pairs(("a", "1"), ("b", "x y"), ("a", "2")),
                    "headersSize": len(head), "bodySize": 0,
                    "cookies": [{"value": "7", "name": "id", "path": "/", "domain": "page.test",
                                 "httpOnly": False, "secure": False}],
                    "headers": pairs(("Accept", "*/*"), ("Host", "www.page.test"),
                                     ("Cookie", "id=7")),
                    "httpVersion": "http/1.1"},
        "response": {"status": 200, "statusText": "OK", "httpVersion": "http/1.1",
                     "cookies": [{"name": "a", "value": "b", "path": "/", "httpOnly": True,
                                  "secure": False}],
                     "headers": pairs(("Content-Type", "image/png")),
                     "content": {"size": 100, "mimeType": "image/png", "_charset": "",
                                 "compression": 40},
                     "redirectURL": "", "headersSize": len(HEAD), "bodySize": 60,
                     "_transferSize": len(HEAD) + 60, "_fromDiskCache": False,
                     "_fromEarlyHints": False, "_fromServiceWorker": False,
                     "_fromPrefetchCache": False},
        "cache": {},
        "timings": {**{"blocked": 1.0, "dns": 20.0, "connect": 100.5, "send": 0.5, "wait": 100.25},
                    **{"receive": 267.75, "ssl": -1, "_queued": 10.0}},
        "connection": "1", "serverIPAddress": "10.0.0.2", "_initialPriority": "Low",
        "_priority": "High", "_initiator_type": "script", "_initiator": ROOT, "_initiator_line": 5,
        "_initiator_column": 10, "_initiator_function_name": "ask", "_initiator_script_id": "0",
        "_resourceType": "image",
        "_chunks": [{"ts": 350.0, "bytes": 70}, {"ts": 400.0, "bytes": 30}],
    }  # fmt: skip


def test_moments_of_the_page_as_other_tools_write_them(tmp_path: Path) -> None:
    seen = {"paints": {"first-paint": 80, "first-contentful-paint": 84}, "largest": [84, 120.5],
            "navigation": {"domInteractive": 70.0, "domContentLoadedEventStart": 71.0},
            "timings": [["mark", "app", 61.0, 0, ""], ["measure", "do", 1.0, 2, ""]]}  # fmt: skip
    traffic = BrowserTraffic()
    traffic.add([asked("1", ROOT, 100.0), replied("1", 100.3)])
    path = tmp_path / "load.har"
    write_har(path, traffic.events, traffic.requests(), browser="HeadlessChrome/1.2",
              page_url=ROOT, plt_ms=300.5, start_s=100.0, seen=seen)  # fmt: skip
    page = json.loads(path.read_text("utf-8"))["log"]["pages"][0]
    assert page["pageTimings"] == {  # Browsertime's
        "onLoad": 300.5, "_firstPaint": 80, "_firstContentfulPaint": 84,
        "_largestContentfulPaint": 120.5, "_domInteractiveTime": 70.0,
        "_domContentLoadedTime": 71.0,
    }  # fmt: skip
    assert page.pop("_seen") == seen
    assert {name: value for name, value in page.items() if name.startswith("_")} == {
        "_render": 80, "_firstPaint": 80, "_firstContentfulPaint": 84,
        "_LargestContentfulPaint": 120.5, "_domInteractive": 70.0,
        "_domContentLoadedEventStart": 71.0, "_userTimes": {"app": 61.0},
    }  # fmt: skip


def pairs(*values: tuple[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values]


def test_a_head_may_be_told_before_its_request(entries: Any) -> None:
    (entry,) = entries(as_sent("1"), asked("1", ROOT, 100.0), replied("1", 100.3))
    assert {"name": "Host", "value": "www.page.test"} in entry["request"]["headers"]


def test_each_hop_of_a_redirect_has_its_own_heads(entries: Any) -> None:
    away = replied("1", 0.0, status=302, headers={"Location": PIXEL})["params"]["response"]
    first, second = entries(
        asked("1", ROOT, 100.0), as_sent("1", First="1"), as_came("1", Location=PIXEL),
        as_sent("1", Second="2"), asked("1", PIXEL, 100.2, redirectResponse=away),
        as_came("1", Final="yes"), replied("1", 100.4), finished("1", 100.5),
    )  # fmt: skip
    assert (first["response"]["status"], first["response"]["redirectURL"]) == (302, PIXEL)
    assert names(first["response"]) == ["Content-Type", "Location"]
    assert names(second["response"]) == ["Content-Type", "Final"]
    assert "First" in names(first["request"]) and "Second" not in names(first["request"])
    assert "Second" in names(second["request"])


def names(message: dict[str, Any]) -> list[str]:
    return [each["name"] for each in message["headers"]]


def test_over_http2_the_heads_have_no_size_in_bytes(entries: Any) -> None:
    (entry,) = entries(
        asked("1", ROOT, 100.0), replied("1", 100.3, protocol="h2"), finished("1", 100.5, 200)
    )
    assert (entry["request"]["headersSize"], entry["response"]["headersSize"]) == (-1, -1)
    assert entry["response"]["bodySize"] == 200


def test_what_was_posted(entries: Any) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    note = {"Content-Type": "text/plain"}
    one, two = entries(asked("1", ROOT, 100.0, request={"headers": form, "postData": "a=1&b="}),
                       asked("2", ROOT, 100.0, request={"headers": note, "postData": "hello"}),
                       replied("1", 100.3), replied("2", 100.3))  # fmt: skip
    assert one["request"]["postData"]["params"] == pairs(("a", "1"), ("b", ""))
    assert (two["request"]["postData"]["text"], two["request"]["bodySize"]) == ("hello", 5)


def test_what_came_from_a_cache_is_no_entry(entries: Any) -> None:
    asks = [asked(number, ROOT, 100.0) for number in ("1", "2")]
    events = [replied("1", 100.1, fromDiskCache=True), told("requestServedFromCache", "2", 100.1)]
    assert entries(*asks, *events, replied("2", 100.2), finished("2", 100.2)) == []


def test_what_failed_is_an_entry_without_a_status(entries: Any) -> None:
    reset = told("loadingFailed", "1", 100.25, errorText="net::ERR_CONNECTION_RESET")
    (entry,) = entries(asked("1", ROOT, 100.0), replied("1", 100.1), reset)
    response = entry["response"]
    assert (response["status"], response["_error"]) == (0, "net::ERR_CONNECTION_RESET")
    assert entry["time"] == entry["timings"]["wait"] == 250.0


def test_what_is_not_complete_is_an_entry_without_a_status(entries: Any) -> None:
    (entry,) = entries(asked("1", ROOT, 100.0))
    assert entry["response"]["_error"] == "not complete at the load event"


def test_entries_are_in_the_order_of_their_starts(entries: Any) -> None:
    late = TIMING | {"requestTime": 100.5}
    found = entries(asked("1", ROOT, 100.0), asked("2", PIXEL, 100.1),
                    replied("1", 100.9, timing=late), replied("2", 100.9))  # fmt: skip
    assert [entry["request"]["url"] for entry in found] == [PIXEL, ROOT]
