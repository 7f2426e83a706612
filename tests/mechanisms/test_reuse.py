"""Who ended a connection, and whether the server had a reason to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.capture.application import read_application
from testbed.mechanisms.reuse.proof import check_replay, check_reuse
from testbed.model import KEPT_ALIVE_S, Replay, ServedConnection, TcpSpec
from tests.capture.packets import ACK, CLIENT, FIN, REQUEST, RST, SERVER, Capture, Visit
from tests.evidence import found

PORT = 2000
SIZE = len(REQUEST)
ALERT_1_3 = bytes.fromhex("1703030013") + bytes(19)
ALERT_1_2 = bytes.fromhex("150303001a") + bytes(26)
GOAWAY = bytes.fromhex("1703030022") + bytes(34)
SHUT = "no limit on requests per connection was asked, but the server ended 1 of 1 connections"


@pytest.fixture
def visit() -> Visit:
    """A connection with one request and its answer."""
    made = Visit(Capture(snap=256), PORT)
    made.open()
    made.send(0, REQUEST)
    made.answer(b"HTTP/1.1 200 OK\r\n")
    return made


def served(requests: int, **more: Any) -> ServedConnection:
    return ServedConnection(f"{CLIENT}:{PORT}", f"{SERVER}:80", requests, **more)


def check(
    visit: Visit, path: Path, *known: ServedConnection, limit: int | None = None
) -> tuple[str, ...]:
    spec = TcpSpec(requests_per_connection=limit)
    return tuple(found(check_reuse, tcp=spec, flows=visit.capture.flows(path), served=known))


def test_a_connection_that_nobody_ends(visit: Visit, tmp_path: Path) -> None:
    assert check(visit, tmp_path, served(1)) == ()


@pytest.mark.parametrize("flags", [FIN | ACK, RST | ACK, RST])
def test_a_connection_that_the_client_ends(visit: Visit, tmp_path: Path, flags: int) -> None:
    visit.leave(SIZE, flags)
    visit.end(SIZE + 1)
    assert check(visit, tmp_path, served(1)) == ()


@pytest.mark.parametrize("flags", [FIN | ACK, RST | ACK])
def test_a_connection_that_the_server_ends(visit: Visit, tmp_path: Path, flags: int) -> None:
    visit.end(SIZE, flags)
    visit.leave(SIZE)
    said = f"{SHUT} by itself, the first to 10.10.0.1:80 after 1 requests"
    assert check(visit, tmp_path, served(1)) == (said,)


def test_both_ends_at_once_are_the_server_s_doing(visit: Visit, tmp_path: Path) -> None:
    """The client believed the answer's ``Connection: close`` before the FIN came."""
    visit.leave(SIZE)
    visit.end(SIZE)
    assert check(visit, tmp_path, served(1))[0].startswith(SHUT)


def test_a_server_that_is_done_resets_what_comes_later(visit: Visit, tmp_path: Path) -> None:
    """It acknowledged the client's FIN twice, and the client its FIN twice."""
    visit.leave(SIZE)
    visit.end(SIZE + 1)
    visit.end(-1 - visit.isn, RST)  # which acknowledges nothing
    assert check(visit, tmp_path, served(1)) == ()


@pytest.mark.parametrize("alert", [ALERT_1_3, ALERT_1_2, GOAWAY + ALERT_1_3])
def test_tls_is_ended_by_an_alert(visit: Visit, tmp_path: Path, alert: bytes) -> None:
    """The server may answer that before the client's FIN has come."""
    visit.send(SIZE, alert)
    visit.end(SIZE + len(alert))
    visit.leave(SIZE + len(alert))
    assert check(visit, tmp_path, served(1)) == ()


def test_another_record_is_no_end_of_tls(visit: Visit, tmp_path: Path) -> None:
    visit.send(SIZE, GOAWAY)
    visit.end(SIZE + len(GOAWAY))
    assert check(visit, tmp_path, served(1))[0].startswith(SHUT)


def test_a_spare_connection_that_the_server_ends(tmp_path: Path) -> None:
    visit = Visit(Capture(), PORT)
    visit.open()
    visit.end(0)
    assert "after 0 requests" in check(visit, tmp_path)[0]
    assert "after 0 requests" in check(visit, tmp_path, limit=2)[0]


def test_a_port_where_nobody_listens_is_no_end(tmp_path: Path) -> None:
    visit = Visit(Capture(), PORT)
    visit.syn()
    visit.end(0, RST | ACK)
    assert check(visit, tmp_path) == ()


def test_a_connection_given_up_before_its_syn_ack_is_the_client_s(tmp_path: Path) -> None:
    visit = Visit(Capture(), PORT)
    visit.syn(REQUEST, b"")
    visit.synack(SIZE)
    visit.refuse(SIZE)
    visit.end(SIZE)
    assert check(visit, tmp_path) == ()


@pytest.mark.parametrize(("requests", "problems"), [(1, 1), (2, 1), (3, 0)])
def test_the_limit_is_the_only_reason(
    visit: Visit, tmp_path: Path, requests: int, problems: int
) -> None:
    visit.end(SIZE)
    found = check(visit, tmp_path, served(requests), limit=3)
    assert len(found) == problems
    assert all(f"requests_per_connection = 3, but the server ended 1 of 1 connections by itself, "
               f"the first to 10.10.0.1:80 after {requests} requests" == one
               for one in found)  # fmt: skip


def test_an_end_that_only_the_head_announces(visit: Visit, tmp_path: Path) -> None:
    """The client is faster: its FIN has come before the server's could leave."""
    visit.leave(SIZE)
    visit.end(SIZE + 1)
    assert check(visit, tmp_path, served(1, announced_close=True))[0].startswith(SHUT)
    assert check(visit, tmp_path, served(3, announced_close=True), limit=3) == ()


def test_an_end_that_the_client_asked_for(visit: Visit, tmp_path: Path) -> None:
    visit.end(SIZE)
    assert check(visit, tmp_path, served(1, asked_close=True, announced_close=True)) == (
        "no limit on requests per connection was asked, but the client asked to end 1 of 1 "
        "connections with an answer, the first to 10.10.0.1:80",
    )
    assert check(visit, tmp_path, served(2, asked_close=True), limit=3) != ()
    assert check(visit, tmp_path, served(3, asked_close=True), limit=3) == ()


def test_what_nobody_recorded_may_end_a_connection(visit: Visit, tmp_path: Path) -> None:
    visit.end(SIZE)
    assert check(visit, tmp_path, served(1, missed=True)) == ()


DOWN, UP = ((SERVER, 80), (CLIENT, PORT)), ((CLIENT, PORT), (SERVER, 80))


@pytest.mark.parametrize(
    ("idle_s", "excused"), [(KEPT_ALIVE_S, True), (KEPT_ALIVE_S / 2 - 2, False)]
)
@pytest.mark.parametrize("probed", [False, True])
def test_a_server_may_end_a_connection_that_was_idle_for_so_long(
    visit: Visit, tmp_path: Path, idle_s: float, excused: bool, probed: bool
) -> None:
    """Between two visits; a probe of the client's is no use of it."""
    if probed:
        visit.capture.add(*UP, ACK, visit.isn + SIZE, 5018, b"", b"", 30_000.0)
    visit.capture.add(*DOWN, FIN | ACK, 5017, visit.isn + 1 + SIZE, b"", b"", idle_s * 1000)
    assert (check(visit, tmp_path, served(1)) == ()) is excused


def test_bytes_of_the_client_begin_the_idle_time_anew(visit: Visit, tmp_path: Path) -> None:
    seq, late_ms = visit.isn + 1 + SIZE, KEPT_ALIVE_S * 1000 + 10_000.0
    visit.capture.add(*UP, ACK, seq, 5017, REQUEST, b"", 200_000.0)
    visit.capture.add(*DOWN, FIN | ACK, 5017, seq + SIZE, b"", b"", late_ms)
    assert check(visit, tmp_path, served(2))[0].startswith(SHUT)


@pytest.mark.parametrize(
    ("exact", "most", "spoken", "logged"),
    [(1, 1, 1, 1), (1, 1, 1, 2), (1, 2, 1, 1), (1, 1, 2, 1), (2, 2, 2, 2), (0, 1, 1, 1)],
)
def test_the_log_of_servers_agrees_with_itself(
    visit: Visit, tmp_path: Path, exact: int, most: int, spoken: int, logged: int
) -> None:
    replay = Replay(exact, most_per_connection=most, protocols={"http://a HTTP/1.1": spoken})
    seen = read_application(visit.capture.read(tmp_path))
    wrong = found(check_replay, replay=replay, served=(served(logged),), application=seen)
    assert bool(wrong) is ((exact, most, spoken, logged) != (1, 1, 1, 1))
