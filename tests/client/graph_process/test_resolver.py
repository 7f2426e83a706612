"""The name server's answers and /etc's files."""

from __future__ import annotations

import struct

import pytest

from testbed.client.graph_process.resolver import (
    LookupFailedError,
    parse_answer,
    parse_hosts,
    parse_nameserver,
    question,
)


def answer(identity: int, *records: bytes, flags: int = 0x8180) -> bytes:
    asked = question(identity, "www.page.test")
    head = struct.pack(">HHHHHH", identity, flags, 1, len(records), 0, 0)
    return head + asked[12:] + b"".join(records)


def record(kind: int, data: bytes) -> bytes:
    return struct.pack(">HHHIH", 0xC00C, kind, 1, 60, len(data)) + data


ADDRESS = record(1, bytes([10, 0, 0, 7]))
ALIAS = record(5, b"\x03cdn\xc0\x10")


def test_question() -> None:
    assert question(7, "a.example") == (
        b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01"
    )
    with pytest.raises(LookupFailedError):
        question(1, "a..b")


def test_the_first_address_behind_any_aliases() -> None:
    assert parse_answer(3, answer(3, ALIAS, ADDRESS)) == "10.0.0.7"
    six = record(28, bytes.fromhex("20010db8") + bytes(11) + b"\7")
    assert parse_answer(3, answer(3, ALIAS, six)) == "2001:db8::7"
    assert question(7, "a.example", 28).endswith(b"\x00\x1c\x00\x01")


def test_an_answer_to_another_question_is_no_answer() -> None:
    assert parse_answer(4, answer(3, ADDRESS)) is None
    assert parse_answer(3, question(3, "www.page.test")) is None


@pytest.mark.parametrize("data", [answer(3), answer(3, flags=0x8183), answer(3, ALIAS)])
def test_no_address(data: bytes) -> None:
    with pytest.raises(LookupFailedError):
        parse_answer(3, data)


def test_a_cut_answer_is_an_error() -> None:
    whole = answer(3, ADDRESS)
    for length in range(4, len(whole)):
        with pytest.raises(LookupFailedError):
            parse_answer(3, whole[:length])


def test_hosts_file() -> None:
    text = "# x\n127.0.0.1 localhost\n::1 localhost\n10.0.0.1 A.test b.test # c\n10.0.0.2 b.test\n"
    assert parse_hosts(text) == {"localhost": "127.0.0.1", "a.test": "10.0.0.1",
                                 "b.test": "10.0.0.1"}  # fmt: skip


def test_resolv_conf() -> None:
    assert parse_nameserver("search x\nnameserver x\nnameserver 10.0.0.2\n") == "10.0.0.2"
    assert parse_nameserver("nameserver 2001:db8::53\n") == "2001:db8::53"
    assert parse_nameserver("# nothing\n") is None
