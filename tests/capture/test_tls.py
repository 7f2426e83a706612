"""TLS hellos in frames that may be cut: lengths, and the version that the server chose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.capture.tls import Hello, holds_alert, read_hello_record, record_bytes
from tests.capture.packets import REQUEST, client_hello, server_hello

TLS13 = (43, b"\x03\x04")
KEY_SHARE = (51, bytes(36))
ALPN = (16, b"\0\x03\x02h2")


def test_the_length_of_a_record_is_in_its_header() -> None:
    assert record_bytes(client_hello(1893)) == 1893
    assert record_bytes(client_hello(1893)[:5]) == 1893
    assert [record_bytes(part) for part in (b"", b"\x16\x03\x01\0", REQUEST)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("payload", "version"),
    [(server_hello(TLS13, KEY_SHARE), "1.3"), (server_hello(KEY_SHARE, TLS13), "1.3"),
     (server_hello(ALPN), "1.2"), (server_hello(ALPN, session=b""), "1.2"),
     (server_hello(version=b"\x03\x01"), "version 0301"),
     (server_hello((43, b"\x7f\x1c")), "version 7f1c"),
     (server_hello(TLS13, (51, bytes(1120)))[:190], "1.3"),
     (server_hello((51, bytes(1120)), TLS13)[:190], None), (server_hello(TLS13)[:84], None),
     (server_hello(TLS13)[:40], None), (client_hello(300), None), (REQUEST, None), (b"", None)],
)  # fmt: skip
def test_the_version_that_the_server_chose(payload: bytes, version: str | None) -> None:
    assert _version(payload) == version


def test_a_server_hello_without_extensions_is_an_old_one() -> None:
    bare = bytearray(server_hello())[:-2]
    bare[3:5], bare[6:9] = (len(bare) - 5).to_bytes(2, "big"), (len(bare) - 9).to_bytes(3, "big")
    assert _version(bytes(bare)) == "1.2"


@given(st.binary(max_size=200), st.integers(0, 300))
def test_any_bytes_are_read(tail: bytes, cut: int) -> None:
    for payload in (tail, (b"\x16\x03\x03\x01\x00\x02" + tail)[:cut]):
        assert record_bytes(payload) >= 0
        assert isinstance(read_hello_record(payload), Hello | None)


def test_which_hello_is_whose() -> None:
    hellos = [read_hello_record(client_hello(300)), read_hello_record(server_hello(TLS13))]
    assert [hello and hello.by_client for hello in hellos] == [True, False]


@given(payload=st.binary(max_size=80))
def test_any_bytes_may_hold_an_alert(payload: bytes) -> None:
    assert holds_alert(payload) in (False, True)
    assert not holds_alert(REQUEST + payload)


def _version(payload: bytes) -> str | None:
    hello = read_hello_record(payload)
    return None if hello is None else hello.version
