"""WebSockets and bodies in pieces, from the program that replays them."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testbed.archive.head import MESSAGES, SWITCHED
from testbed.archive.reading import Entry
from testbed.model import SocketReplay
from testbed.server.channels import END, read_talks, serve_channels, talk_problem, waits_ms
from tests.server.pages import HOST, make_archive, make_entry

URL = f"https://{HOST}/socket"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="  # and what it is answered with: RFC 6455 section 1.3
ACCEPT = b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
Said = dict[str, Any]


def said(data: str, *, sent: bool = False, wait_ms: float = 0.0, **more: Any) -> Said:
    return {"sent": sent, "wait_ms": wait_ms, "opcode": 1, "data": data, **more}


CLOSED: Said = {"sent": False, "wait_ms": 0.0}
Serve = Callable[..., Path]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as undo:

        def start(*entries: Entry, at_once: bool = False) -> Path:
            undo.enter_context(serve_channels(make_archive(*entries), tmp_path, at_once=at_once))
            return tmp_path

        yield start


def talk(folder: Path, *messages: Said, query: str = "") -> Entry:
    body = "".join(f"{json.dumps(each)}\n" for each in messages).encode()
    more = {"status": SWITCHED, "mime": MESSAGES, "headers_size": None, "scheme": "https"}
    return make_entry(f"/socket{query}", body, folder, **more)


def ask(folder: Path, head: str) -> socket.socket:
    end = socket.socket(socket.AF_UNIX)
    end.settimeout(20)
    end.connect(str(folder / END))
    end.sendall(head.encode())
    return end


def opened(folder: Path, url: str = URL) -> socket.socket:
    head = f"GET /socket HTTP/1.1\r\nX-Asked: {url}\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
    end = ask(folder, head)
    assert ACCEPT in read_until(end, b"\r\n\r\n")
    return end


def read_until(end: socket.socket, mark: bytes) -> bytes:
    data = b""
    while not data.endswith(mark):
        piece = end.recv(1)
        assert piece, data
        data += piece
    return data


def masked(opcode: int, data: bytes) -> bytes:
    mask = b"\x01\x02\x03\x04"
    hidden = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
    return bytes([0x80 | opcode, 0x80 | len(data)]) + mask + hidden


def close(end: socket.socket) -> None:
    end.sendall(masked(8, b"\x03\xe8"))
    assert read_until(end, b"\x88\x02\x03\xe8")
    end.close()


def test_messages_come_in_their_order_behind_those_of_the_page(
    serve: Serve, tmp_path: Path
) -> None:
    frames = (said("one"), said("hi", sent=True), said("two", wait_ms=50.0),
              said("AAE=", base64=True, opcode=2))  # fmt: skip
    folder = serve(talk(tmp_path, *frames))
    end = opened(folder)
    assert read_until(end, b"one") == b"\x81\x03one"
    end.settimeout(0.2)
    with pytest.raises(TimeoutError):
        end.recv(1)
    end.settimeout(20)
    end.sendall(masked(9, b"ping") + masked(1, b"other words"))
    assert read_until(end, b"\x00\x01") == b"\x8a\x04ping\x81\x03two\x82\x02\x00\x01"
    close(end)
    (told,) = wait_for_talks(folder, 1)
    assert told == SocketReplay(URL, URL, 3, 3, 1, 1) and told.exact


def wait_for_talks(folder: Path, count: int) -> tuple[SocketReplay, ...]:
    deadline = time.monotonic() + 20
    while len(talks := read_talks(folder)) < count:
        assert time.monotonic() < deadline, talks
        time.sleep(0.01)
    return talks


def test_a_page_that_says_more_is_inexact(serve: Serve, tmp_path: Path) -> None:
    folder = serve(talk(tmp_path, said("hi", sent=True), CLOSED))
    end = opened(folder)
    end.sendall(masked(1, b"a") + masked(1, b"b"))
    assert read_until(end, b"\x03\xe8") == b"\x88\x02\x03\xe8"
    close(end)
    (told,) = wait_for_talks(folder, 1)
    assert (told.heard, told.heard_of, told.exact) == (2, 1, False)


def test_of_equal_sockets_the_next_answers_and_else_the_nearest(
    serve: Serve, tmp_path: Path
) -> None:
    first, other = talk(tmp_path, said("1"), query="?a=1"), talk(tmp_path, said("2"), query="?b=1")
    third = talk(tmp_path, said("3"), query="?a=1")
    folder = serve(first, other, third)
    heard = []
    for query in ("?a=1", "?b=9", "?a=1", "?a=1"):
        end = opened(folder, URL + query)
        heard.append(read_until(end, b"\x81\x01") and end.recv(1))
        close(end)
    assert heard == [b"1", b"2", b"3", b"3"]
    exact = [each.exact for each in wait_for_talks(folder, 4)]
    assert exact == [True, False, True, True]


def test_what_was_not_recorded_is_refused(serve: Serve, tmp_path: Path) -> None:
    folder = serve(talk(tmp_path, said("1")))
    head = f"GET /socket HTTP/1.1\r\nX-Asked: {URL}s\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
    assert ask(folder, head).recv(99).startswith(b"HTTP/1.1 404")


def streamed(folder: Path, *, endless: bool) -> Entry:
    pieces = ((0.0, 9), (60_000.0, 9))
    body = b"data: 1\n\ndata: 2\n\n"
    return make_entry("/events", body, folder, open=endless, pieces=pieces)


@pytest.mark.parametrize("endless", [False, True])
def test_a_body_comes_in_its_pieces(serve: Serve, tmp_path: Path, endless: bool) -> None:
    folder = serve(streamed(tmp_path, endless=endless))
    end = ask(folder, "GET /0?query HTTP/1.1\r\n\r\n")
    head = read_until(end, b"\r\n\r\n")
    assert (b"Content-Length: 18" in head) != endless
    assert read_until(end, b"\n\n") == b"data: 1\n\n"


def test_pieces_need_not_wait(serve: Serve, tmp_path: Path) -> None:
    folder = serve(streamed(tmp_path, endless=False), at_once=True)
    end = ask(folder, "GET /0 HTTP/1.1\r\n\r\n")
    assert read_until(end, b"data: 2\n\n").endswith(b"data: 1\n\ndata: 2\n\n")


def test_a_page_without_them_starts_nothing(serve: Serve) -> None:
    assert list(serve(make_entry()).iterdir()) == []


def test_waits_are_those_of_pieces_and_messages(tmp_path: Path) -> None:
    assert waits_ms(streamed(tmp_path, endless=True)) == (0.0, 60_000.0)
    assert waits_ms(talk(tmp_path, said("1", wait_ms=3.5), CLOSED)) == (3.5, 0.0)


@pytest.mark.parametrize(
    "wrong",
    [{"sent": 1}, {"wait_ms": -1}, {"wait_ms": 1 << 31}, {"opcode": 8}, {"data": 1},
     {"base64": True, "data": "?"}],
)  # fmt: skip
def test_messages_that_are_none_are_refused(tmp_path: Path, wrong: Said) -> None:
    assert talk_problem(talk(tmp_path, said("1"))) is None
    assert "messages are none" in (talk_problem(talk(tmp_path, said("1") | wrong)) or "")
