"""Conduct of clients: how many connections there are at once, and what their logs say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.client.har_file import ClientExchange, write_har
from testbed.model import PageLoad, RequestTiming
from testbed.proof.browser import check_log
from testbed.proof.browser_log import read_log
from testbed.proof.conduct import check_connections
from testbed.proof.visits import split_visits
from tests.capture.packets import Capture, Visit
from tests.evidence import found


@pytest.mark.parametrize(("threads", "wrong"), [(2, True), (6, False), (7, True)])
def test_wget2_has_as_many_connections_as_threads(
    tmp_path: Path, threads: int, wrong: bool
) -> None:
    capture = Capture()
    for port in range(2000, 2000 + threads):
        Visit(capture, port).syn(at_ms=0)
    for port in range(2000, 2000 + threads):
        Visit(capture, port).leave(0)
    requests = tuple(RequestTiming(f"http://a/{n}", 200, 0.0, 9.0) for n in range(9))
    load = PageLoad("wget2", "2.2.0", 9.0, requests)
    said = f"wget2 had {threads} connections at once, its rules say 6"
    problems = found(check_connections, load=load, logs=(), flows=capture.flows(tmp_path))
    assert problems == ([said] if wrong else [])


@pytest.mark.parametrize(
    "other",
    [{}, {"start_ms": 1.1}, {"end_ms": 9.1}, {"status": 404}, {"transfer_bytes": 301},
     {"connect_ms": 1.0}, {"url": "http://a/other"}, {"plt_ms": 8.9}],
)  # fmt: skip
def test_a_client_tells_what_its_log_has(tmp_path: Path, other: dict[str, Any]) -> None:
    timing = RequestTiming("http://a/", 200, 1.0, 9.0, 300, "1")
    load = PageLoad("graph", "1", 9.0, (timing,))
    write_har(tmp_path / "load.har", load, "http://a/", 1e9, [ClientExchange(timing)])
    if "plt_ms" in other:
        load = replace(load, **other)
    else:
        load = replace(load, requests=(replace(timing, **other),))
    visits = split_visits(load)
    logs = (read_log(tmp_path / "load.har", *visits),)
    assert len(found(check_log, load=load, logs=logs, visits=visits)) == bool(other)
