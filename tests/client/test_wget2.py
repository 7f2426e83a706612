"""What is fed to wget2, and what is read from its log and statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.client.wget2 import join, list_urls, parse_sent, parse_stats, wget2_argv
from tests.client.conftest import Site

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
    first, second = parse_sent(LOG, STARTED_MS)
    assert (first.url, first.header_bytes) == ("http://img.page.test/0.png", 263)
    assert first.start_ms == pytest.approx(5.0)
    assert second.url == "http://www.page.test:81/x?a=1"
    assert second.start_ms == pytest.approx(1005.0)


def test_a_load_over_midnight() -> None:
    before_midnight = 1795219200000.0 - 10.0  # 2026-11-20 23:59:59.990 UTC
    (sent,) = parse_sent(
        "21.000000.010 # sent 9 bytes:\nGET / HTTP/1.1\nHost: a.test\n", before_midnight
    )
    assert sent.start_ms == pytest.approx(20.0)


def test_a_request_without_an_end_has_failed() -> None:
    answered, lost = join(parse_sent(LOG, STARTED_MS), parse_stats(STATS.splitlines()), 1200.0)
    assert answered.timing.status == 200
    assert answered.timing.end_ms == pytest.approx(10.0)
    assert (answered.body_bytes, answered.decoded_bytes) == (67, 90)
    assert (lost.timing.status, lost.timing.end_ms) == (0, 1200.0)


def test_command() -> None:
    argv = wget2_argv(Path("/s/urls"), Path("/s/stats.csv"))
    assert argv[0] == "wget2"
    assert "--max-threads=6" in argv
    assert "--input-file=/s/urls" in argv
