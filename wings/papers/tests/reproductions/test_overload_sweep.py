"""What a source says of bursts, of a WAN and of clients' systems, held to loads by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testbed.model import LinkSpec, Record
from wings.papers.tests.reproductions.overloads import load_at, point, rebuilt
from wings.papers.tests.reproductions.sweeps import check_at
from wings.server_loads.spec import Mechanism

ARMS: tuple[Mechanism, ...] = ("default", "abort rst-syn", "reserv rst-syn")
FREEBSD = "3 3.2 3.2 3.2 3.2 6.2 12.2 24.2"


def bursts(mechanism: Mechanism, burst_s: float, replies: float, response_ms: float) -> Record:
    load = load_at(mechanism, 1.8)
    arrivals = replace(load.arrivals, burst_s=burst_s, base_rate_per_s=700)
    return point(replace(load, arrivals=arrivals), replies, response_ms)


def test_bursts_are_compared_at_each_length(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, "overload-bursts", [
        bursts("default", 0.2, 100.0, 50.0), bursts("abort rst-syn", 0.2, 96.0, 25.0),
        bursts("default", 2.0, 120.0, 900.0), bursts("abort rst-syn", 2.0, 100.0, 60.0),
    ])  # fmt: skip
    lost = check_at(found, "negligible")
    assert lost.ours == "in 1 of 2; not in abort rst-syn, bursts of 2 s (\u221216.7 %)"
    assert "Who is refused is gone" in lost.why
    sooner = check_at(found, "ten times sooner")
    assert sooner.ours.startswith("in 1 of 2; not in abort rst-syn, bursts of 0.2")
    (grid,) = found.tables
    assert [row[1] for row in grid.rows] == [0.2, 0.2, 2.0, 2.0]


def test_a_wan_is_held_to_what_a_lan_showed(tmp_path: Path) -> None:
    def at(rtt_ms: float, mechanism: Mechanism, replies: float) -> Record:
        load = replace(load_at(mechanism, 1.5), link=LinkSpec(rtt_ms=rtt_ms))
        return point(load, replies, 900.0 if mechanism == "default" else 100.0)

    records = [at(2.0, arm, 700.0 + 50 * n) for n, arm in enumerate(ARMS)]
    records += [at(200.0, arm, 700.0 - 50 * n) for n, arm in enumerate(ARMS)]
    found = rebuilt(tmp_path, "overload-wan", records)
    gains = check_at(found, "raises throughput")
    assert gains.ours.startswith("in 2 of 4; not in abort rst-syn at RTT 200")
    assert "A reservation lasts a round trip" in gains.why
    assert check_at(found, "come sooner").ours == "in 4 of 4"
    assert check_at(found, "less than 10 %").agreement == "not measured"


def test_the_timers_of_a_system_are_those_of_its_clients(tmp_path: Path) -> None:
    def client(timers: str, *seen_s: float) -> Record:
        load = load_at("default", 1.5)
        arrivals = replace(load.arrivals, syn_timeouts_s=timers)
        return point(replace(load, arrivals=arrivals), 700.0, 900.0, syn_timers_s=seen_s)

    records = [client("3 6", 3.03, 6.2), client(FREEBSD, 3.03, 3.264, 3.264)]
    found = rebuilt(tmp_path / "right", "overload-clients", records)
    assert check_at(found, "SYNs are sent again").ours == "in 5 of 5"
    records[1] = client(FREEBSD, 3.03, 6.2)
    found = rebuilt(tmp_path / "wrong", "overload-clients", records)
    wrong = check_at(found, "SYNs are sent again")
    assert (wrong.ours, wrong.agreement) == (
        "in 3 of 4; not in FreeBSD 5.3, SYN 2 (6.20 for 3.2 s)", "differs",
    )  # fmt: skip
