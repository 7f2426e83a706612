"""Scripts of scenarios: what their lines are, and what is said of lines that are none."""

from __future__ import annotations

import pytest

from wings.scenarios.script import LOST, TWICE, ScriptError, Segment, parse_script
from wings.scenarios.words import (
    describe_data,
    describe_end,
    describe_flags,
    parse_data,
    parse_flags,
    parse_size,
    parse_time,
)

SYN, ACK, PSH = 0x02, 0x10, 0x08


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(ScriptError) as caught:
        parse_script(text)
    return caught.value.problems


def test_lines_that_do_something() -> None:
    script = parse_script(
        """
        server listen s fastopen=16   # waits
        client sendto a server "a \\"b\\" # c" nowait -> EINPROGRESS
        wait 250ms
        """
    )
    listen, sendto, wait = script.actions
    assert (listen.line, listen.actor, listen.verb, listen.words) == (2, "server", "listen", ("s",))
    assert listen.options == {"fastopen": "16"}
    assert sendto.words == ("a", "server", '"a \\"b\\" # c"', "nowait")
    assert sendto.expected == "EINPROGRESS"
    assert (wait.actor, wait.words) == ("wait", ("250ms",))
    assert script.hosts == ("client", "server")
    assert script.waits_s == 0.25


def test_packets_that_are_expected() -> None:
    script = parse_script(
        "client > server [S] data=5 cookie=cached with=mss,sack => lost\n"
        "...\n"
        "server > client [S.] ack=6 after=1s => [S.] cookie=00ff ack=6\n"
        "client > server [P.] data=any times=3 => twice\n"
    )
    first, anything, second, third = script.expectations
    assert first.segment == Segment(SYN, 5, "cached", None, frozenset({"mss", "sack"}))
    assert first.arriving == LOST
    assert anything.segment is None
    assert (second.after_s, second.segment) == (1.0, Segment(SYN | ACK, 0, "none", 6))
    assert second.arriving == Segment(SYN | ACK, 0, "00ff", 6)
    assert (third.times, third.arriving) == (3, TWICE)
    assert third.segment == Segment(PSH | ACK, None)
    (flight,) = parse_script("client > server [P.] tls=client-hello+early,sealed*2").expectations
    assert flight.segment == Segment(PSH | ACK, None, tls="client-hello+early,sealed*2")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("clint send a", "'clint' is no actor (did you mean 'client'?)"),
        ("server lisen s", "did you mean 'listen'?); allowed: listen, accept"),
        ("client", "client does nothing; allowed: listen"),
        ("server listen s fastopn=1", "fastopn= is unknown to it; usage: server listen SOCKET"),
        ("server listen s port=eighty", "port= takes a whole number"),
        ("client sendto a nowhere 5B", "sendto takes a host: client"),
        ("client sendto a server five", "'five' is no data: \"text\", or a size such as 1000B"),
        ("client connect A server", "'A' is no name of a socket"),
        ("client close a -> ok", "close has no result; leave out -> ok"),
        ("client connect a server -> ok now", "-> takes one result"),
        ("wait soon", "wait takes a time"),
        ("client visit many", "visit takes a whole number"),
        ("client visit 9 from=x", "from= takes a whole number"),
        ("client visit 2 from=131071", "visit: the prefix has 131072 addresses"),
        ("client flush -> ok", "flush has no result"),
        ("server key 0011", "key takes 32 hexadecimal digits"),
        ("middlebox strip cookies client > server", "strip takes an option: mss"),
        ("middlebox cookie xyz client > server", "cookie takes 2 to 32 hexadecimal digits"),
        ("middlebox drop client server data", "drop takes FROM > TO"),
        ("middlebox drop client > server syn", "'syn' is neither flags, such as [S], nor"),
        ("middlebox nat client address=10.0.0.1", "address= takes an IPv4 address kept for"),
        ("attacker sned client > server [S]", "did you mean 'send'?"),
        ("client > nowhere [S]", "'nowhere' is no host"),
        ("client > server [Q]", "a packet has its flags as tcpdump prints them"),
        ("client > server [S] size=5", "'size' says nothing of a packet; allowed: data"),
        ("client > server [S] cookie=fresh", "cookie= takes request, new, cached"),
        ("client > server [S] with=nonce", "'nonce' is no TCP option"),
        ("client > server [S] times=0", "times= takes a whole number from 1 to 1000"),
        ("client > server [S] after=late", "after= takes a time"),
        ("client > server [P.] tls=hello", "tls= takes records, such as client-hello"),
        ("client hello a early=five", "early= takes data"),
        ("server early twice", "early takes on, off, once"),
        ('client send a "open', "a quotation mark has no partner"),
    ],
)
def test_a_line_that_is_none_says_what_is_allowed(line: str, said: str) -> None:
    ((number, problem),) = problems(f"wait 1s\n{line}\n")
    assert number == 2
    assert said in problem


def test_all_that_is_wrong_is_said_at_once() -> None:
    found = problems("clint send a\n\nwait never\nclient > server [Q]\n")
    assert [line for line, _ in found] == [1, 3, 4]


def test_a_socket_has_to_be_made_before_it_is_used() -> None:
    assert problems("client send a 5B\nserver accept s b\nclient hello a\n") == [
        (1, "client has no socket 'a' yet"),
        (2, "server has no socket 's' yet"),
        (3, "client has no socket 'a' yet"),
    ]


def test_words() -> None:
    ends = [bytes((198, 18, 0, 1)), bytes((198, 19, 9, 9)), bytes((198, 20, 0, 1))]
    assert [describe_end(end) for end in ends] == ["prefix", "prefix", "198.20.0.1"]
    assert [parse_time(word) for word in ("3s", "250ms", "2.5s", "3")] == [3.0, 0.25, 2.5, None]
    assert (parse_size("1000B"), parse_size("1000")) == (1000, None)
    assert (parse_data("30B") or b"")[24:] == b"yzabcd"
    assert parse_data('"a \\"b\\""') == b'a "b"'
    assert [describe_data(data) for data in (b"hello", b"abc", b"\0\1", b"")] == [
        '"hello"', "3B", "2B", "0B",
    ]  # fmt: skip
    assert parse_flags("[S.]") == SYN | ACK
    assert [parse_flags(word) for word in ("S", "[]", "[X]")] == [None, None, None]
    assert describe_flags(SYN | ACK | PSH) == "[SP.]"
