"""Cold cookies: a first contact may fail, until the origin's new cookie has arrived."""

from __future__ import annotations

from pathlib import Path

from testbed.model import Proof, TcpSpec
from tests.capture.packets import COOKIE, REQUEST, Capture, Visit
from tests.evidence import prove
from tests.mechanisms.test_fast_open import counters

COLD = TcpSpec(tfo=True, cookies="cold")
OTHER = "10.10.0.2"


def visit(
    capture: Capture, port: int, at_ms: float, *, taken: bool, new_cookie_ms: float | None = None,
    server: str = "10.10.0.1",
) -> None:  # fmt: skip
    """A SYN with a request at ``at_ms``; its SYN-ACK may bring a new cookie."""
    made = Visit(capture, port, server)
    made.syn(REQUEST, COOKIE, at_ms)
    acked = len(REQUEST) if taken else 0
    if new_cookie_ms is None:
        made.synack(acked, at_ms=at_ms + 1)
    else:
        made.synack(acked, COOKIE, new_cookie_ms)


def prove_cold(capture: Capture, folder: Path, taken: int) -> Proof:
    opened = len({bytes(frame[34:36]) for _, frame in capture.packets if frame[47] == 2})
    return prove(capture.flows(folder), counters(opened, taken), COLD)


def test_first_contacts_are_exempt(tmp_path: Path) -> None:
    capture = Capture()
    visit(capture, 2000, 0.0, taken=False, new_cookie_ms=20.0)
    visit(capture, 2001, 5.0, taken=False, new_cookie_ms=25.0)
    visit(capture, 2002, 20.0, taken=False, new_cookie_ms=40.0)  # at the very moment
    visit(capture, 2003, 20.001, taken=True)
    proof = prove_cold(capture, tmp_path, 1)
    assert proof.problems == ()
    assert (proof.connections, proof.syn_data_acked) == (4, 1)


def test_a_first_contact_without_a_cookie_at_all_is_exempt(tmp_path: Path) -> None:
    capture = Capture()
    first = Visit(capture, 2000)
    first.syn(cookie=b"", at_ms=0.0)
    first.synack(0, COOKIE, 20.0)
    visit(capture, 2001, 21.0, taken=True)
    proof = prove_cold(capture, tmp_path, 1)
    assert proof.problems == ()
    assert proof.cookie_requests == 1


def test_no_origin_takes_a_stale_cookie(tmp_path: Path) -> None:
    capture = Capture()
    visit(capture, 2000, 0.0, taken=True)
    visit(capture, 2001, 0.0, taken=True, server=OTHER)
    visit(capture, 2002, 30.0, taken=True, server=OTHER)
    (said,) = prove_cold(capture, tmp_path, 3).problems
    assert said == "cookies = cold, but 2 origins took the data of their first SYN"


def test_later_connections_are_not_exempt(tmp_path: Path) -> None:
    capture = Capture()
    visit(capture, 2000, 0.0, taken=False, new_cookie_ms=20.0)
    visit(capture, 2001, 20.001, taken=False, new_cookie_ms=40.0)
    proof = prove_cold(capture, tmp_path, 0)
    said = "Fast Open arm: 1 of 2 SYNs had their data refused, the first to 10.10.0.1:80"
    assert proof.problems == (said,)


def test_a_cookie_is_for_one_origin(tmp_path: Path) -> None:
    capture = Capture()
    visit(capture, 2000, 0.0, taken=False, new_cookie_ms=10.0)
    visit(capture, 2001, 30.0, taken=False, new_cookie_ms=50.0, server=OTHER)
    assert prove_cold(capture, tmp_path, 0).problems == ()


def test_without_a_new_cookie_nothing_is_exempt(tmp_path: Path) -> None:
    capture = Capture()
    visit(capture, 2000, 0.0, taken=False, new_cookie_ms=10.0)
    visit(capture, 2001, 0.0, taken=False, server=OTHER)
    proof = prove_cold(capture, tmp_path, 0)
    said = "Fast Open arm: 1 of 2 SYNs had their data refused, the first to 10.10.0.2:80"
    assert proof.problems == (said,)


def test_cached_cookies_have_no_exemption(tmp_path: Path) -> None:
    capture = Capture()
    visit(capture, 2000, 0.0, taken=False, new_cookie_ms=20.0)
    assert not prove(capture.flows(tmp_path), counters(1, 0), TcpSpec(tfo=True)).proven
