"""Judgement of a load on a server: each thing that is said twice, said differently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.proof import evidence
from testbed.proof.check import Check
from tests.capture.packets import ACK, REQUEST, Capture, Visit
from wings.server_loads.conduct import count_handshake_acks
from wings.server_loads.counts import check_generator, check_link, check_server
from wings.server_loads.evidence import ServedEvidence, ServedObservation
from wings.server_loads.judgement import OWN_CHECKS, judge
from wings.server_loads.ledger import check_ledger, check_prices
from wings.server_loads.management import check_mechanism
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.spec import Mechanism, ServerLoad, ServerSpec
from wings.server_loads.sysctls import own_sysctls
from wings.server_loads.tests.loads import (
    COUNTERS,
    LAB,
    LOAD,
    TRAFFIC,
    TRIAL,
    served,
    server_counts,
)
from wings.server_loads.throughput import check_asked, check_responses

CLIENT, SERVER = COUNTERS["client"], COUNTERS["server"]
NEAR = replace(LOAD, link=replace(LOAD.link, rtt_ms=2.0))
KNOBS = {f"client.{name}": value for name, value in own_sysctls(LOAD.arrivals).items()}
TAKEN = {end: counts["TcpInSegs"] for end, counts in COUNTERS.items()}


def found(
    check: Check,
    load: ServedLoad,
    asked: ServerLoad = LOAD,
    *,
    taken: Mapping[str, int] = TAKEN,
    knobs: dict[str, str] = KNOBS,
    traffic: dict[str, int] = TRAFFIC,
    kernel: str = "virtual",
    **counters: dict[str, int],
) -> list[str]:
    """What a check finds in a load; ``counters`` of an end are those of a good one if not given."""
    trial = replace(TRIAL, condition=asked, kernel=kernel)
    lab = replace(LAB, knobs=knobs, traffic=traffic)
    observed = ServedObservation(
        lab=lab, counters=COUNTERS | counters, served=load, taken_later=dict(taken), workers=1
    )
    return [*check(ServedEvidence(trial, observed, Path()))]


def only(found: Iterable[str]) -> str:
    (sentence,) = found
    return sentence


def test_a_load_whose_numbers_agree_has_no_problem() -> None:
    good = served()
    of_reports = [each for each in OWN_CHECKS if "flows" not in each.needs]
    checks = set(of_reports) - {check_responses}  # there is no capture
    assert not [problem for check in checks for problem in found(check, good, NEAR)]


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
    assert only(found(check_generator, served(**wrong))) == sentence


def test_a_retry_is_a_connection_of_the_kernel_s() -> None:
    """Those of the warm-up are not in the generator's count."""
    assert not found(check_generator, served(all_started=27, retries=2))


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
    assert only(found(check_server, wrong)) == sentence


@pytest.mark.parametrize(("left", "fits"), [(0, True), (129, True), (130, False)])
def test_the_queue_may_be_full_at_the_end(left: int, fits: bool) -> None:
    opened = {"TcpPassiveOpens": 30 + left}
    assert (not found(check_server, served(), server=opened)) is fits


def test_the_link() -> None:
    def said(withheld: int) -> list[str]:
        fewer = SERVER | {"TcpInSegs": 179}
        managed = served(management={"withheld": withheld})
        return found(check_link, managed, taken={}, server=fewer)

    assert only(said(0)) == ("the link delivered 180 packets to the server, its kernel took 179")
    assert only(said(2)) == (
        "the link delivered 180 packets but for 2 to the server, its kernel took 179"
    )
    assert not said(1)


@pytest.mark.parametrize(("before", "after", "fits"), [
    (178, 181, True), (178, 180, True), (180, 181, True), (178, 179, False), (181, 182, False),
])  # fmt: skip
def test_a_kernel_is_read_before_and_after_the_link(before: int, after: int, fits: bool) -> None:
    """In real time segments may be sent again between two readings."""
    counted, taken = SERVER | {"TcpInSegs": before}, TAKEN | {"server": after}
    told = found(check_link, served(), taken=taken, server=counted)
    said = f"the link delivered 180 packets to the server, its kernel took {before} to {after}"
    assert told == ([] if fits else [said])


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
    assert only(found(check_ledger, wrong)) == sentence


def test_a_syn_that_the_link_dropped_is_in_no_ledger() -> None:
    resent = CLIENT | {"TcpExtTCPSynRetrans": 1}
    assert only(found(check_ledger, served(), client=resent)) == (
        "the ledger has 30 SYNs, the clients' kernel sent 31"
    )
    assert not found(check_ledger, served(), client=resent, traffic=TRAFFIC | {"up.dropped": 1})


def test_nor_is_one_that_did_not_leave_the_clients() -> None:
    resent = CLIENT | {"TcpExtTCPSynRetrans": 1, "TcpExtTCPRetransFail": 1}
    assert not found(check_ledger, served(), client=resent)


def test_in_real_time_there_is_no_ledger() -> None:
    assert not found(check_ledger, served(prices_ns={}, server={}))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"seconds": 3, "replies_per_s": 10.0}, "3 s were measured, asked were 2 s"),
        ({"replies_per_s": 15.5},
         "15.5 responses a second for 2 s are more than the 30 that clients had"),
        ({"answered": 19}, "0 % failed, but 1 of 20 connections"),
        ({"response_mean_ms": 4.7},
         "the mean response took 4.7 ms, those of the halves [4.6, 4.4]"),
        ({"response_p50_ms": 3.9}, "half of the responses came within 3.9 ms, which 4 ms preclude"),
    ],
)  # fmt: skip
def test_another_load_than_was_asked(wrong: dict[str, object], sentence: str) -> None:
    assert only(found(check_asked, served(**wrong), NEAR)) == sentence


def test_sysctls_of_the_clients_are_read_back() -> None:
    other = KNOBS | {"client.net.ipv4.tcp_tw_reuse": "2"}
    assert only(found(check_asked, served(), NEAR, knobs=other)) == (
        "client: net.ipv4.tcp_tw_reuse was read back as '2', not '1'"
    )


def test_the_price_list() -> None:
    assert not found(check_prices, served(prices_ns={}), kernel="host")
    assert "asked was {}" in only(found(check_prices, served(), kernel="host"))
    assert only(found(check_prices, served(server_cpu_pct=102.0))) == (
        "the server's processor was busy for 102 % of the time"
    )
    assert only(found(check_prices, served(server_cpu_pct=None))) == (
        "the ledger does not say how busy the server's processor was"
    )


def mechanism(name: Mechanism, good: ServedLoad, **counters: int) -> list[str]:
    load = replace(LOAD, server=ServerSpec(mechanism=name))
    return found(check_mechanism, good, load, server=SERVER | counters)


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


SEEN = ServedObservation(lab=LAB, counters=COUNTERS, served=served(), taken_later=TAKEN, workers=1)
NOT_SERVED = "connections were reset, which default never does"


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (replace(SEEN, problems=("a program complained",)), "a program complained"),
        (replace(SEEN, served=served(limits=("ports",))), "the generator was itself the limit"),
        (replace(SEEN, served=served(server=server_counts(lacked=2))), "the server lacked"),
        (replace(SEEN, taken_later={}, counters=COUNTERS | {"server": SERVER | {"TcpInSegs": 1}}),
         "the link delivered 180 packets to the server, its kernel took 1"),
        (replace(SEEN, served=served(server=server_counts(unseen=3))), "3 segments are not in"),
        (replace(SEEN, served=served(reset=2)), f"2 {NOT_SERVED}"),
        (replace(SEEN, served=served(seconds=3)), "3 s were measured, asked were 2 s"),
        (replace(SEEN, served=served(server_cpu_pct=200.0)), "processor was busy for 200 %"),
        (replace(SEEN, counters=COUNTERS | {"client": CLIENT | {"TcpOutSegs": 181}}),
         "the client's kernel sent 181 segments, the capture shows"),
    ],
)  # fmt: skip
def test_each_is_in_the_proof(tmp_path: Path, seen: ServedObservation, sentence: str) -> None:
    capture = Capture()
    for number in range(60):  # as many packets as the client's kernel sent, or took
        Visit(capture, 2000 + number).open()
    capture.write(tmp_path / "client.pcap")
    judged = judge(TRIAL, seen, tmp_path)
    assert judged.measured == seen.served and judged.proof is not None
    assert any(sentence in problem for problem in judged.proof.problems)
    good = judge(TRIAL, SEEN, tmp_path).proof
    assert good is not None and not any(sentence in problem for problem in good.problems)


def test_of_a_bounded_capture_only_the_beginning_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = Capture(snap=90)
    Visit(capture, 2000).open(REQUEST)
    capture.write(tmp_path / "client.pcap")
    whole = judge(TRIAL, SEEN, tmp_path).proof
    monkeypatch.setattr(evidence, "CAPTURED_MOST", 3)
    bounded = judge(TRIAL, SEEN, tmp_path).proof
    assert whole is not None and bounded is not None
    assert (whole.handshake_acks, bounded.handshake_acks) == (1, None)
    for sentence, of_both in (("TcpActiveOpens grew by 30", False), ("less than 256", True)):
        assert any(sentence in problem for problem in whole.problems)
        assert any(sentence in problem for problem in bounded.problems) is of_both


def test_without_a_capture_or_an_end_there_is_no_proof(tmp_path: Path) -> None:
    assert judge(TRIAL, SEEN, tmp_path).proof is None
    Capture().write(tmp_path / "client.pcap")
    assert judge(TRIAL, replace(SEEN, served=None), tmp_path).proof is None
