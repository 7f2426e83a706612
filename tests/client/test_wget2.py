"""What is fed to wget2, and what is read from its log and statistics."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from testbed.client.interface import LoadOrder
from testbed.client.wget2 import join, list_urls, parse_sent, parse_stats, tls_arguments, wget2_argv
from testbed.model import Opening
from tests.client.sites import Site

LOG = """\
21.000559.945 # sent 263 bytes:
GET /0.png HTTP/1.1
Host: img.page.test
Accept: */*

21.000559.999 # got header 133 bytes:
HTTP/1.1 200 OK

21.000600.945 # sent 200 bytes:
GET /x?a=1 HTTP/1.1
Host: www.page.test:81

"""
STATS = """\
ID,ParentID,URL,Status,Link,Method,Size,SizeDecompressed,TransferTime,ResponseTime,Encoding,X
4,0,http://img.page.test/0.png,200,1,1,67,90,5,3,0,0
"""
STARTED_MS = 1795219559940.0  # 2026-11-21 00:05:59.940 UTC


def test_redirect_targets_are_left_to_the_redirect(site: Site) -> None:
    urls = list_urls(site.archive())
    assert urls[0] == site.root
    assert "http://www.page.test/go.png" in urls
    assert "http://img.page.test/target.png" not in urls
    assert len(urls) == len(set(urls)) == len(site.entries) - 1


def test_log() -> None:
    first, second = parse_sent(LOG, STARTED_MS, ())
    assert (first.target, first.header_bytes) == ("img.page.test/0.png", 263)
    assert first.start_ms == pytest.approx(5.0)
    assert second.target == "www.page.test:81/x?a=1"
    assert second.start_ms == pytest.approx(1005.0)


def test_a_line_may_follow_one_that_another_thread_did_not_end() -> None:
    """As seen on a busy machine, behind what was reported of a certificate."""
    mingled = LOG.replace("21.000600", "  Serial number: 7c921.000600")
    first, second = parse_sent(mingled, STARTED_MS, ())
    assert second == parse_sent(LOG, STARTED_MS, ())[1]
    assert first.target == "img.page.test/0.png"


def test_a_load_over_midnight() -> None:
    before_midnight = 1795219200000.0 - 10.0  # 2026-11-20 23:59:59.990 UTC
    (sent,) = parse_sent(
        "21.000000.010 # sent 9 bytes:\nGET / HTTP/1.1\nHost: a.test\n", before_midnight, ()
    )
    assert sent.start_ms == pytest.approx(20.0)


def test_a_request_without_an_end_has_failed() -> None:
    sent = parse_sent(LOG, STARTED_MS, ())
    answered, lost = join(sent, parse_stats(STATS.splitlines()), [], 1200.0)
    assert answered.timing.status == 200
    assert answered.timing.end_ms == pytest.approx(10.0)
    assert (answered.body_bytes, answered.decoded_bytes) == (67, 90)
    assert (lost.timing.status, lost.timing.end_ms) == (0, 1200.0)
    assert lost.timing.url == "http://www.page.test:81/x?a=1"


LOG_H2 = """\
21.000559.945 [FRAME 1] > HEADERS
21.000559.945 [FRAME 1] > :method: GET
21.000559.945 [FRAME 1] > :path: /a
21.000559.946 [FRAME 1] > :path: /b?x=1
21.000559.946 [FRAME 1] > :scheme: https
21.000559.946 [FRAME 1] > :authority: two.test
21.000559.947 [FRAME 1] > :authority: one.test
"""


def test_lines_of_two_http2_requests_may_mingle() -> None:
    known = {"one.test/a", "two.test/b?x=1"}
    sent = parse_sent(LOG_H2, STARTED_MS, known)
    assert [(one.target, one.protocol) for one in sent] == [("one.test/a", "h2"),
                                                            ("two.test/b?x=1", "h2")]  # fmt: skip
    assert [one.start_ms for one in sent] == pytest.approx([5.0, 6.0])


def test_http_before_the_https_that_it_led_to() -> None:
    log = "".join(
        f"21.000559.94{n} # sent 9 bytes:\nGET / HTTP/1.1\nHost: a.test\n\n" for n in range(3)
    )
    stats = [*STATS.splitlines()[:1], "1,0,http://a.test/,301,1,1,5,5,1,1,0,0",
             "2,0,https://a.test/,200,1,1,5,5,1,1,0,0"]  # fmt: skip
    recorded = ["http://a.test/", "https://a.test/"]
    joined = join(parse_sent(log, STARTED_MS, ()), parse_stats(stats), recorded, 1200.0)
    assert [one.timing.url for one in joined] == [*recorded, "http://a.test/"]
    assert [one.timing.status for one in joined] == [301, 200, 0]


def test_what_is_not_fed(site: Site) -> None:
    site.add("http://www.page.test/form", b"", "text/html", method="POST")
    site.add("http://www.page.test/later", b"", "text/html", after_load=True)
    assert not {"http://www.page.test/form", "http://www.page.test/later"} & set(
        list_urls(site.archive())
    )


@pytest.mark.parametrize(
    ("protocol", "http2"), [("h1", "off"), ("h2", "on"), ("as-recorded", "on")]
)
def test_only_the_lab_is_trusted(site: Site, protocol: str, http2: str) -> None:
    order = LoadOrder(archive=site.archive(), prefix=(), tfo=False, think_time="none",
                      bundle=Path(), scratch=Path(), out=Path(), timeout_s=1.0)  # fmt: skip
    assert tls_arguments(order) == ()
    order = dataclasses.replace(order, tls=Path("/page/tls"), protocol=protocol, tls_version="1.2")
    assert tls_arguments(order) == ("--ca-directory=", "--ca-certificate=/page/tls/authority.pem",
                                    "--no-ocsp", "--no-hpkp", f"--http2={http2}",
                                    "--secure-protocol=NORMAL:-VERS-TLS1.3")  # fmt: skip
    opening = Opening("wget2", key_share="x25519")
    order = dataclasses.replace(order, tls_version="1.3", opening=opening, resumption=True)
    assert tls_arguments(order)[-2:] == ("--secure-protocol=NORMAL:-GROUP-ALL:+GROUP-X25519",
                                         "--tls-resume")  # fmt: skip


def test_command() -> None:
    argv = wget2_argv(Path("/s/urls"), Path("/s/stats.csv"))
    assert argv[0] == "wget2"
    assert "--max-threads=6" in argv
    assert "--input-file=/s/urls" in argv
