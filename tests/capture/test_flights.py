"""Flights of TLS as segments have them: records by their order, or none."""

from __future__ import annotations

import ssl

import pytest

from testbed.capture.flights import describe_flight


def test_flights_of_other_clients() -> None:
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="a.test")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    assert describe_flight(hello) == "client-hello"
    sealed, alert = b"\x17\x03\x03\x00\x01x", b"\x15\x03\x03\x00\x02\x02\x28"
    changed = b"\x14\x03\x03\x00\x01\x01"
    assert describe_flight(hello + changed + 2 * sealed + alert) == "client-hello,sealed*2,alert"


@pytest.mark.parametrize(
    "payload", [b"", b"hello", b"\x17\x03\x03\x00\x02x", b"\x17\x03", b"\x17\x02\x03\x00\x01x",
                b"\x16\x03\x03\x00\x04\x01\x00\x00\x00"],
)  # fmt: skip
def test_what_is_no_flight(payload: bytes) -> None:
    assert describe_flight(payload) == ""
