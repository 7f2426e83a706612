"""Connections as the capture shows them: lengths, retransmissions, times, damaged frames."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.capture.connections import Connection, read_connection
from testbed.capture.flows import Flow, speaks_tls
from testbed.capture.packets import Packet
from tests.capture.packets import (
    ACK,
    COOKIE,
    REQUEST,
    START_NS,
    SYN,
    Capture,
    Visit,
    client_hello,
)


def only(capture: Capture, folder: Path) -> Connection:
    (connection,) = connections_of(capture, folder)
    return connection


def connections_of(capture: Capture, folder: Path) -> list[Connection]:
    return [read_connection(flow) for flow in capture.flows(folder).flows]


def test_times_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    capture = Capture()
    Visit(capture, 2000).open(REQUEST)
    found = only(capture, tmp_path)
    assert found.syn_time_ns == START_NS
    assert found.synack_time_ns == START_NS + 1_000_000
    assert found.server == "10.10.0.1:80"


@given(size=st.integers(min_value=4, max_value=1460), snap=st.integers(min_value=66, max_value=400))
def test_a_cut_frame_counts_its_whole_payload(
    tmp_path_factory: pytest.TempPathFactory, size: int, snap: int
) -> None:
    capture = Capture(snap=70 + snap)
    Visit(capture, 2000).open((b"GET /" + b"x" * size)[:size])
    found = only(capture, tmp_path_factory.mktemp("cut"))
    assert (found.payload, found.syn_data_acked, found.carries_request) == (size, True, True)


def test_a_retransmitted_syn(tmp_path: Path) -> None:
    capture = Capture()
    visit = Visit(capture, 2000)
    visit.syn(REQUEST, COOKIE, at_ms=0)
    visit.syn(at_ms=1000)  # Linux leaves the data out of the second try
    visit.synack(0, at_ms=1020)
    found = only(capture, tmp_path)
    assert (found.syns, found.payload, found.syn_data_acked) == (2, len(REQUEST), False)
    assert found.syn_time_ns == START_NS


def test_retransmitted_data(tmp_path: Path) -> None:
    capture = Capture()
    visit = Visit(capture, 2000)
    visit.open()
    visit.send(0, REQUEST)
    visit.send(len(REQUEST), b"")
    visit.send(len(REQUEST), b"")
    visit.send(0, REQUEST)
    visit.send(len(REQUEST), REQUEST)
    assert only(capture, tmp_path).retransmits == 1


def test_a_second_synack_changes_nothing(tmp_path: Path) -> None:
    capture = Capture()
    visit = Visit(capture, 2000)
    visit.syn(REQUEST, COOKIE, at_ms=0)
    visit.synack(len(REQUEST), at_ms=20)
    visit.synack(0, COOKIE, at_ms=1020)
    found = only(capture, tmp_path)
    assert found.syn_data_acked
    assert not found.new_cookie
    assert found.synack_time_ns == START_NS + 20_000_000


def test_one_address_and_port_used_twice(tmp_path: Path) -> None:
    capture = Capture()
    Visit(capture, 2000).open(REQUEST)
    Visit(capture, 2000, isn=77).open(at_ms=10)
    found = connections_of(capture, tmp_path)
    assert [c.payload for c in found] == [len(REQUEST), 0]


def test_connections_are_in_the_order_of_their_syns(tmp_path: Path) -> None:
    capture = Capture()
    ports = [2005, 2001, 2003]
    for port in ports:
        Visit(capture, port, isn=port).syn()
    found = connections_of(capture, tmp_path)
    assert [c.sequence for c in found] == ports


def test_what_is_not_of_a_connection_is_left_out(tmp_path: Path) -> None:
    capture = Capture()
    Visit(capture, 2000).synack(0)
    Visit(capture, 2001).send(0, REQUEST)
    capture.packets.append((START_NS, b"\xff" * 12 + b"\x08\x06" + bytes(28)))  # ARP
    assert connections_of(capture, tmp_path) == []


def test_a_frame_without_an_ethernet_header_is_a_value_error(tmp_path: Path) -> None:
    capture = Capture(packets=[(START_NS, bytes(5))])
    with pytest.raises(ValueError, match=r"client\.pcap: a frame cannot be read: got 5, 14 needed"):
        capture.flows(tmp_path)


@pytest.mark.parametrize(("client", "server", "shift"), [
    (b"\3\3\7\1", b"\3\3\2\1", 7), (b"\3\3\7\1", b"", 0), (b"", b"\3\3\2\1", 0),
])  # fmt: skip
def test_windows_are_scaled_where_both_ends_scale(client: bytes, server: bytes, shift: int) -> None:
    syn, synack = (
        Packet(0, b"", 60, "TCP", flags=flags, options=options)
        for flags, options in ((SYN, client), (SYN | ACK, server))
    )
    assert Flow(syn, [(True, syn), (False, synack)], synack).window_shift == shift
    assert Flow(syn, [(True, syn)]).window_shift == 0


@pytest.mark.parametrize("early", [True, False])
def test_tls_is_told_by_its_port_or_by_its_first_bytes(early: bool, tmp_path: Path) -> None:
    capture = Capture()
    sent = ((443, b""), (8443, client_hello(300)), (80, REQUEST), (8080, REQUEST), (8081, b""))
    for port, payload in sent:
        visit = Visit(capture, 2000 + port, server_port=port)
        visit.open(payload if early else b"")
        visit.send(0, payload)
    found = {flow.syn.target_port: speaks_tls(flow) for flow in capture.flows(tmp_path).flows}
    assert found == {443: True, 8443: True, 80: False, 8080: False, 8081: False}
