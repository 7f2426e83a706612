"""Packets as rows and what is read from them, on the captures of the sample of scenarios."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from analysis.records.results import Results, read_results
from testbed.base.errors import ConfigurationError
from wings.papers.notebooks.show import SAMPLES
from wings.papers.teaching import evidence, wire


@pytest.fixture(scope="module")
def scenarios() -> Results:
    return read_results(SAMPLES / "scenarios")


def test_packets_are_as_tcpdump_has_them(
    scenarios: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = wire.packets(scenarios, scenario="cached-cookie")
    said = capsys.readouterr().out
    assert said.startswith("wireshark analysis/samples/scenarios/trials/")
    assert said.endswith("/client.pcap\n")
    assert sent["at_ms"].iloc[0] == 0
    assert list(sent["flag"].iloc[:4]) == ["S", "S.", ".", "P."]
    assert list(sent["sender"].iloc[:4]) == ["client", "server", "client", "client"]
    assert set(sent["connection"]) == {1, 2}
    asked = sent[sent["flag"] == "S"]
    assert asked["cookie"].iloc[0] == "asked"
    given = sent[(sent["flag"] == "S.") & (sent["connection"] == 1)]["cookie"].iloc[0]
    assert asked["cookie"].iloc[1] == given
    assert list(asked["payload_bytes"]) == [0, 5]
    assert list(sent[sent["flag"] == "S."]["ack"]) == [1, 6]
    assert sent["tsval_ms"].notna().all()


def test_the_knobs_of_one_load_are_needed(scenarios: Results) -> None:
    with pytest.raises(ConfigurationError, match="6 of 6 loads have any knobs: name the knobs"):
        wire.packets(scenarios)
    with pytest.raises(ConfigurationError, match="0 of 6 loads have scenario=none"):
        wire.packets(scenarios, scenario="none")


def test_openings_are_of_each_connection(scenarios: Results) -> None:
    opened = evidence.openings(wire.packets(scenarios, scenario="cached-cookie"))
    assert [round(value) for value in opened] == [100, 100]


def test_waits_are_what_the_slower_packets_took_longer() -> None:
    sent = pd.DataFrame(
        {"at_ms": [50.0, 55.0, 70.0, 80.0], "sender": ["server"] * 3 + ["client"],
         "payload_bytes": [1448, 1448, 1448, 10], "tsval_ms": [1000, 1000, 1005, 7]}
    ).astype({"tsval_ms": "Int64"})  # fmt: skip
    assert list(wire.waits(sent)["wait_ms"]) == [0.0, 5.0, 15.0]


def test_codel_drops_after_an_interval_without_a_break() -> None:
    at_ms = [0.0, 50.0, 90.0, 100.0, 150.0, 199.0, 200.0, 250.0]
    broken = pd.DataFrame({"at_ms": at_ms, "wait_ms": [6.0, 9.0, 4.0, 5.0, 9.0, 9.0, 9.0, 9.0]})
    assert evidence.first_codel_drop_ms(broken, target_ms=5, interval_ms=100) == 200
    short = broken[broken["at_ms"] < 200]
    assert math.isnan(evidence.first_codel_drop_ms(short, target_ms=5, interval_ms=100))


def test_syns_that_come_again_are_counted_by_turn() -> None:
    sent = pd.DataFrame({"at_ms": [0.0, 500.0, 1000.0, 3000.0, 1510.0], "flag": ["S"] * 5,
                         "connection": [1, 2, 1, 1, 2]})  # fmt: skip
    assert evidence.repeated_syns(sent) == {1: 1.005, 2: 3.0}


def test_packets_sent_again_keep_the_uplink_busy_once() -> None:
    sent = pd.DataFrame({"sender": ["client", "client", "client", "server"],
                         "payload_bytes": [490, 490, 0, 1448], "ip_bytes": [542, 542, 52, 1500],
                         "connection": [1, 1, 1, 1], "seq": [1, 1, 491, 1]})  # fmt: skip
    assert evidence.sent_again(sent) == 1
    assert evidence.requests_s(sent, up_kbit=256) == pytest.approx(542 * 8 / 256_000)
