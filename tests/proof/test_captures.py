"""Both directions of every connection are in the capture, and nothing of a frame is cut off."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.capture.connections import read_connection
from testbed.capture.flows import Flows
from testbed.capture.packets import Packet
from testbed.proof.captures import check_both_ways, check_counted, check_whole
from tests.capture.packets import ACK, CLIENT, FIN, REQUEST, RST, SERVER, Capture, Visit
from tests.evidence import found

BODY = bytes(1448)
UP, DOWN = ((CLIENT, 2000), (SERVER, 80)), ((SERVER, 80), (CLIENT, 2000))
CLIENT_ISN, SERVER_ISN = 0xFFFFFFF0, 5000


def exchange(*, without: str = "") -> Capture:
    """A request, an answer of three segments, and the farewell; ``without`` one part of it."""
    capture = Capture()
    visit = Visit(capture, 2000)
    visit.syn()
    if without != "SYN-ACK":
        visit.synack(0)
    visit.send(0, b"")
    if without != "request":
        visit.send(0, REQUEST)
    asked, told = CLIENT_ISN + 1 + len(REQUEST), SERVER_ISN + 1
    for number in range(3):
        if without != f"answer {number}":
            capture.add(*DOWN, ACK, told + 1448 * number, asked, BODY, b"")
    end = told + 3 * 1448
    capture.add(*UP, ACK, asked, end, b"", b"")
    capture.add(*DOWN, ACK | FIN, end, asked, b"", b"")
    capture.add(*UP, ACK | FIN, asked, end + 1, b"", b"")
    capture.add(*DOWN, ACK, end + 1, asked + 1, b"", b"")
    return capture


def missing(flows: Flows) -> list[str]:
    return found(check_both_ways, flows=flows)


def counted(capture: Capture, tmp_path: Path, client: dict[str, int]) -> list[str]:
    shown = {"capture": capture.read(tmp_path), "flows": capture.flows(tmp_path)}
    return found(check_counted, counters={"client": client}, transits={}, **shown)


def test_all_of_it_is_there(tmp_path: Path) -> None:
    flows = exchange().flows(tmp_path)
    assert (flows.up, flows.down, len(flows.flows)) == (5, 6, 1)
    assert missing(flows) == []
    assert counted(exchange(), tmp_path, {"TcpInSegs": 6, "TcpOutSegs": 5}) == []
    assert len(flows.arrivals) == 6 and flows.arrivals[1][1] == 1488


@pytest.mark.parametrize(
    ("part", "said"),
    [("SYN-ACK", "the SYN-ACKs of 1 of 1 connections are not in the capture"),
     ("answer 0", "1 of 1 connections: 1448 bytes of the server were acknowledged, and are not"),
     ("answer 1", "1 of 1 connections: 1448 bytes of the server were acknowledged, and are not"),
     ("answer 2", "1 of 1 connections: 1448 bytes of the server were acknowledged, and are not"),
     ("request", f"1 of 1 connections: {len(REQUEST)} bytes of the client were acknowledged")],
)  # fmt: skip
def test_what_went_by_another_path(tmp_path: Path, part: str, said: str) -> None:
    assert "; ".join(missing(exchange(without=part).flows(tmp_path))).startswith(said)


def test_what_was_sent_twice_counts_once(tmp_path: Path) -> None:
    capture = exchange(without="answer 1")
    capture.add(*DOWN, ACK, SERVER_ISN + 1, 0, BODY, b"")
    assert "1448 bytes of the server" in "".join(missing(capture.flows(tmp_path)))
    capture.add(*DOWN, ACK, SERVER_ISN + 1 + 1448, 0, BODY, b"")
    assert missing(capture.flows(tmp_path)) == []


def test_a_syn_with_data_and_one_that_nobody_answered(tmp_path: Path) -> None:
    capture = Capture()
    Visit(capture, 2000).open(REQUEST)
    Visit(capture, 2001).syn(at_ms=2)
    # It was refused: a RST acknowledges the SYN, and nothing is open.
    capture.add((CLIENT, 2001), (SERVER, 80), RST | ACK, CLIENT_ISN + 1, 0, b"", b"")
    flows = capture.flows(tmp_path)
    assert len(flows.flows) == 2
    assert missing(flows) == []


def test_the_kernel_took_or_sent_more(tmp_path: Path) -> None:
    assert counted(exchange(), tmp_path, {"TcpInSegs": 7, "TcpOutSegs": 9}) == [
        "the client's kernel took 7 segments, the capture shows 6",
        "the client's kernel sent 9 segments, the capture shows 5",
    ]


@pytest.mark.parametrize(("snap", "cut"), [(65535, 0), (256, 0), (255, 3), (66, 4)])
def test_frames_that_were_cut(tmp_path: Path, snap: int, cut: int) -> None:
    capture = exchange()
    capture.snap = snap
    said = f"{cut} frames were captured with less than 256 bytes"
    assert found(check_whole, capture=capture.read(tmp_path)) == ([said] if cut else [])


def test_a_header_that_is_not_there(tmp_path: Path) -> None:
    capture = exchange()
    capture.snap = 40
    with pytest.raises(ValueError, match="a TCP header was not captured"):
        capture.flows(tmp_path)


COUNTED = {
    "client": {"TcpInSegs": 6, "TcpOutSegs": 4, "TcpRetransSegs": 1},
    "server": {"TcpInSegs": 5, "TcpOutSegs": 6, "TcpPassiveOpens": 1, "TcpRetransSegs": 1,
               "TcpExtTCPSynRetrans": 1},
}  # fmt: skip


def datagram(up: bool, port: int) -> Packet:
    client, server = (socket.inet_aton(each) for each in (CLIENT, SERVER))
    ends = (client, server) if up else (server, client)
    ports = (40000, port) if up else (port, 40000)
    return Packet(0, b"", 0, "UDP", *ends, 60, 0, *ports, b"", 32)


def of_kernels(
    tmp_path: Path, end: str = "client", *ways: bool, port: int = 443, **other: int
) -> list[str]:
    capture = exchange().read(tmp_path)
    capture = replace(capture, packets=(*capture.packets, *(datagram(up, port) for up in ways)))
    flows = exchange().flows(tmp_path)
    counters = COUNTED | {end: COUNTED[end] | other}
    connections = tuple(map(read_connection, flows.flows))
    return found(
        check_counted, logs=(), counters=counters, flows=flows, capture=capture,
        at_server=exchange().read(tmp_path), connections=connections, transits={"up": []},
    )  # fmt: skip


@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize(("end", "name"), [(end, n) for end in COUNTED for n in COUNTED[end]])
def test_kernels_count_what_was_captured(tmp_path: Path, end: str, name: str, more: int) -> None:
    assert of_kernels(tmp_path) == []
    assert len(of_kernels(tmp_path, end, **{name: COUNTED[end][name] + more})) == 1
    assert len(of_kernels(tmp_path, end, UdpInDatagrams=1)) == 1


@pytest.mark.parametrize(("taken", "wrong"), [(0, 1), (1, 0), (3, 0), (4, 1)])
def test_what_comes_behind_an_end_s_last_word_may_be_taken(
    tmp_path: Path, taken: int, wrong: int
) -> None:
    counted = {"UdpInDatagrams": taken, "UdpOutDatagrams": 2}
    assert len(of_kernels(tmp_path, "client", True, False, True, False, False, **counted)) == wrong


@pytest.mark.parametrize(("taken", "wrong"), [(0, 1), (1, 0), (2, 0), (3, 1)])
def test_of_copies_of_an_answer_one_is_read(tmp_path: Path, taken: int, wrong: int) -> None:
    counted = {"UdpInDatagrams": taken, "UdpOutDatagrams": 1}
    ways = (True, False, False)
    assert len(of_kernels(tmp_path, "client", *ways, port=53, **counted)) == wrong
