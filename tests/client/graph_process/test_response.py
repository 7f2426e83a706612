"""HTTP/1.1 responses in pieces of any size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.client.graph_process.response import HttpResponse, ProtocolError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
PLAIN = HEAD + b"Content-Length: 11\r\n\r\nhello world"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"
TRAILER = CHUNKED[:-2] + b"X-Sum: 1\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n" + PLAIN


@given(
    whole=st.sampled_from([PLAIN, CHUNKED, TRAILER, INTERIM]),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=200),
)
def test_pieces_do_not_matter(whole: bytes, sizes: list[int]) -> None:
    response, at = HttpResponse(), 0
    for size in [*sizes, len(whole)]:
        if at < len(whole):
            assert not response.done
            response.feed(whole[at : at + size])
            at += size
    assert response.done
    assert (response.status, response.reason, response.keep_alive) == (200, "OK", True)
    assert response.header_bytes + response.body_bytes == len(whole)
    assert response.header("content-type") == "text/html"


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_no_body(status: str) -> None:
    response = HttpResponse()
    response.feed(f"HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\n".encode())
    assert response.done
    assert response.body_bytes == 0


def test_a_body_without_length_ends_with_the_connection() -> None:
    response = HttpResponse()
    response.feed(HEAD + b"\r\nhello")
    assert not response.done
    response.end()
    assert response.done
    assert not response.keep_alive


@pytest.mark.parametrize("whole", [PLAIN, CHUNKED])
def test_a_body_cut_short_is_an_error(whole: bytes) -> None:
    response = HttpResponse()
    response.feed(whole[:-3])
    with pytest.raises(ProtocolError, match="inside"):
        response.end()


def test_connection_close() -> None:
    response = HttpResponse()
    response.feed(PLAIN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert response.done
    assert not response.keep_alive


@pytest.mark.parametrize(
    "wrong",
    [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
     b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", PLAIN + b"more"],
)  # fmt: skip
def test_nonsense_is_an_error(wrong: bytes) -> None:
    with pytest.raises(ProtocolError):
        HttpResponse().feed(wrong)
