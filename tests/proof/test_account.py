"""Accounts of loads: whose each stretch of the critical path is, in captures made by hand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from testbed.capture.packets import ACK, SYN, Packet
from testbed.capture.transits import Transit, Transits
from testbed.model import LinkSpec
from testbed.proof.account import LoadAccount, account_of

CLIENT, SERVER = b"\x0a\x00\x00\x02", b"\x0a\x0a\x00\x01"
LINK = LinkSpec(rtt_ms=100, down_kbit=12_000, up_kbit=12_000, framing_bytes=0)
MS = 1_000_000
SIZE = 1500
"""A packet of that many bytes is on the line for a millisecond."""


class Load:
    """Packets of a load; each takes its own time on the line, and what it is told to wait."""

    def __init__(self) -> None:
        self.transits: Transits = {"up": [], "down": []}

    def up(self, at_ms: float, seq: int = 0, *, size: int = 0, **packet: Any) -> float:
        return self._add("up", at_ms, seq, 0.0, size, **packet)

    def down(
        self, at_ms: float, seq: int = 0, *, waits_ms: float = 0.0, lost: bool = False,
        **packet: Any,
    ) -> float:  # fmt: skip
        return self._add("down", at_ms, seq, waits_ms, SIZE, lost=lost, **packet)

    def account(self, ended_ms: float) -> LoadAccount:
        return account_of(self.transits, LINK, 0, round(ended_ms * MS))

    def _add(
        self, way: str, at_ms: float, seq: int, waits_ms: float, size: int, *, lost: bool = False,
        flags: int = ACK, protocol: str = "TCP", port: int = 80, payload: bytes = b"",
    ) -> float:  # fmt: skip
        ends = (CLIENT, SERVER, 2000, port) if way == "up" else (SERVER, CLIENT, port, 2000)
        length = len(payload) or (size - 40 if way == "down" and not flags & SYN else 0)
        sent_ns = round(at_ms * MS)
        packet = Packet(sent_ns, b"", 0, protocol, ends[0], ends[1], size, 0, *ends[2:], payload,
                        length, seq, 0, flags)  # fmt: skip
        came_ms = at_ms + waits_ms + size / SIZE + 50
        came = None if lost else packet._replace(at_ns=round(came_ms * MS))
        came_ns = None if came is None else came.at_ns
        self.transits[way].append(Transit(sent_ns, came_ns, size, False, port, packet, came))
        return came_ms


def opened(load: Load) -> float:
    """A look-up and a handshake; when the client has the SYN-ACK."""
    answered = load.down(load.up(0, protocol="UDP", port=53), protocol="UDP", port=53)
    return load.down(load.up(answered, flags=SYN), flags=SYN | ACK)


def test_round_trips_and_the_line() -> None:
    load = Load()
    came = load.down(load.up(opened(load), 1, payload=b"GET"), 1)
    assert load.account(came).by_owner() == {
        "look-up": 100.0, "TCP handshake": 100.0, "request": 100.0, "line": 3.0
    }  # fmt: skip
    assert load.account(came).handshakes() == (SERVER,)


def test_stretches_follow_each_other_from_the_start_to_the_end() -> None:
    load = Load()
    asked = opened(load) + 7
    came = load.down(load.up(asked, 1, payload=b"GET") + 20, 1, waits_ms=5)
    stretches = load.account(came + 2).stretches
    assert (stretches[0].since_ns, stretches[-1].until_ns) == (0, round((came + 2) * MS))
    assert all(one.until_ns == two.since_ns for one, two in pairwise(stretches))
    assert load.account(came + 2).by_owner() == {
        "look-up": 100.0, "TCP handshake": 100.0, "request": 100.0, "line": 3.0, "queue": 5.0,
        "server": 20.0, "client": 9.0,
    }  # fmt: skip


def test_behind_the_load_s_own_packets_is_the_line() -> None:
    load = Load()
    at_server = load.up(opened(load), 1, payload=b"GET")
    load.down(at_server, 1)
    came = load.down(at_server, 1461, waits_ms=1)
    assert load.account(came).by_owner()["line"] == pytest.approx(4.0)
    assert "queue" not in load.account(came).by_owner()


def test_what_was_lost_waits_until_it_is_sent_again() -> None:
    load = Load()
    at_server = load.up(opened(load), 1, payload=b"GET")
    load.down(at_server, 1, lost=True)
    came = load.down(at_server + 300, 1)
    assert load.account(came).by_owner()["recovery"] == 300.0


def test_an_acknowledgement_that_lets_more_go_is_the_window() -> None:
    load = Load()
    came = load.down(load.up(opened(load), 1, payload=b"GET"), 1)
    came = load.down(load.up(came, 4), 1461)
    assert load.account(came).by_owner()["window"] == 100.0


@pytest.mark.parametrize(("hello", "owner"), [(b"\x16\x03\x01\0\x05hello", "TLS handshake"),
                                              (b"\x17\x03\x03\0\x05hello", "request")])  # fmt: skip
def test_a_hello_is_of_the_handshake_of_tls(hello: bytes, owner: str) -> None:
    load = Load()
    came = load.down(load.up(opened(load), 1, payload=hello), 1)
    assert load.account(came).by_owner()[owner] == 100.0


def test_a_load_that_ends_before_anything_came_has_no_account() -> None:
    load = Load()
    opened(load)
    with pytest.raises(ValueError, match="no data came down"):
        load.account(10.0)
