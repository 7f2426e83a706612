"""Two virtual kernels side by side: what changed, in which cell, and in which packet first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.results import read_results
from analysis.regression.crosscheck.folders import write_cross_check
from analysis.regression.crosscheck.kernels import KernelCross, cross_kernels
from analysis.regression.crosscheck.kernels_report import present_kernels
from analysis.regression.crosscheck.kernels_words import (
    describe_wire,
    first_packet,
    render_text,
    summary_lines,
)
from analysis.regression.crosscheck.pairs import pair_results
from analysis.words import MINUS, MISSING
from testbed.base.errors import ConfigurationError
from testbed.model import Condition, LinkSpec, Record, TcpSpec
from testbed.results.environment import Environment
from tests.analysis.sample import ENVIRONMENT, experiment, record, write_results
from tests.wire.conversation import Sent, write_capture
from tests.wire.packets import ACK, SYN

OFF, ON = (
    Condition("amazon", "graph", LinkSpec(rtt_ms=20.0), TcpSpec(tfo=tfo)) for tfo in (False, True)
)
Times = Mapping[Condition, Sequence[float | None]]
OPENING = (
    Sent(0, "client", SYN, window=64240),
    Sent(20_000_000, "server", SYN | ACK, 0, 1, window=65160),
    Sent(20_000_500, "client", ACK, 1, 1),
)
ASKED = Sent(20_000_600, "client", ACK, 1, 1, b"GET /a")
ANSWERED = Sent(40_000_000, "server", ACK, 1, 7, b"answer")
ACKED = Sent(40_000_000, "client", ACK, 7, 1)


def lane(
    folder: Path, version: str, times: Times, segments: Sequence[Sent] | None = OPENING
) -> Path:
    """A results folder of one kernel; a time that is ``None`` is that of a load without proof."""
    environment = Environment({"kernel.version": version}, ENVIRONMENT.pages, {})
    records: list[Record] = []
    for condition, values in times.items():
        for seed, plt_ms in enumerate(values):
            one = record(condition, seed, plt_ms or 1.0)
            assert one.load is not None
            trial = replace(one.trial, kernel_version=version)
            one = replace(
                one, trial=trial, trial_id=trial.id, environment=environment.id, artefacts={},
                load=replace(one.load, client=condition.client),
            )  # fmt: skip
            if plt_ms is None:
                one = replace(one, outcome="unproven", reason="no proof")
            if segments is not None:
                path = folder / "trials" / trial.id / "client.pcap"
                one = replace(one, artefacts={path.name: write_capture(path, segments)})
            records.append(one)
    asked = experiment(
        max(map(len, times.values())), conditions=tuple(times), reference=None,
        kernel_version=version,
    )  # fmt: skip
    return write_results(folder, records, asked, environment)


def cross(one: Path, other: Path) -> KernelCross:
    return cross_kernels(pair_results(read_results(one), read_results(other)))


@pytest.mark.parametrize(
    ("plt_ms", "direction", "percent"),
    [
        (1000.0, "equal", 0.0),
        (1004.0, "close", 0.4),
        (996.0, "close", -0.4),
        (1006.0, "later", 0.6),
        (950.0, "sooner", -5.0),
    ],
)
def test_directions(tmp_path: Path, plt_ms: float, direction: str, percent: float) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [plt_ms]})
    found = cross(old, new)
    (change,) = found.changes
    assert change.direction == direction
    assert change.percent is not None
    assert change.percent.value == pytest.approx(percent)
    presented = present_kernels(found)
    assert presented.exit_code == 0
    assert direction in presented.text
    assert f"{direction}</span>" in presented.page


def test_the_first_folder_is_the_base(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [900.0]})
    assert cross(old, new).base.kernel_version == "6.1"
    assert cross(new, old).base.kernel_version == "7.3"
    assert cross(new, old).changes[0].direction == "later"


def test_blocks_are_compared_with_their_own_kind(tmp_path: Path) -> None:
    seeds = [1000.0, 2000.0, 3000.0]
    old = lane(tmp_path / "6.1", "6.1", {OFF: seeds})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [plt_ms - 20.0 for plt_ms in seeds]})
    (change,) = cross(old, new).changes
    assert change.n == 3
    assert change.ms is not None and change.ms.interval is not None
    assert (change.ms.interval.low, change.ms.value, change.ms.interval.high) == (-20, -20, -20)
    assert (change.base_ms, change.other_ms) == (2000.0, 1980.0)
    text = render_text(cross(old, new)).replace(MINUS, "-")
    assert "-2.00 to -0.67" in text


def test_a_lane_that_has_not_begun_is_told(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [990.0]})
    (new / "records.jsonl").unlink()
    with pytest.raises(ConfigurationError, match=r"7\.3 has no record .* --resume"):
        cross(old, new)


def test_what_changed_in_sentences(tmp_path: Path) -> None:
    wget2 = replace(OFF, client="wget2")
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0], ON: [900.0], wget2: [500.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [980.0], ON: [900.0], wget2: [501.0]})
    found = cross(old, new)
    assert [line.replace(MINUS, "-") for line in summary_lines(found)] == [
        "1 of 3 cells changed by more than 0.5 %: 1 load sooner on virtual 7.3, 0 later; "
        "1 are equal to the bit.",
        "Page load time changed by 0.00 % in the median of 3 cells, from -2.00 to +0.20 %.",
        "graph: -1.00 % in the median of 2 cells, from -2.00 to 0.00 %; most in graph, fast open "
        "off: 1000.0 ms on virtual 6.1, 980.0 ms on virtual 7.3 (-20.0 ms). "
        "Where the loads part first: the packets come in the same order in 2 cells.",
        "wget2: +0.20 % in the median of 1 cell, from +0.20 to +0.20 %; most in wget2, fast open "
        "off: 500.0 ms on virtual 6.1, 501.0 ms on virtual 7.3 (+1.0 ms). "
        "Where the loads part first: the packets come in the same order in 1 cell.",
        "What Fast Open saves changed by -20.0 ms in the median (-20.0 to -20.0 ms).",
    ]


@pytest.mark.parametrize(
    ("segments", "shown", "words"),
    [
        (OPENING, MISSING, "The same packets at the same times."),
        (OPENING[:2], "#3 ack", "The new capture ends before packet 3"),
        (
            (*OPENING[:2], replace(OPENING[2], window=600)),
            "(#3)",
            "window 502 in base and",
        ),
        ((*OPENING[:2], replace(OPENING[2], at_ns=20_000_501)), "(#3)", "1 ns later in new"),
    ],
)
def test_the_first_packet_that_differs(
    tmp_path: Path, segments: Sequence[Sent], shown: str, words: str
) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [990.0]}, segments)
    found = cross(old, new)
    (change,) = found.changes
    assert change.wire is not None
    assert change.wire.packets == (3, len(segments))
    assert first_packet(change) == shown
    assert words in describe_wire(change)
    assert words in render_text(found)


@pytest.mark.parametrize(
    ("old", "new", "parting", "shown"),
    [
        ((ASKED, ANSWERED), (ASKED, ANSWERED), "none", MISSING),
        ((ASKED, ANSWERED), (ASKED, ACKED, ANSWERED), "acknowledgement", "#5 ack"),
        ((ASKED, ANSWERED), (replace(ASKED, data=b"GET /bb"), ANSWERED), "request", "#4 request"),
        ((ASKED, ANSWERED), (replace(ASKED, data=b"GET /b"), ACKED), "request", "#5 request"),
        ((ASKED, ANSWERED), (ASKED, replace(ANSWERED, data=b"a longer one")), "other", "#5"),
        ((ASKED, ANSWERED), (ASKED,), "other", "#5"),
    ],
)
def test_by_what_two_loads_part(
    tmp_path: Path, old: Sequence[Sent], new: Sequence[Sent], parting: str, shown: str
) -> None:
    one = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]}, (*OPENING, *old))
    other = lane(tmp_path / "7.3", "7.3", {OFF: [990.0]}, (*OPENING, *new))
    (change,) = cross(one, other).changes
    assert change.wire is not None
    assert change.wire.parting == parting
    assert first_packet(change) == shown


def test_captures_that_are_not_there_are_told(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]}, segments=None)
    new = lane(tmp_path / "7.3", "7.3", {OFF: [990.0]})
    next(new.glob("trials/*/client.pcap")).unlink()
    (change,) = cross(old, new).changes
    assert change.wire is not None
    assert (change.wire.packets, change.wire.difference) == (None, None)
    assert "made no capture" in describe_wire(change)
    assert "holds no capture of trial" in describe_wire(change)


def test_a_cell_without_a_proven_load(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0], ON: [900.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [990.0], ON: [None]})
    presented = present_kernels(cross(old, new))
    assert presented.exit_code == 4
    assert "1 cell without a proven load" in presented.text
    assert presented.document["counts"] == {"sooner": 1, "no number": 1}
    assert presented.document["cells"][1]["status"] == ("proven", "unproven")


def test_files_go_where_they_are_asked_to(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0], ON: [900.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [980.0], ON: [900.0]}, OPENING[:2])
    write_cross_check(old, new, tmp_path)
    told = json.loads((tmp_path / "crosscheck.json").read_text())
    assert told["counts"] == {"sooner": 1, "equal": 1}
    assert told["overview_pct"]["largest"]["tfo"] is False
    assert told["cells"][0]["packets"] == [3, 2]
    assert told["savings"][0]["difference_ms"] == pytest.approx(-20.0)
    page = (tmp_path / "crosscheck.html").read_text()
    assert "What changed from virtual 6.1 to virtual 7.3" in page
    assert "The new capture ends before packet 3" in page
    assert "real time" not in page
    assert "<script" not in page
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "6.1", "7.3", "crosscheck.html", "crosscheck.json"
    ]  # fmt: skip
