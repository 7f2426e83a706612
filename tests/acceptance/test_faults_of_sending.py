"""Faults in how a server sends and names are answered: each changed a load time, none may pass."""

from __future__ import annotations

import pytest

from tests.acceptance.house import House, Plant, assert_refused

pytestmark = pytest.mark.guest

PAGE, OVER_TLS = "wikipedia", "wikipedia-h2"
GRAPH = {"page": PAGE, "client": "graph", "rtt_ms": 100}
BROWSER = {"page": OVER_TLS, "client": "chromium", "rtt_ms": 100}
H3 = BROWSER | {"protocol": "h3", "web_server": "nginx-quic"}
OLD = BROWSER | {"tls_version": "1.2"}
FILES, SEGMENTS = "  sendfile on;", "  tcp_nopush on;"
NO_BODIES = '("Network.enable", NO_BODIES),'
THROTTLED = """("Network.emulateNetworkConditions", {"offline": False, "latency": 400,
            "downloadThroughput": -1, "uploadThroughput": -1}),"""
SILENT, SHORT, RECORDS = (
    "servers were silent ",
    "more short segments",
    " in records of no more than ",
)
STREAMS, UNFILLED = "max_concurrent_streams = 2 instead of 128", "that are not as full as can be"


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take(PAGE, OVER_TLS)


@pytest.mark.nightly(but="limit_rate 20k")
@pytest.mark.parametrize(
    ("knobs", "old", "new", "told"),
    [
        pytest.param(GRAPH, FILES, f"{FILES} limit_rate 20k;", SILENT, id="limit_rate 20k"),
        pytest.param(
            GRAPH | {"loss_pct": 1}, FILES, f"{FILES} limit_rate 100k;", SILENT, id="lost"
        ),
        pytest.param(BROWSER, FILES, f"{FILES} limit_rate 200k;", SILENT, id="h2"),
        pytest.param(BROWSER, "  tcp_nodelay on;", "  tcp_nodelay off;", SILENT, id="Nagle"),
        pytest.param(H3, FILES, f"{FILES} limit_rate 20k;", SILENT, id="h3"),
        pytest.param(H3, FILES, f"{FILES} http3_stream_buffer_size 4k;", SILENT, id="buffer"),
        pytest.param(GRAPH, SEGMENTS, "  tcp_nopush off;", SHORT, id="tcp_nopush"),
        pytest.param(BROWSER, FILES, f"{FILES} ssl_buffer_size 1k;", RECORDS, id="records"),
        pytest.param(BROWSER, FILES, f"{FILES} sendfile_max_chunk 4k;", RECORDS, id="chunks"),
    ],
)
def test_what_holds_responses_back(
    house: House, plant: Plant, knobs: dict[str, object], old: str, new: str, told: str
) -> None:
    plant("server/nginx.py", old, new)
    assert_refused(house.run(**knobs), "unproven", told)


@pytest.mark.nightly(but="^streams$")
@pytest.mark.parametrize(
    ("knobs", "new", "told"),
    [
        pytest.param(BROWSER, "http2_max_concurrent_streams 2", STREAMS, id="streams"),
        pytest.param(OLD, "http2_max_concurrent_streams 2", STREAMS, id="streams 1.2"),
        pytest.param(BROWSER, "http2_chunk_size 1k", UNFILLED, id="frames"),
        pytest.param(OLD, "http2_chunk_size 16k", UNFILLED, id="frames 1.2"),
        pytest.param(
            H3, "http3_max_concurrent_streams 2", "initial_max_streams_bidi = 2 ", id="streams h3"
        ),
        pytest.param(
            H3, "http3_stream_buffer_size 256k", "initial_max_stream_data_uni = 262144 ", id="h3"
        ),
    ],
)
def test_what_a_server_takes_and_how_it_fills_frames(
    house: House, plant: Plant, knobs: dict[str, object], new: str, told: str
) -> None:
    plant("server/nginx.py", FILES, f"{FILES} {new};")
    assert_refused(house.run(**knobs), "unproven", told)


@pytest.mark.nightly(but="^1000000$")
@pytest.mark.parametrize("least_us", ["400000", "1000000"])
def test_timers_of_lost_packets(house: House, plant: Plant, least_us: str) -> None:
    plant("lab/sysctls.py", '"rto_min_us": "200000"', f'"rto_min_us": "{least_us}"')
    ran = house.run(**GRAPH | {"loss_pct": 3})
    assert_refused(ran, "unproven", "retransmission timers were late ")


@pytest.mark.nightly
def test_names_that_are_searched_for(house: House, plant: Plant) -> None:
    plant("server/resolver.py", "timeout:30", "timeout:30 ndots:9\\nsearch example.test")
    ran = house.run(**GRAPH | {"client": "wget2"})
    assert_refused(ran, "unproven", "which is no host of the page")


@pytest.mark.nightly
def test_a_browser_that_throttles_itself(house: House, plant: Plant) -> None:
    plant("client/chromium/visit.py", NO_BODIES, f"{NO_BODIES} {THROTTLED}")
    ran = house.run(**GRAPH | {"client": "chromium"})
    assert_refused(ran, "unproven", "the client kept the load waiting")
