"""Ladders of scenarios: what captures and calls become."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from testbed.capture.packets import ACK, FIN, PSH, RST, SYN
from wings.scenarios.analysis.ladder import MOST, draw_ladder
from wings.scenarios.tests.promised import COOKIE, HANDSHAKE, Sent, scenario_record


def labels(folder: Path, *sent: Sent) -> list[str]:
    exchange = draw_ladder(folder, scenario_record(folder, "one", sent=sent)).exchange
    return [rung.label for rung in exchange.rungs]


def test_flags_are_in_tcpdump_s_words_and_numbers_count_from_the_first_byte(tmp_path: Path) -> None:
    assert labels(
        tmp_path,
        *HANDSHAKE,
        Sent("server", 60, PSH | ACK, seq=901, ack=106, payload=b"at once"),
        Sent("client", 110, FIN | ACK, seq=106, ack=908),
        Sent("server", 160, RST, seq=908),
    ) == ["SYN, cookie 0123…, data 5", "SYN-ACK 6", "ACK 1", "data 7, ACK 6", "FIN, ACK 8",
          "RST"]  # fmt: skip


def test_a_cookie_is_asked_for_granted_and_cut(tmp_path: Path) -> None:
    assert labels(
        tmp_path,
        Sent("client", 0, SYN, seq=1, cookie=b""),
        Sent("server", 50, SYN | ACK, seq=9, ack=2, cookie=COOKIE),
        Sent("client", 100, ACK, seq=2, ack=10, cookie=COOKIE[:4]),
    ) == ["SYN, cookie request", "SYN-ACK 1, cookie 0123…", "cookie 0123… (4 B), ACK 1"]


def test_records_of_tls_are_named(tmp_path: Path) -> None:
    sealed = 2 * b"\x17\x03\x03\x00\x01x" + b"\x15\x03\x03\x00\x02\x02\x28"
    sent = Sent("client", 0, SYN, seq=1, payload=sealed)
    assert labels(tmp_path, sent) == ["SYN, sealed*2, alert"]


def test_what_is_sent_again_says_so(tmp_path: Path) -> None:
    assert labels(tmp_path, Sent("client", 0, SYN, seq=1, payload=b"hello", arrives=()),
                  Sent("client", 1000, SYN, seq=1)) == ["SYN, data 5", "SYN (again)"]  # fmt: skip


def test_several_connections_are_numbered(tmp_path: Path) -> None:
    exchange = draw_ladder(
        tmp_path,
        scenario_record(tmp_path, "two", sent=(
            Sent("client", 0, SYN, seq=1), Sent("client", 100, SYN, seq=5, port=40_001),
            Sent("server", 150, SYN | ACK, seq=7, ack=6, port=40_001),
        )),
    ).exchange  # fmt: skip
    assert [one.label for one in exchange.rungs] == ["1: SYN", "2: SYN", "2: SYN-ACK 1"]
    assert [one.connection for one in exchange.rungs] == [1, 2, 2]


def test_an_option_that_was_taken_out_is_named_where_it_arrives(tmp_path: Path) -> None:
    syn = Sent("client", 0, SYN, seq=1, payload=b"hello", cookie=COOKIE, arriving=b"")
    exchange = draw_ladder(tmp_path, scenario_record(tmp_path, "one", sent=(syn,))).exchange
    assert exchange.rungs[0].landings[0].label == "SYN, data 5, Fast Open stripped"


def test_of_many_packets_the_first_are_drawn(tmp_path: Path) -> None:
    many = [Sent("client", at, SYN, seq=1, port=20_000 + at) for at in range(MOST + 5)]
    ladder = draw_ladder(tmp_path, scenario_record(tmp_path, "one", sent=tuple(many)))
    assert len(ladder.exchange.rungs) == MOST
    assert f"(the first {MOST} of {MOST + 5} packets)" in ladder.to_svg()


def test_lost_and_repeated_packets(tmp_path: Path) -> None:
    sent = (
        Sent("client", 0, SYN, seq=1, arrives=()),
        Sent("client", 1000, SYN, seq=1, arrives=(0, 10)),
    )
    exchange = draw_ladder(tmp_path, scenario_record(tmp_path, "one", sent=sent)).exchange
    lost, twice = exchange.rungs
    assert (lost.landings, lost.receiver) == ((), "server")
    assert [landing.at_ms for landing in twice.landings] == [1050.0, 1060.0]


def test_who_is_told_of_an_unreachable_host_says_so(tmp_path: Path) -> None:
    sent = (*HANDSHAKE[:1], replace(HANDSHAKE[1], refused=True))
    exchange = draw_ladder(tmp_path, scenario_record(tmp_path, "one", sent=sent)).exchange
    assert [rung.landings == () for rung in exchange.rungs] == [False, True]
    told = exchange.remarks[-1]
    assert (told.host, told.at_ms, told.text) == ("server", 100.0, "ICMP: host unreachable")


def test_a_forged_packet_says_in_whose_name(tmp_path: Path) -> None:
    forged = Sent("attacker", 0, SYN, seq=1, receiver="server")
    exchange = draw_ladder(tmp_path, scenario_record(tmp_path, "one", sent=(forged,))).exchange
    assert exchange.rungs[0].label == "SYN, as client"
    assert exchange.left == ("client", "attacker")


def test_calls_are_remarks_and_times_count_from_the_first_packet(tmp_path: Path) -> None:
    exchange = draw_ladder(tmp_path, scenario_record(tmp_path, "one")).exchange
    assert [(one.host, one.at_ms, one.text) for one in exchange.remarks] == [
        ("server", -1.0, "listen(fastopen=16)"),
        ("client", 0.0, 'sendto("again") = 5'),
    ]
    assert exchange.below == {"client": "192.0.2.1", "server": "198.51.100.1"}


def test_a_ladder_needs_a_performance_and_whole_captures(tmp_path: Path) -> None:
    stuck = scenario_record(tmp_path, "stuck", outcome="timeout", reason="no end")
    with pytest.raises(ConfigurationError, match="performed no scenario"):
        draw_ladder(tmp_path, stuck)
    good = scenario_record(tmp_path, "one")
    capture = tmp_path / "trials" / good.trial_id / "server.pcap"
    capture.write_bytes(capture.read_bytes()[:-1])
    with pytest.raises(ConfigurationError, match="is not the file that its record names"):
        draw_ladder(tmp_path, good)
    capture.unlink()
    with pytest.raises(ConfigurationError, match=r"holds no server\.pcap of trial"):
        draw_ladder(tmp_path, good)
