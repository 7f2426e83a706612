"""Knobs that capture and server show: requests on a connection, sizes, TLS."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.capture.packets import Capture as Captured
from testbed.mechanisms.offload.proof import check_sizes
from testbed.mechanisms.reuse.proof import check_requests
from testbed.mechanisms.tls.proof import check_version
from testbed.model import Condition, LinkSpec, Replay, TcpSpec, TlsVersion
from tests.capture.packets import (
    ACK,
    CLIENT,
    PUSH,
    REQUEST,
    SERVER,
    SYN,
    Capture,
    Visit,
    client_hello,
    server_hello,
)
from tests.evidence import found as found_by

HOSTS = Condition("p", "graph", dns="hosts")
ONE = Replay(1, most_per_connection=1)
TWO = Replay(2, most_per_connection=2)
TLS13 = (43, b"\x03\x04")


def check_conduct(capture: Captured, condition: Condition, replay: Replay) -> list[str]:
    """What size of packets, requests and TLS versions contradict."""
    return [
        problem
        for check in (check_requests, check_sizes, check_version)
        for problem in found_by(
            check, condition=condition, capture=capture, replay=replay, load=None
        )
    ]


def request(capture: Capture, seq: int, port: int = 2000, payload: bytes = REQUEST) -> None:
    capture.add((CLIENT, port), (SERVER, 80), ACK | PUSH, seq, 1, payload)


@pytest.mark.parametrize(("limit", "problems"), [(None, 0), (3, 0), (2, 0), (1, 1)])
def test_requests_on_a_connection(tmp_path: Path, limit: int | None, problems: int) -> None:
    capture = Capture()
    request(capture, 1)
    request(capture, 1)  # sent again: one request
    request(capture, 1 + len(REQUEST))
    request(capture, 1, port=2001)
    read = capture.read(tmp_path)
    condition = replace(HOSTS, tcp=TcpSpec(requests_per_connection=limit))
    found = check_conduct(read, condition, TWO)
    assert len(found) == problems
    assert all("carried 2 requests" in problem for problem in found)


def test_a_request_that_a_syn_carried_in_vain_is_one_request(tmp_path: Path) -> None:
    capture = Capture()
    capture.add((CLIENT, 2000), (SERVER, 80), SYN, 2**32 - 1, 0, REQUEST)
    request(capture, 0)
    assert check_conduct(capture.read(tmp_path), HOSTS, ONE) == []


def test_an_offload_shows_as_a_packet_beyond_the_mtu(tmp_path: Path) -> None:
    capture = Capture(snap=256)
    request(capture, 1, payload=REQUEST + bytes(3000))
    assert "larger than the MTU" in check_conduct(capture.read(tmp_path), HOSTS, ONE)[0]


def test_the_server_counts_what_tls_hides(tmp_path: Path) -> None:
    read = Capture().read(tmp_path)
    condition = replace(HOSTS, tcp=TcpSpec(requests_per_connection=2))
    assert check_conduct(read, condition, TWO) == []
    (problem,) = check_conduct(read, condition, Replay(9, most_per_connection=3))
    assert problem == "a connection carried 3 requests, asked was 2 at the most"


@pytest.mark.parametrize(("loss_pct", "problems"), [(0.0, 1), (1.0, 0)])
def test_the_capture_does_not_show_more_than_the_server_had(
    tmp_path: Path, loss_pct: float, problems: int
) -> None:
    capture = Capture()
    request(capture, 1)
    request(capture, 1 + len(REQUEST))
    condition = replace(HOSTS, link=LinkSpec(loss_pct=loss_pct))
    found = check_conduct(capture.read(tmp_path), condition, ONE)
    assert len(found) == problems
    assert all("shows 2 requests on a connection, the server's log 1" in one for one in found)


def greet(capture: Capture, port: int, answer: bytes) -> None:
    """A TLS connection as far as the server's hello."""
    made = Visit(capture, port, server_port=443)
    made.open(client_hello(395))
    made.answer(answer)


@pytest.mark.parametrize(
    ("asked", "answer", "problem"),
    [("1.3", server_hello(TLS13), None), ("1.2", server_hello(), None),
     ("1.3", server_hello(), "tls_version = 1.3, but the server chose TLS 1.2 on 1 of 2"),
     ("1.2", server_hello(TLS13), "tls_version = 1.2, but the server chose TLS 1.3 on 1 of 2"),
     ("1.2", server_hello(version=b"\x03\x02"), "the server chose TLS version 0302 on 1 of 2"),
     ("1.3", b"\x15\x03\x03\0\x02\x02\x28", "the capture shows no TLS version")],
)  # fmt: skip
def test_the_version_of_tls(
    tmp_path: Path, asked: TlsVersion, answer: bytes, problem: str | None
) -> None:
    capture = Capture(snap=256)
    greet(capture, 2000, answer)
    Visit(capture, 2001, server_port=443).open(client_hello(395))  # given up: it shows nothing
    found = check_conduct(capture.read(tmp_path), replace(HOSTS, tls_version=asked), ONE)
    assert len(found) == (problem is not None)
    assert (problem or "") in "".join(found)
