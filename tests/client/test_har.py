"""HAR of the clients that leave it to us."""

from __future__ import annotations

from pathlib import Path

from testbed.client.har_file import ClientExchange, write_har
from testbed.model import PageLoad, RequestTiming
from tests.client.har_model import Har


def test_the_least_and_the_most_that_a_client_may_know(tmp_path: Path) -> None:
    least = ClientExchange(RequestTiming("http://a.test/?x=1&y", 0, 0.0, 2.5))
    most = ClientExchange(
        RequestTiming("http://a.test/go", 302, 1.0, 4.0, 300, "7", "http://a.test/"),
        request_headers=(("Host", "a.test"),), request_header_bytes=490, reason="Found",
        response_headers=(("Location", "/there"),), response_header_bytes=300, body_bytes=0,
        decoded_bytes=0, mime="text/html", server="10.0.0.1",
        phases={"blocked": 1.0, "wait": 1.5, "receive": 0.5},
    )  # fmt: skip
    load = PageLoad("graph", "1", 4.0, (least.timing, most.timing))
    path = tmp_path / "load.har"
    write_har(path, load, "http://a.test/", 1_700_000_000.0, [least, most])
    log = Har.model_validate_json(path.read_text("utf-8")).log
    first, second = log.entries
    query = [(pair.name, pair.value) for pair in first.request.queryString]
    assert query == [("x", "1"), ("y", "")]
    assert (first.time, second.time) == (2.5, 3.0)
    assert second.response.redirectURL == "/there"
    assert second.connection == "7"
    gap = second.startedDateTime - first.startedDateTime
    assert gap.total_seconds() == 0.001
    assert log.pages[0].pageTimings.onLoad == 4.0
