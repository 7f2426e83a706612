"""The proof of each arm: what counts as proven, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.model import Proof, TcpSpec
from tests.capture.packets import ACK, COOKIE, FIN, REQUEST, RST, SERVER, Capture, Visit
from tests.evidence import prove

ON, OFF = TcpSpec(tfo=True), TcpSpec(tfo=False)


def counters(opened: int, taken: int, passive: int | None = None) -> dict[str, dict[str, int]]:
    """What both ends say: connections opened, and those whose SYN data was taken."""
    return {
        "client": {"TcpActiveOpens": opened, "TcpExtTCPFastOpenActive": taken},
        "server": {"TcpExtTCPFastOpenPassive": taken if passive is None else passive},
    }


@pytest.fixture
def capture() -> Capture:
    return Capture()


def refused(
    capture: Capture, port: int = 2000, server: str = SERVER, *, again: bool = False
) -> Visit:
    """A SYN with a request, once more without it if so, and a SYN-ACK that takes none of it."""
    visit = Visit(capture, port, server)
    visit.syn(REQUEST, COOKIE)
    if again:
        visit.syn()
    visit.synack(0)
    return visit


def prove_it(capture: Capture, path: Path, said: dict[str, dict[str, int]], spec: TcpSpec) -> Proof:
    return prove(capture.flows(path), said, spec)


def test_fast_open_is_proven(capture: Capture, tmp_path: Path) -> None:
    for port in range(2000, 2003):
        Visit(capture, port).open(REQUEST)
    said = counters(3, 3)
    assert prove_it(capture, tmp_path, said, ON) == Proof(
        connections=3, syns=3, syns_with_payload=3, syn_payload_bytes=3 * len(REQUEST),
        cookie_requests=0, syn_data_acked=3, retransmits=0, client_counters=said["client"],
        server_counters=said["server"],
    )  # fmt: skip


def test_the_control_arm_is_proven(capture: Capture, tmp_path: Path) -> None:
    Visit(capture, 2000).open()
    proof = prove_it(capture, tmp_path, counters(1, 0), OFF)
    assert proof.proven
    assert (proof.connections, proof.syns_with_payload, proof.syn_payload_bytes) == (1, 0, 0)


def test_a_syn_without_payload(capture: Capture, tmp_path: Path) -> None:
    Visit(capture, 2000).open(REQUEST)
    Visit(capture, 2001).open()
    proof = prove_it(capture, tmp_path, counters(2, 1), ON)
    said = "Fast Open arm: 1 of 2 SYNs carry no request, the first to 10.10.0.1:80"
    assert proof.problems == (said,)


@pytest.mark.parametrize("start", [b"GET ", b"HEAD ", b"POST ", b"\x16\x03\x01"])
def test_what_a_request_starts_with(capture: Capture, tmp_path: Path, start: bytes) -> None:
    Visit(capture, 2000).open(start + b"rest")
    assert prove_it(capture, tmp_path, counters(1, 1), ON).proven


def test_a_payload_that_is_no_request(capture: Capture, tmp_path: Path) -> None:
    Visit(capture, 2000).open(b"hello")
    proof = prove_it(capture, tmp_path, counters(1, 1), ON)
    assert proof.syn_payload_bytes == 5
    (problem,) = proof.problems
    assert problem.split(",")[0] == "Fast Open arm: 1 of 1 SYNs carry no request"


@pytest.mark.parametrize("acked", [0, len(REQUEST) - 1])
def test_syn_data_refused(capture: Capture, tmp_path: Path, acked: int) -> None:
    Visit(capture, 2000).open(REQUEST, acked=acked)
    proof = prove_it(capture, tmp_path, counters(1, 0), ON)
    assert (proof.syns_with_payload, proof.syn_data_acked) == (1, 0)
    said = "Fast Open arm: 1 of 1 SYNs had their data refused, the first to 10.10.0.1:80"
    assert proof.problems == (said,)


@pytest.mark.parametrize(
    ("lost", "problem"),
    [(0, "2 of 3 SYNs had their data refused, the first to 10.10.0.1:80"),
     (1, "1 of 3 SYNs had their data refused, the first to 10.10.0.2:80"), (2, "")],
)  # fmt: skip
def test_a_lost_syn_goes_again_without_its_request(
    capture: Capture, tmp_path: Path, lost: int, problem: str
) -> None:
    Visit(capture, 2000).open(REQUEST)
    for server in ("10.10.0.1", "10.10.0.2"):
        refused(capture, 2001, server, again=True)
    proof = prove(capture.flows(tmp_path), counters(3, 1), ON, lost=lost)
    assert proof.problems == ((f"Fast Open arm: {problem}",) if problem else ())
    assert (proof.retransmits, proof.syns_with_payload, proof.syn_data_acked) == (2, 3, 1)


@pytest.mark.parametrize("first", [b"", b"hello"])
def test_no_loss_excuses_a_syn_without_a_request(
    capture: Capture, tmp_path: Path, first: bytes
) -> None:
    visit = Visit(capture, 2000)
    visit.syn(first, COOKIE)
    visit.syn()
    visit.synack(0)
    (problem,) = prove(capture.flows(tmp_path), counters(1, 0), ON, lost=9).problems
    assert "1 of 1 SYNs carry no request" in problem


def test_no_loss_excuses_a_server_that_refuses(capture: Capture, tmp_path: Path) -> None:
    refused(capture).syn()
    (problem,) = prove(capture.flows(tmp_path), counters(1, 0), ON, lost=9).problems
    assert "1 of 1 SYNs had their data refused" in problem


def test_a_syn_that_nobody_answered(capture: Capture, tmp_path: Path) -> None:
    Visit(capture, 2000).syn(REQUEST, COOKIE)
    proof = prove_it(capture, tmp_path, counters(1, 0), ON)
    assert proof.syn_data_acked == 0
    assert len(proof.problems) == 1


@pytest.mark.parametrize("spec", [ON, OFF])
def test_a_cookie_request_is_no_fast_open(capture: Capture, tmp_path: Path, spec: TcpSpec) -> None:
    visit = Visit(capture, 2000)
    visit.syn(cookie=b"")
    visit.synack(0, COOKIE)
    proof = prove_it(capture, tmp_path, counters(1, 0), spec)
    assert (proof.cookie_requests, proof.syns_with_payload) == (1, 0)
    assert len(proof.problems) == 1


def test_a_control_arm_with_a_payload(capture: Capture, tmp_path: Path) -> None:
    Visit(capture, 2000).open()
    Visit(capture, 2001).open(REQUEST)
    proof = prove_it(capture, tmp_path, counters(2, 1), OFF)
    assert proof.problems == ("control arm: 1 of 2 SYNs use Fast Open",)


def test_a_cookie_alone_does_not_hide_in_the_control_arm(capture: Capture, tmp_path: Path) -> None:
    visit = Visit(capture, 2000)
    visit.syn(cookie=COOKIE)
    visit.synack(0)
    assert not prove_it(capture, tmp_path, counters(1, 0), OFF).proven


@pytest.mark.parametrize("spec", [ON, OFF])
def test_no_connection_proves_nothing(capture: Capture, tmp_path: Path, spec: TcpSpec) -> None:
    proof = prove_it(capture, tmp_path, counters(0, 0), spec)
    assert proof.problems == ("the capture shows no connection",)


@pytest.mark.parametrize(
    ("said", "problem"),
    [(counters(2, 1), "the client's TcpActiveOpens grew by 2, the capture shows 1"),
     (counters(1, 0, 1), "the client's TcpExtTCPFastOpenActive grew by 0, the capture shows 1"),
     (counters(1, 1, 0), "the server's TcpExtTCPFastOpenPassive grew by 0, the capture shows 1")],
)  # fmt: skip
def test_counters_that_disagree(
    capture: Capture, tmp_path: Path, said: dict[str, dict[str, int]], problem: str
) -> None:
    Visit(capture, 2000).open(REQUEST)
    assert prove_it(capture, tmp_path, said, ON).problems == (problem,)


def test_a_counter_that_the_kernel_does_not_have(capture: Capture, tmp_path: Path) -> None:
    Visit(capture, 2000).open()
    said = counters(1, 0)
    del said["server"]["TcpExtTCPFastOpenPassive"]
    proof = prove_it(capture, tmp_path, said, OFF)
    told = "the server's TcpExtTCPFastOpenPassive grew by None, the capture shows 0"
    assert proof.problems == (told,)


def test_connections_given_up_before_their_syn_ack(capture: Capture, tmp_path: Path) -> None:
    """The server took the data; at the client no socket was left to count that."""
    Visit(capture, 2000).open(REQUEST)
    for port in (2001, 2002):
        spare = Visit(capture, port)
        spare.syn(REQUEST, COOKIE)
        spare.synack(len(REQUEST))
        spare.refuse(len(REQUEST))
    proof = prove_it(capture, tmp_path, counters(3, 1, 3), ON)
    assert (proof.problems, proof.given_up, proof.syn_data_acked) == ((), 2, 3)
    strict = prove_it(capture, tmp_path, counters(3, 3, 3), ON)
    said = "the client's TcpExtTCPFastOpenActive grew by 3, the capture shows 1"
    assert strict.problems == (said,)


@pytest.mark.parametrize("how", ["after an ACK", "with an ACK", "another number", "no RST"])
def test_a_connection_that_ends_otherwise_is_counted(
    capture: Capture, tmp_path: Path, how: str
) -> None:
    visit = Visit(capture, 2000)
    visit.syn(REQUEST, COOKIE)
    visit.synack(len(REQUEST))
    if how == "after an ACK":
        visit.send(len(REQUEST), b"")
    if how in ("after an ACK", "another number"):
        visit.refuse(len(REQUEST) + (how == "another number"))
    else:
        visit.leave(len(REQUEST), (RST if how == "with an ACK" else FIN) | ACK)
    proof = prove_it(capture, tmp_path, counters(1, 0, 1), ON)
    assert proof.given_up == 0
    said = "the client's TcpExtTCPFastOpenActive grew by 0, the capture shows 1"
    assert proof.problems == (said,)


def test_data_refused_is_refused_whoever_gave_up(capture: Capture, tmp_path: Path) -> None:
    refused(capture).refuse(0)
    proof = prove_it(capture, tmp_path, counters(1, 0, 0), ON)
    assert proof.given_up == 1
    assert "1 of 1 SYNs had their data refused" in proof.problems[0]
