"""Cookies before the measurement: cached, stale, or nothing to do (RFC 7413 section 4.1)."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from testbed.base.errors import LabError
from testbed.capture.counters import difference, read_counters
from testbed.lab import exactness
from testbed.lab.exactness import HOST, VIRTUAL, Exactness
from testbed.lab.laboratory import Lab
from testbed.lab.link.netem import NetemLink
from testbed.lab.readback import ENDS, read_state
from testbed.lab.tcp import set_knobs
from testbed.lab.topology import Topology, open_topology, origin_address
from testbed.mechanisms.fast_open.lab import FAST_OPEN, FASTOPEN, key_for, prime, set_key
from testbed.model import Condition, Cookies, LabReading, TcpSpec

pytestmark = pytest.mark.root

ORIGINS = 3
TCP_FASTOPEN_CONNECT = 30  # tcp(7); Python 3.11 has no name for it
RENO = TcpSpec(tfo=True, congestion_control="reno")


@pytest.fixture(autouse=True)
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exactness, "SETTLE_S", 0.0)
    monkeypatch.setattr(exactness, "LEAST_SETTLE_S", 0.0)


def asked(spec: TcpSpec) -> Condition:
    """A condition with such a TCP."""
    return Condition("p", "c", tcp=spec)


def set_fast_open(topology: Topology, spec: TcpSpec) -> None:
    """Set what a lab sets for it."""
    FAST_OPEN.act(topology, asked(spec))
    set_knobs(topology, spec, dict.fromkeys(ENDS, FAST_OPEN.sysctls(asked(spec))))


@contextmanager
def answering(topology: Topology) -> Iterator[None]:
    """A server on every origin that answers once and closes."""
    with topology.server.entered():
        listener = socket.create_server(("0.0.0.0", 80), backlog=16)  # noqa: S104
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


@contextmanager
def answering_together(topology: Topology, count: int) -> Iterator[None]:
    """A server that answers nobody before ``count`` clients have asked."""
    with topology.server.entered():
        listener = socket.create_server(("0.0.0.0", 80), backlog=16)  # noqa: S104

    def answer() -> None:
        with ExitStack() as ends:
            for _ in range(count):
                connection, _ = listener.accept()
                ends.enter_context(connection)
                connection.recv(4096)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
        listener.close()


def visit(topology: Topology, tfo: bool) -> dict[str, int]:
    """What the client's counters grew by while it fetched from each origin once."""
    before = read_counters(topology.client)
    with topology.client.entered():
        for index in range(ORIGINS):
            with socket.socket() as connection:
                if tfo:
                    connection.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
                connection.connect((origin_address(index), 80))
                connection.sendall(b"GET /")
                assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    return difference(before, read_counters(topology.client))


def primed(
    tag: str, spec: TcpSpec, how: Exactness = VIRTUAL
) -> tuple[dict[str, int], dict[str, int]]:
    """Counters of the priming, and of a visit to each origin after it, at the client."""
    with open_topology(tag, 1500, ORIGINS) as topology, answering(topology):
        set_fast_open(topology, spec)
        before = read_counters(topology.client)
        condition = asked(spec)
        link = NetemLink(topology, condition.link)  # which nobody shapes
        lab = Lab(
            topology, LabReading((), {}), condition, link, read_state(topology), (FAST_OPEN,), how
        )
        lab.prepare(ORIGINS)
        return difference(before, read_counters(topology.client)), visit(topology, spec.tfo)


@pytest.mark.parametrize("how", [VIRTUAL, HOST])
def test_cached_cookies_work_at_every_origin(tag: str, how: Exactness) -> None:
    priming, visits = primed(tag, RENO, how)
    assert (priming["TcpActiveOpens"], priming["TcpExtTCPFastOpenActive"]) == (ORIGINS, 0)
    assert visits["TcpExtTCPFastOpenActive"] == ORIGINS


def test_cold_cookies_are_stale_at_every_origin(tag: str) -> None:
    priming, visits = primed(tag, replace(RENO, cookies="cold"))
    assert priming["TcpActiveOpens"] == ORIGINS
    assert visits["TcpExtTCPFastOpenActive"] == 0
    assert visits["TcpExtTCPFastOpenActiveFail"] == ORIGINS


@pytest.mark.parametrize(
    ("tfo", "kind", "active"), [(True, "not-required", ORIGINS), (False, "cached", 0)]
)
def test_nothing_to_prime(tag: str, tfo: bool, kind: Cookies, active: int) -> None:
    priming, visits = primed(tag, replace(RENO, tfo=tfo, cookies=kind))
    assert set(priming.values()) == {0}
    assert visits["TcpExtTCPFastOpenActive"] == active


@pytest.mark.parametrize("at_once", [False, True])
def test_an_origin_that_does_not_answer(tag: str, at_once: bool) -> None:
    with open_topology(tag, 1500, 1) as topology:
        set_fast_open(topology, RENO)
        with pytest.raises(LabError, match=r"no Fast Open cookie from 10\.10\.0\.1: .*refused"):
            prime(topology, 1, 0.0, at_once=at_once)


def test_at_once_all_origins_are_asked_before_one_answers(tag: str) -> None:
    with open_topology(tag, 1500, ORIGINS) as topology, answering_together(topology, ORIGINS):
        set_fast_open(topology, RENO)
        prime(topology, ORIGINS, 0.0, at_once=True)


@pytest.mark.parametrize(
    ("tfo", "cookies", "value"),
    [(False, "cached", 0), (False, "not-required", 0), (False, "cold", 0), (True, "cached", 3),
     (True, "cold", 3), (True, "not-required", 519)],
)  # fmt: skip
def test_the_sysctl(tfo: bool, cookies: Cookies, value: int) -> None:
    condition = asked(TcpSpec(tfo=tfo, cookies=cookies))
    assert FAST_OPEN.sysctls(condition) == {FASTOPEN: str(value)}
    assert dict(FAST_OPEN.expect(condition)) == {f"{end}.{FASTOPEN}": str(value) for end in ENDS}


def test_keys() -> None:
    first, again, other = (key_for(purpose) for purpose in ("first", "first", "rotated"))
    assert first == again != other
    for key in (first, other):
        assert re.fullmatch(r"([0-9a-f]{8}-){3}[0-9a-f]{8}", key)


def test_the_key_is_rotated_and_read_back(tag: str) -> None:
    name = "net.ipv4.tcp_fastopen_key"
    cold = asked(replace(RENO, cookies="cold"))
    with open_topology(tag, 1500, 1) as topology:
        set_fast_open(topology, RENO)
        assert topology.server.read_sysctl(name) == key_for("first")
        assert list(FAST_OPEN.judge(read_state(topology), asked(RENO))) == []
        set_key(topology, "rotated")
        assert topology.server.read_sysctl(name) == key_for("rotated")
        state = read_state(topology)
    assert list(FAST_OPEN.judge(state, asked(RENO))) == [f"server: {name} is not the first key"]
    assert list(FAST_OPEN.judge(state, cold)) == []
