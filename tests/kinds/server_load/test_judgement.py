"""Judgement of a load on a server: each thing that is said twice, said differently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.kinds.server_load.judgement import (
    check_generator,
    check_ledger,
    check_link,
    check_mechanism,
    check_server,
    count_handshake_acks,
)
from testbed.kinds.server_load.measurement import ServedLoad
from testbed.kinds.server_load.spec import Mechanism, ServerSpec
from tests.kinds.server_load.loads import COUNTERS, LOAD, TRAFFIC, served, server_counts
from tests.wire.packets import ACK, Capture, Visit

CLIENT, SERVER = COUNTERS["client"], COUNTERS["server"]
TAKEN = {end: counts["TcpInSegs"] for end, counts in COUNTERS.items()}


def only(found: Iterator[str]) -> str:
    (sentence,) = found
    return sentence


def test_a_load_whose_numbers_agree_has_no_problem() -> None:
    good = served()
    assert not [
        *check_generator(good, CLIENT),
        *check_server(good, LOAD, SERVER),
        *check_link(TRAFFIC, COUNTERS, TAKEN, 0),
        *check_ledger(good, CLIENT, SERVER, TRAFFIC),
        *check_mechanism(LOAD, good, SERVER),
    ]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"limits": ("ports", "lateness")},
         "the generator was itself the limit: it lacked ports, lateness"),
        ({"answered": 19}, "20 connections started, and 19 ended"),
        ({"all_started": 29}, "the clients' kernel opened 30 connections, the generator 29"),
        ({"all_started": 30, "retries": 2},
         "the clients' kernel opened 30 connections, the generator 32"),
    ],
)  # fmt: skip
def test_the_generator(wrong: dict[str, object], sentence: str) -> None:
    assert only(check_generator(served(**wrong), CLIENT)) == sentence


def test_a_retry_is_a_connection_of_the_kernel_s() -> None:
    """Those of the warm-up are not in the generator's count."""
    assert not [*check_generator(served(all_started=27, retries=2), CLIENT)]


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"accepted": 31}, "the server accepted 31 connections, its kernel opened 30"),
        ({"responses": 29}, "the server sent 29 responses, clients had 30"),
        ({"lacked": 2}, "the server lacked descriptors or memory for 2 connections"),
    ],
)
def test_the_server(counts: dict[str, int], sentence: str) -> None:
    wrong = served(server=server_counts(**counts))
    assert only(check_server(wrong, LOAD, SERVER)) == sentence


@pytest.mark.parametrize(("left", "fits"), [(0, True), (129, True), (130, False)])
def test_the_queue_may_be_full_at_the_end(left: int, fits: bool) -> None:
    opened = {"TcpPassiveOpens": 30 + left}
    assert (not [*check_server(served(), LOAD, opened)]) is fits


def test_the_link() -> None:
    fewer = COUNTERS | {"server": SERVER | {"TcpInSegs": 179}}
    assert only(check_link(TRAFFIC, fewer, {}, 0)) == (
        "the link delivered 180 packets to the server, its kernel took 179"
    )
    assert only(check_link(TRAFFIC, fewer, {}, 2)) == (
        "the link delivered 180 packets but for 2 to the server, its kernel took 179"
    )
    assert not [*check_link(TRAFFIC, fewer, {}, 1)]


@pytest.mark.parametrize(("before", "after", "fits"), [
    (178, 181, True), (178, 180, True), (180, 181, True), (178, 179, False), (181, 182, False),
])  # fmt: skip
def test_a_kernel_is_read_before_and_after_the_link(before: int, after: int, fits: bool) -> None:
    """In real time segments may be sent again between two readings."""
    counters = COUNTERS | {"server": SERVER | {"TcpInSegs": before}}
    found = [*check_link(TRAFFIC, counters, TAKEN | {"server": after}, 0)]
    said = f"the link delivered 180 packets to the server, its kernel took {before} to {after}"
    assert found == ([] if fits else [said])


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"segments": 269, "owed_ns": server_counts()["owed_ns"] - 2500},
         "the ledger has 299 segments, the server's kernel 300 before it ended and 300 after it"),
        ({"unseen": 3}, "3 segments are not in the ledger"),
        ({"owed_ns": 1}, "the ledger has 1 ns, the price list says 1425000 ns"),
    ],
)  # fmt: skip
def test_the_ledger(counts: dict[str, int], sentence: str) -> None:
    wrong = served(server=server_counts(**counts))
    assert only(check_ledger(wrong, CLIENT, SERVER, TRAFFIC)) == sentence


def test_a_syn_that_the_link_dropped_is_in_no_ledger() -> None:
    resent = CLIENT | {"TcpExtTCPSynRetrans": 1}
    assert only(check_ledger(served(), resent, SERVER, TRAFFIC)) == (
        "the ledger has 30 SYNs, the clients' kernel sent 31"
    )
    assert not [*check_ledger(served(), resent, SERVER, TRAFFIC | {"up.dropped": 1})]


def test_nor_is_one_that_did_not_leave_the_clients() -> None:
    resent = CLIENT | {"TcpExtTCPSynRetrans": 1, "TcpExtTCPRetransFail": 1}
    assert not [*check_ledger(served(), resent, SERVER, TRAFFIC)]


def test_in_real_time_there_is_no_ledger() -> None:
    assert not [*check_ledger(served(prices_ns={}, server={}), CLIENT, SERVER, TRAFFIC)]


def mechanism(name: Mechanism, good: ServedLoad, **counters: int) -> list[str]:
    load = replace(LOAD, server=ServerSpec(mechanism=name))
    return [*check_mechanism(load, good, SERVER | counters)]


@pytest.mark.parametrize("name", ["default", "reserv", "default rst-fin"])
def test_in_silence_nothing_is_refused_or_reset(name: Mechanism) -> None:
    assert mechanism(name, served(reset=2)) == [
        f"2 connections were reset, which {name} never does"
    ]
    assert mechanism(name, served(refused=3)) == [
        f"3 connections were refused, which {name} never does"
    ]
    assert not mechanism(name, served(timed_out=3))


@pytest.mark.parametrize("name", ["abort", "no-syn-drop", "abort rst-syn"])
def test_what_finds_no_room_at_its_end_is_reset(name: Mechanism) -> None:
    assert not mechanism(name, served(reset=2))


def test_what_finds_no_room_at_its_syn_is_refused() -> None:
    assert not mechanism("reserv rst-syn", served(refused=2), TcpOutRsts=2)
    assert mechanism("reserv rst-syn", served(), TcpExtListenOverflows=4) == [
        "the server's queues were full 4 times, and it sent no reset"
    ]


def test_acks_of_syn_acks_are_told_from_all_others(tmp_path: Path) -> None:
    capture = Capture()
    served_one, dropped, refused = (Visit(capture, port) for port in (2000, 2001, 2002))
    served_one.open()
    served_one.send(0, b"GET / HTTP/1.1")
    served_one.answer(b"response")
    served_one.capture.add(("10.0.0.1", 2000), ("10.1.0.1", 80), ACK, 1, 5009)
    served_one.leave(14)
    # Its ACK finds no room: the SYN-ACK comes again, and is acknowledged again.
    dropped.open()
    dropped.send(0, b"GET / HTTP/1.1")
    dropped.synack(0)
    dropped.send(14, b"")
    refused.syn()
    assert count_handshake_acks(capture.flows(tmp_path)) == 3
