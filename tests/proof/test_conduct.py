"""Conduct of clients: how many connections there are at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.model import PageLoad, RequestTiming
from testbed.proof.conduct import check_connections
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
