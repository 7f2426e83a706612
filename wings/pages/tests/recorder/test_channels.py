"""What a recording keeps of WebSockets, and of bodies that came in pieces."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from testbed.archive.head import MESSAGES, SWITCHED
from wings.pages.exchange import PageExchange, Recording
from wings.pages.recorder.channels import pieces_of, socket_exchanges
from wings.pages.recorder.devtools import BrowserReport, PageSocket
from wings.pages.recorder.sockets import NetTransfer
from wings.pages.redaction.redact import redact

URL = "http://www.page.test/stream"


def transfer(mime: str, *reads: tuple[float, int], **more: Any) -> NetTransfer:
    headers = (("Content-Type", mime), *more.pop("headers", ()))
    return NetTransfer("GET", URL, 0.0, status=200, headers=headers, head_s=1.0,
                       reads=list(reads), **more)  # fmt: skip


def test_events_are_pieces_and_what_is_read_with_them() -> None:
    reads = ((1.0, 9), (1.01, 9), (1.5, 9))
    assert pieces_of(transfer("text/event-stream", *reads)) == ((0.0, 18), (490.0, 9))
    assert pieces_of(transfer("text/event-stream")) == ((0.0, 0),)


@pytest.mark.parametrize(
    ("at_s", "pieces"), [(1.15, ()), (1.3, ((0.0, 2000), (300.0, 2000)))]
)  # fmt: skip
def test_another_body_has_pieces_if_its_server_paused(at_s: float, pieces: object) -> None:
    assert pieces_of(transfer("text/plain", (1.0, 2000), (at_s, 2000))) == pieces


def test_a_body_with_a_length_has_none() -> None:
    length = ("Content-Length", "4000")
    assert pieces_of(transfer("text/plain", (1.0, 1), (9.0, 1), headers=(length,))) == ()


def test_an_answer_waits_less_than_a_round_trip() -> None:
    frames = ((False, 2.3, 1, "one"), (True, 3.0, 1, "hi"), (False, 3.5, 2, "AAE="))
    socket = PageSocket("wss://www.page.test/s", URL, 2.0, 2.2, 4.0,
                        (("Sec-WebSocket-Protocol", "chat"), ("Upgrade", "x")), frames)  # fmt: skip
    never = PageSocket("wss://www.page.test/no", None, 2.0, None, 2.1, (), ())
    report = BrowserReport("b", "t", "f", 1.0, 3.0, 2000.0, None, True, (), {}, (socket, never),
                           (), (), None)  # fmt: skip
    (exchange,) = socket_exchanges(report)
    assert (exchange.url, exchange.status) == ("https://www.page.test/s", 101)
    assert exchange.headers == (("Sec-WebSocket-Protocol", "chat"),)
    assert (exchange.start_ms, exchange.dur_ms, exchange.after_load) == (1000.0, 2000.0, True)
    assert [json.loads(line) for line in (exchange.body or b"").splitlines()] == [
        {"sent": False, "wait_ms": 100.0, "opcode": 1, "data": "one"},
        {"sent": True, "wait_ms": 0.0, "opcode": 1, "data": "hi"},
        {"sent": False, "wait_ms": 300.0, "opcode": 2, "data": "AAE=", "base64": True},
        {"sent": False, "wait_ms": 500.0},
    ]


def test_a_secret_in_a_message_is_replaced_by_one_of_its_length() -> None:
    data = json.dumps({"token": f"ghp_{'0aB1cD2eF3' * 4}"[:40]})
    line = json.dumps({"sent": False, "wait_ms": 1.0, "opcode": 1, "data": data}).encode()
    said = PageExchange("https://www.page.test/s", SWITCHED, body=line, body_size=len(line),
                        decoded_size=len(line), mime=MESSAGES)  # fmt: skip
    (clean,) = redact(Recording("t", said.url, date(2026, 1, 1), "s", (said,))).exchanges
    assert b"0aB1cD2eF3" not in (clean.body or b"") and clean.body_size == len(line)
    assert len(json.loads(clean.body or b"")["data"]) == len(data)
