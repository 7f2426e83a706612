"""Knobs that the capture shows: name look-ups, requests on a connection, packet sizes."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import dpkt
import pytest

from testbed.model import Condition, TcpSpec
from testbed.wire.conduct import check_conduct
from tests.wire.packets import ACK, CLIENT, PUSH, REQUEST, SERVER, Capture

HOSTS = Condition("p", "graph", dns="hosts")


def ask(capture: Capture) -> None:
    """Add a question to the name server."""
    question = dpkt.udp.UDP(sport=40000, dport=53, data=b"question")
    question.ulen = len(question)
    ip = dpkt.ip.IP(
        src=socket.inet_aton(CLIENT), dst=socket.inet_aton("10.10.255.53"), p=17, data=question
    )
    ip.len = len(ip)
    capture.packets.append((1_700_000_000_000_000_000, bytes(dpkt.ethernet.Ethernet(data=ip))))


def request(capture: Capture, seq: int, port: int = 2000, payload: bytes = REQUEST) -> None:
    """Add a request of the client."""
    capture.add((CLIENT, port), (SERVER, 80), ACK | PUSH, seq, 1, payload)


def test_names_cross_the_link_only_with_a_resolver(tmp_path: Path) -> None:
    silent, asking = Capture(), Capture()
    request(silent, 1)
    ask(asking)
    request(asking, 1)
    without, with_names = silent.write(tmp_path / "a"), asking.write(tmp_path / "b")
    resolver = replace(HOSTS, dns="resolver")
    assert check_conduct(without, HOSTS) == check_conduct(with_names, resolver) == ()
    assert "no name was asked" in check_conduct(without, resolver)[0]
    assert "1 questions" in check_conduct(with_names, HOSTS)[0]


@pytest.mark.parametrize(("limit", "problems"), [(None, 0), (3, 0), (2, 0), (1, 1)])
def test_requests_on_a_connection(tmp_path: Path, limit: int | None, problems: int) -> None:
    capture = Capture()
    request(capture, 1)
    request(capture, 1)  # sent again: one request
    request(capture, 1 + len(REQUEST))
    request(capture, 1, port=2001)
    pcap = capture.write(tmp_path / "pcap")
    condition = replace(HOSTS, tcp=TcpSpec(requests_per_connection=limit))
    found = check_conduct(pcap, condition)
    assert len(found) == problems
    assert all("carried 2 requests" in problem for problem in found)


def test_an_offload_shows_as_a_packet_beyond_the_mtu(tmp_path: Path) -> None:
    capture = Capture(snap=256)
    request(capture, 1, payload=REQUEST + bytes(3000))
    assert "larger than the MTU" in check_conduct(capture.write(tmp_path / "pcap"), HOSTS)[0]
