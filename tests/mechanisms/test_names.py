"""Look-ups on the link: one question for each host that the client goes to, or none at all."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.capture.lookups import parse_question
from testbed.mechanisms.names.proof import check_lookups, check_questions
from testbed.model import Condition, Dns, PageLoad
from tests.capture.packets import CLIENT, Capture, Visit
from tests.evidence import found

ADDRESSES = ("10.10.0.1", "10.10.0.2", "10.10.0.3")
NAMES = ("www.page.test", "Img.page.test", "cdn.page.test.")
HOSTS = dict(zip(ADDRESSES, NAMES, strict=True))
IPV4, IPV6 = 1, 28


def question(name: str, kind: int = IPV4) -> bytes:
    """A DNS message with one question (RFC 1035 section 4)."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    head = bytes.fromhex("123401000001000000000000")
    return head + labels + b"\0" + kind.to_bytes(2, "big") + b"\0\x01"


def ask(capture: Capture, message: bytes, port: int = 40000, *, answer: bool = False) -> None:
    ends, ports = (CLIENT, "10.10.255.53"), (port, 53)
    source, target = reversed(ends) if answer else ends
    sport, dport = reversed(ports) if answer else ports
    asked = dpkt.udp.UDP(sport=sport, dport=dport, data=message)
    asked.ulen = len(asked)
    ip = dpkt.ip.IP(src=socket.inet_aton(source), dst=socket.inet_aton(target), p=17, data=asked)
    ip.len = len(ip)
    capture.packets.append((capture.packets[-1][0] + 1 if capture.packets else 1,
                            bytes(dpkt.ethernet.Ethernet(data=ip))))  # fmt: skip


def check(capture: Capture, path: Path, dns: Dns) -> tuple[str, ...]:
    asked = Condition("p", "graph", dns=dns)
    shown = {"capture": capture.read(path), "hosts": HOSTS, "load": None}
    return tuple(found(check_lookups, condition=asked, **shown))


def test_a_question_for_each_host(tmp_path: Path) -> None:
    capture = Capture(snap=256)
    for port, (address, name) in enumerate(HOSTS.items(), start=2000):
        ask(capture, question(name.lower().rstrip("."), IPV6))
        ask(capture, question(name.upper().rstrip(".")))
        Visit(capture, port, server=address).open()
        Visit(capture, port + 100, server=address).open()
    assert check(capture, tmp_path, "resolver") == ()
    said = "dns = hosts, but 6 questions for names crossed the link"
    assert check(capture, tmp_path, "hosts") == (said,)


def test_no_question_at_all(tmp_path: Path) -> None:
    capture = Capture()
    Visit(capture, 2000).open()
    assert check(capture, tmp_path, "hosts") == ()
    said = "dns = resolver, but no name was asked for on the link"
    assert check(capture, tmp_path, "resolver") == (said,)


@pytest.mark.parametrize("kind", [IPV6, None])
def test_hosts_that_were_known_already(tmp_path: Path, kind: int | None) -> None:
    """From a file: nobody asks, or only for another kind of address."""
    capture = Capture()
    ask(capture, question("www.page.test"))
    for port, (address, name) in enumerate(HOSTS.items(), start=2000):
        if kind is not None:
            ask(capture, question(name.rstrip("."), kind))
        Visit(capture, port, server=address).open()
    assert check(capture, tmp_path, "resolver") == (
        "dns = resolver, but 2 of 3 hosts were gone to without a question on the link: "
        "Img.page.test, cdn.page.test.",
    )


def test_a_question_after_the_first_connection_comes_too_late(tmp_path: Path) -> None:
    capture = Capture()
    ask(capture, question("cdn.page.test"))
    Visit(capture, 2000).open()
    ask(capture, question("www.page.test"))
    (problem,) = check(capture, tmp_path, "resolver")
    assert "1 of 1 hosts" in problem and "www.page.test" in problem


def test_an_address_that_no_host_has(tmp_path: Path) -> None:
    capture = Capture()
    ask(capture, question("www.page.test"))
    Visit(capture, 2000, server="10.10.0.9").open()
    assert "10.10.0.9" in check(capture, tmp_path, "resolver")[0]


def test_a_question_that_was_cut_names_nobody() -> None:
    whole = question("www.page.test")
    assert parse_question(whole) == ("www.page.test", 1)
    assert {parse_question(whole[:size]) for size in range(len(whole) - 2)} == {None}


@given(message=st.binary(max_size=80))
def test_any_bytes_are_read(message: bytes) -> None:
    assert parse_question(message) is None or isinstance(parse_question(message), str)


@pytest.mark.parametrize(
    ("answered", "again"),
    [("yy", False), ("yny", False), ("yyy", True), ("ynyy", False), ("ynyyy", True)],
)
def test_who_got_no_answer_asks_again(tmp_path: Path, answered: str, again: bool) -> None:
    capture = Capture(snap=256)
    for port, comes in enumerate(answered, start=40000):
        ask(capture, question("www.page.test"), port)
        if comes == "y":
            ask(capture, question("www.page.test"), port, answer=True)
    load = PageLoad("wget2", "2.2.0", 9.0, ())
    said = found(check_questions, capture=capture.read(tmp_path), hosts=HOSTS, load=load)
    assert bool(said) == again


def test_hosts_of_websockets_alone(tmp_path: Path) -> None:
    """A page may open one to a host that it has no request of."""
    capture = Capture()
    ask(capture, question("live.page.test"))
    load = PageLoad("chromium", "156", 9.0, ())
    shown = {"capture": capture.read(tmp_path), "hosts": HOSTS}
    for sockets in (("wss://live.page.test:81/socket",), ("wss://other.page.test/",), ()):
        opened = replace(load, sockets=sockets)
        for each in (opened, replace(load, earlier=(opened,))):
            told = found(check_questions, load=each, **shown)
            assert bool(told) == ("live" not in str(sockets))
