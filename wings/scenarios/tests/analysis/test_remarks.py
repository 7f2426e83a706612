"""Calls as remarks beside a ladder."""

from __future__ import annotations

import pytest

from wings.scenarios.analysis.remarks import remarks_of
from wings.scenarios.measurement import Call
from wings.scenarios.script import parse_script
from wings.scenarios.tests.promised import BEGAN_NS, WAY_NS, call

SCRIPT = """
server listen s fastopen=16
client sendto a server "hello" -> 5
server accept s b
server recv b -> "hello"
server abort b
client info a syn_data -> yes
client count TcpExtTCPTimeouts -> 2
client sysctl tcp_fastopen=1
client key 00112233445566778899aabbccddeeff
client window 4
client connect c server fastopen
client set d mss=500
client hello c early="hello" -> 5
client tls c -> accepted
server early once
wait 1s
"""


def said(*calls: Call) -> list[tuple[float, str]]:
    return [
        ((at_ns - BEGAN_NS) / 1e6, text)
        for _, at_ns, text in remarks_of(parse_script(SCRIPT), calls, WAY_NS)
    ]


@pytest.mark.parametrize(("line", "text", "result", "words"), [
    (2, "server listen s fastopen=16", "ok", "listen(fastopen=16)"),
    (3, 'client sendto a server "hello" -> 5', "5", 'sendto("hello") = 5'),
    (4, "server accept s b", "ok", "accept() = ok"),
    (5, 'server recv b -> "hello"', "nothing", "recv() = nothing"),
    (6, "server abort b", "ok", "close() with RST"),
    (7, "client info a syn_data -> yes", "no", "TCP_INFO: syn_data = no"),
    (8, "client count TcpExtTCPTimeouts -> 2", "2", "TcpExtTCPTimeouts +2"),
    (9, "client sysctl tcp_fastopen=1", "ok", "sysctl tcp_fastopen=1"),
    (10, "client key 00112233445566778899aabbccddeeff", "ok", "Fast Open key 0011…"),
    (11, "client window 4", "ok", "initial window 4"),
    (12, "client connect c server fastopen", "EINPROGRESS", "connect(fastopen) = EINPROGRESS"),
    (13, "client set d mss=500", "ok", "setsockopt(mss=500)"),
    (14, 'client hello c early="hello" -> 5', "5", 'hello, early data "hello" = 5'),
    (15, "client tls c -> accepted", "refused", "tls() = refused"),
    (16, "server early once", "ok", "early data once"),
])  # fmt: skip
def test_a_call_is_written_as_programmers_do(line: int, text: str, result: str, words: str) -> None:
    assert said(call(line, text, result, 5)) == [(5.0, words)]


def test_a_call_that_takes_a_while_is_at_its_start_and_its_end() -> None:
    sendto = call(3, 'client sendto a server "hello" -> 5', "5", 0, 100)
    assert said(sendto) == [(0.0, 'sendto("hello") …'), (100.0, "… sendto() = 5")]


def test_a_call_that_waited_is_where_what_it_waited_for_came() -> None:
    assert said(call(5, 'server recv b -> "hello"', '"hello"', 0, 150)) == [
        (150.0, 'recv() = "hello"')
    ]


def test_a_wait_is_no_remark_and_a_line_of_another_script_is_as_it_is() -> None:
    assert said(call(14, "wait 1s", "ok", 0, 1000)) == []
    assert said(call(2, "server listen other", "ok", 0)) == [(0.0, "listen other")]
