"""TLS connections: how much of the ClientHello rode in the SYN."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.model import Proof, TcpSpec
from tests.capture.packets import COOKIE, REQUEST, Capture, Visit, client_hello
from tests.evidence import prove
from tests.mechanisms.test_fast_open import counters

ON, OFF = TcpSpec(tfo=True), TcpSpec(tfo=False)
SYN_ROOM = 1420


def prove_it(capture: Capture, folder: Path, taken: int, spec: TcpSpec, opened: int = 1) -> Proof:
    return prove(capture.flows(folder), counters(opened, taken), spec)


def hello_of(proof: Proof) -> tuple[int, int, int]:
    return proof.tls_connections, proof.hello_bytes, proof.syn_hello_bytes


@pytest.mark.parametrize("size", [395, SYN_ROOM, 1893])
def test_what_fits_rides_in_the_syn(tmp_path: Path, size: int) -> None:
    capture, hello = Capture(snap=256), client_hello(size)
    made = Visit(capture, 2000, server_port=443)
    made.open(hello[:SYN_ROOM])
    made.send(SYN_ROOM, hello[SYN_ROOM:])
    proof = prove_it(capture, tmp_path, 1, ON)
    assert proof.problems == ()
    assert hello_of(proof) == (1, size, min(size, SYN_ROOM))
    assert proof.syn_payload_bytes == min(size, SYN_ROOM)


def test_what_was_sent_beside_the_hello_is_none_of_it(tmp_path: Path) -> None:
    capture = Capture()
    Visit(capture, 2000, server_port=443).open(client_hello(300) + bytes(50))
    proof = prove_it(capture, tmp_path, 1, ON)
    assert hello_of(proof) == (1, 300, 300)
    assert proof.syn_payload_bytes == 350


def test_part_of_a_hello_that_was_refused_is_no_fast_open(tmp_path: Path) -> None:
    capture = Capture()
    made = Visit(capture, 2000, server_port=443)
    made.open(client_hello(1893)[:SYN_ROOM], acked=700)
    proof = prove_it(capture, tmp_path, 0, ON)
    said = "Fast Open arm: 1 of 1 SYNs had their data refused, the first to 10.10.0.1:443"
    assert proof.problems == (said,)


def test_in_the_control_arm_nothing_rides(tmp_path: Path) -> None:
    capture = Capture()
    made = Visit(capture, 2000, server_port=443)
    made.open()
    made.send(0, client_hello(1893)[:1448])
    made.send(1448, client_hello(1893)[1448:])
    proof = prove_it(capture, tmp_path, 0, OFF)
    assert proof.proven
    assert hello_of(proof) == (1, 1893, 0)


def test_a_hello_in_a_syn_of_the_control_arm_is_told(tmp_path: Path) -> None:
    capture = Capture()
    Visit(capture, 2000, server_port=443).open(client_hello(300))
    proof = prove_it(capture, tmp_path, 1, OFF)
    assert proof.problems == ("control arm: 1 of 1 SYNs use Fast Open",)


def test_plain_connections_beside_it_have_no_hello(tmp_path: Path) -> None:
    capture = Capture()
    Visit(capture, 2000).open(REQUEST)
    Visit(capture, 2001, server_port=443).open(client_hello(395))
    late = Visit(capture, 2002)
    late.syn(REQUEST, COOKIE)
    late.synack(len(REQUEST))
    late.send(len(REQUEST), client_hello(500))  # not at the start: a body that looks like one
    proof = prove_it(capture, tmp_path, 3, ON, opened=3)
    assert hello_of(proof) == (1, 395, 395)
