"""Export for flent: rates and pings are those of the packets at both ends, in its file format."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.records.results import read_results
from analysis.report.flent import describe_load, write_flent
from testbed.base.addresses import pack_address
from testbed.capture.segments import make_segment
from tests.analysis.sample import conditions, experiment, record, write_results
from tests.capture.packets import ACK, Capture, write_frames

OFF, _ = conditions(["amazon"], [100.0])
NEAR, FAR = ("10.0.3.2", 5001), ("10.0.4.2", 5001)
DELAYS_MS = {"up": 40.0, "down": 15.0}


def crossing(lost: int | None = None) -> tuple[Capture, Capture]:
    """A large packet up each 50 ms and a small one down: at both ends, one of them ``lost``."""
    near, far = Capture(), Capture()
    for number in range(20):
        at_ms = 50.0 * number
        up = (NEAR, FAR, ACK, 1000 * number, 7, bytes(946))
        down = (FAR, NEAR, ACK, 7, 1000 * number)
        near.add(*up, at_ms=at_ms)
        far.add(*down, at_ms=at_ms)
        if number != lost:
            far.add(*up, at_ms=at_ms + DELAYS_MS["up"])
        near.add(*down, at_ms=at_ms + DELAYS_MS["down"])
    return near, far


def exported(folder: Path, lost: int | None = None) -> dict[str, Any]:
    """What flent would read of a load with one neighbour and a capture of two more packets."""
    made = record(replace(OFF, traffic="bulk up"))
    write_results(
        folder, (made,), experiment(1, conditions=(made.trial.condition,), reference=None)
    )
    trial = folder / "trials" / made.trial_id
    trial.mkdir(parents=True, exist_ok=True)
    for name, capture in zip(("neighbour.pcap", "remote.pcap"), crossing(lost), strict=True):
        capture.write(trial / name)
    page = Capture()
    page.add(("10.0.0.2", 2000), ("10.10.0.1", 80), ACK, 1, at_ms=500)
    page.write(trial / "client.pcap")
    page.write(trial / "server.pcap")
    assert write_flent(read_results(folder), folder / "flent") == 1
    (file,) = (folder / "flent").iterdir()
    assert file.name == f"{made.trial_id}.flent.gz"
    content: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    shutil.rmtree(folder / "flent")
    return content


def test_it_is_a_file_of_flent(tmp_path: Path) -> None:
    content = exported(tmp_path)
    assert (content["version"], content["metadata"]["NAME"]) == (3, "tcp_bidirectional")
    assert content["metadata"]["STEP_SIZE"] == 0.1
    assert "amazon, 100 ms, bulk up" in content["metadata"]["TITLE"]
    steps = len(content["x_values"])
    assert {len(values) for values in content["results"].values()} == {steps}
    assert {"TCP download", "TCP upload", "Ping (ms) ICMP"} <= content["results"].keys()
    for name, values in content["results"].items():
        raw = [each["val"] for each in content["raw_values"][name]]
        assert raw == [value for value in values if value is not None]


def test_rates_and_pings_are_those_of_the_packets(tmp_path: Path) -> None:
    results = exported(tmp_path)["results"]
    assert results["bulk up upload"][1:9] == pytest.approx([2 * 986 * 8 / 1e5] * 8, rel=0.02)
    assert sum(results["bulk up download"]) == pytest.approx(20 * 44 * 8 / 1e5, rel=0.02)
    pings = [ping for ping in results["Ping (ms) ICMP"] if ping is not None]
    assert pings and max(abs(ping - sum(DELAYS_MS.values())) for ping in pings) < 0.1
    page = [rate for rate in results["page upload"] if rate]
    assert len(page) == 1
    total = [a + b for a, b in zip(results["page upload"], results["bulk up upload"], strict=True)]
    assert results["TCP upload"] == pytest.approx(total)


def test_what_is_lost_has_no_delay(tmp_path: Path) -> None:
    whole = sum(exported(tmp_path / "whole")["results"]["bulk up upload"])
    partly = sum(exported(tmp_path / "partly", lost=7)["results"]["bulk up upload"])
    assert partly == pytest.approx(whole * 19 / 20)


def test_packets_of_both_ips_are_matched(tmp_path: Path) -> None:
    ends = {ip: tuple(map(pack_address, of)) for ip, of in {
        "4": ("10.0.0.2", "10.10.0.1"), "6": ("2001:db8::2", "2001:db8:10::1"),
    }.items()}  # fmt: skip
    types = {"4": b"\x08\x00", "6": b"\x86\xdd"}
    near, far = [], []
    for number in range(10):
        for ip, (client, server) in ends.items():
            packet = make_segment((client, 2000), (server, 80), ACK, seq=number, ack=1)
            frame = bytes(12) + types[ip] + packet
            near.append((number * 10**8, frame))
            far.append((number * 10**8 + 40 * 10**6, frame))
    write_frames(tmp_path / "client.pcap", near)
    write_frames(tmp_path / "server.pcap", far)
    content = describe_load(record(OFF), tmp_path)
    assert sum(content["results"]["page upload"]) == pytest.approx(10 * (40 + 60) * 8 / 1e5)
    over_ipv6 = replace(OFF, link=replace(OFF.link, ip="6"))
    assert describe_load(record(over_ipv6), tmp_path)["metadata"]["IP_VERSION"] == 6


def test_loads_that_do_not_count_are_left_out(tmp_path: Path) -> None:
    made = replace(record(OFF), outcome="unproven", reason="x")
    write_results(tmp_path, (made,), experiment(1, conditions=(OFF,), reference=None))
    assert write_flent(read_results(tmp_path), tmp_path / "flent") == 0
