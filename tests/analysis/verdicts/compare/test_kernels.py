"""Two virtual kernels side by side: what changed, in which cell, and in which packet first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.verdicts.compare.comparison import CompareOptions, Comparison
from analysis.verdicts.compare.documents import describe_comparison, render_page
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import first_packet, packet_lines, render_text, summary
from firstflight.cli.reports import Reports
from testbed.model import Condition, LinkSpec, Record, TcpSpec
from testbed.results.environment import Environment
from tests.analysis.sample import ENVIRONMENT, experiment, record, write_results
from tests.capture.conversation import Sent, write_capture
from tests.capture.packets import ACK, SYN
from tests.measured import load_of

OFF, ON = (Condition("amazon", "graph", LinkSpec(20.0), TcpSpec(tfo=tfo)) for tfo in (False, True))
Times = Mapping[Condition, Sequence[float | None]]
OPENING = (Sent(0, "client", SYN, window=64240),
           Sent(20_000_000, "server", SYN | ACK, 0, 1, window=65160),
           Sent(20_000_500, "client", ACK, 1, 1))  # fmt: skip
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
            trial = replace(one.trial, kernel_version=version)
            one = replace(one, trial=trial, trial_id=trial.id, environment=environment.id,
                          artefacts={},
                          measured=replace(load_of(one), client=condition.client))  # fmt: skip
            if plt_ms is None:
                one = replace(one, outcome="unproven", reason="no proof")
            if segments is not None:
                path = folder / "trials" / trial.id / "client.pcap"
                one = replace(one, artefacts={path.name: write_capture(path, segments)})
            records.append(one)
    asked = experiment(max(map(len, times.values())), conditions=tuple(times), reference=None,
                       kernel_version=version)  # fmt: skip
    return write_results(folder, records, asked, environment)


def cross(one: Path, other: Path, min_effect_pct: float = 0.5) -> Comparison:
    return compare_results(one, other, CompareOptions(("kernel",), min_effect_pct=min_effect_pct))


@pytest.mark.parametrize(("plt_ms", "verdict", "word", "percent"), [
    (1000.0, "same", "same", 0.0), (1004.0, "same", "same", 0.4), (996.0, "same", "same", -0.4),
    (1006.0, "different", "slower", 0.6), (950.0, "different", "faster", -5.0),
])  # fmt: skip
def test_directions(tmp_path: Path, plt_ms: float, verdict: str, word: str, percent: float) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [plt_ms]})
    found = cross(old, new)
    (cell,) = found.cells
    assert cell.verdict == verdict
    assert cell.change is not None
    assert cell.change.pct.value == pytest.approx(percent)
    assert f"  {word}\n" in render_text(found)
    assert f">{word}</span>" in render_page(found)
    equal = f"{int(plt_ms == 1000.0)} equal to the bit in load time."
    assert equal in summary(found)[0]


def test_the_first_folder_is_the_base(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [900.0]})
    for one, other, version, word in ((old, new, "6.1", "faster"), (new, old, "7.3", "slower")):
        found = cross(one, other)
        assert found.kernels is not None
        assert found.kernels.base.kernel_version == version
        assert found.cells[0].direction == word
        assert found.exit_code == 1


def test_blocks_are_compared_with_their_own_kind(tmp_path: Path) -> None:
    seeds = [1000.0, 2000.0, 3000.0]
    old = lane(tmp_path / "6.1", "6.1", {OFF: seeds})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [plt_ms - 20.0 for plt_ms in seeds]})
    found = cross(old, new)
    (cell,) = found.cells
    change = cell.change
    assert change is not None
    assert change.n == 3
    assert change.ms.interval is not None
    assert (change.ms.interval.low, change.ms.value, change.ms.interval.high) == (-20, -20, -20)
    assert cell.base is not None and cell.new is not None
    assert (cell.base.median_ms, cell.new.median_ms) == (2000.0, 1980.0)
    assert "-2.00..-0.67" in render_text(found, 200)


def test_a_lane_that_has_not_begun_is_inconclusive(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [990.0]})
    (new / "records.jsonl").unlink()
    found = cross(old, new)
    assert found.exit_code == 5
    assert "NEW has no proven load: not run; run the rest with --resume" in found.cells[0].reason


def test_what_changed_in_sentences(tmp_path: Path) -> None:
    wget2 = replace(OFF, client="wget2")
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0], ON: [900.0], wget2: [500.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [980.0], ON: [900.0], wget2: [501.0]})
    assert summary(cross(old, new)) == [
        "1 of 3 cells changed by 0.5 % or more: 1 faster on virtual 7.3, 0 slower; "
        "1 equal to the bit in load time.",
        "Page load time changed by +0.00 % in the median of 3 cells, from -2.00 to +0.20 %.",
        "graph: -1.00 % in the median of 2 cells, from -2.00 to +0.00 %; most in page=amazon "
        "rtt_ms=20 client=graph tfo=false: 1000.0 ms in BASE, 980.0 ms in NEW (-20.0 ms). "
        "Where the loads part first: the packets come in the same order in 2 cells.",
        "wget2: +0.20 % in the median of 1 cell, from +0.20 to +0.20 %; most in page=amazon "
        "rtt_ms=20 client=wget2 tfo=false: 500.0 ms in BASE, 501.0 ms in NEW (+1.0 ms). "
        "Where the loads part first: the packets come in the same order in 1 cell.",
        "What Fast Open saves changed by -20.0 ms in the median (-20.0 to -20.0 ms).",
    ]


@pytest.mark.parametrize(("segments", "shown", "words"), [
    (OPENING, "-", "the captures are the same to the bit"),
    (OPENING[:2], "#3 ack", "The new capture ends before packet 3"),
    ((*OPENING[:2], replace(OPENING[2], window=600)), "(#3)", "window 502 in base and"),
    ((*OPENING[:2], replace(OPENING[2], at_ns=20_000_501)), "(#3)", "1 ns later in new"),
])  # fmt: skip
def test_the_first_packet_that_differs(
    tmp_path: Path, segments: Sequence[Sent], shown: str, words: str
) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [990.0]}, segments)
    found = cross(old, new)
    (cell,) = found.cells
    assert cell.change is not None
    assert cell.change.packets == (3, len(segments))
    assert first_packet(cell) == shown
    assert words in "\n".join(packet_lines(cell))
    assert words in render_text(found)
    assert words in render_page(found)


def test_packets_are_shown_where_the_load_time_is_the_same(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [1000.0]}, OPENING[:2])
    found = cross(old, new)
    assert found.verdict == "same"
    assert "The new capture ends before packet 3" in render_text(found)


@pytest.mark.parametrize(("old", "new", "parting", "shown"), [
    ((ASKED, ANSWERED), (ASKED, ANSWERED), "none", "-"),
    ((ASKED, ANSWERED), (ASKED, ACKED, ANSWERED), "acknowledgement", "#5 ack"),
    ((ASKED, ANSWERED), (replace(ASKED, data=b"GET /bb"), ANSWERED), "request", "#4 request"),
    ((ASKED, ANSWERED), (replace(ASKED, data=b"GET /b"), ACKED), "request", "#5 request"),
    ((ASKED, ANSWERED), (ASKED, replace(ANSWERED, data=b"a longer one")), "other", "#5"),
    ((ASKED, ANSWERED), (ASKED,), "other", "#5"),
])  # fmt: skip
def test_by_what_two_loads_part(
    tmp_path: Path, old: Sequence[Sent], new: Sequence[Sent], parting: str, shown: str
) -> None:
    one = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]}, (*OPENING, *old))
    other = lane(tmp_path / "7.3", "7.3", {OFF: [990.0]}, (*OPENING, *new))
    (cell,) = cross(one, other).cells
    assert cell.change is not None
    assert cell.change.parting == parting
    assert first_packet(cell) == shown


def test_captures_that_are_missing_are_named(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0]}, segments=None)
    new = lane(tmp_path / "7.3", "7.3", {OFF: [990.0]})
    next(new.glob("trials/*/client.pcap")).unlink()
    (cell,) = cross(old, new).cells
    assert cell.change is not None
    assert (cell.change.packets, cell.change.parting, cell.packets) == (None, None, None)
    (line,) = packet_lines(cell)
    assert "made no capture" in line
    assert "holds no capture of trial" in line


def test_a_cell_without_a_proven_load(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0], ON: [900.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [990.0], ON: [None]})
    found = cross(old, new)
    assert "1 cell without a proven load on one of the kernels." in summary(found)
    assert [cell.has_numbers for cell in found.cells] == [True, False]
    assert found.cells[1].new is not None
    assert found.cells[1].new.outcomes == {"unproven": 1}


def test_every_number_is_in_the_document(tmp_path: Path) -> None:
    old = lane(tmp_path / "6.1", "6.1", {OFF: [1000.0], ON: [900.0]})
    new = lane(tmp_path / "7.3", "7.3", {OFF: [980.0], ON: [900.0]}, OPENING[:2])
    found = cross(old, new)
    document = json.loads(json.dumps(describe_comparison(found), allow_nan=False))
    kernels = document["kernels"]
    assert document["counts"] == {"different": 1, "inconclusive": 0, "same": 1}
    assert kernels["overview_pct"]["largest"]["tfo"] is False
    assert list(kernels["overview_pct_by_client"]) == ["graph"]
    assert kernels["savings"][0]["difference_ms"] == pytest.approx(-20.0)
    change = document["cells"][0]["change"]
    assert (change["packets"], change["retransmits"]) == ([3, 2], [0, 0])
    assert (change["parting"], change["parts_at"]) == ("acknowledgement", "#3 ack")
    page = render_page(found)
    assert "Under test: kernel (virtual 6.1 in BASE, virtual 7.3 in NEW)." in page
    assert "The new capture ends before packet 3" in page
    assert "real time" not in page
    assert "<script" not in page


def test_the_lanes_of_a_run_are_compared_in_its_own_folder(tmp_path: Path) -> None:
    lane(tmp_path / "6.1", "6.1", {OFF: [1000.0], ON: [900.0]})
    lane(tmp_path / "7.3", "7.3", {OFF: [980.0], ON: [900.0]})
    found = Reports().compare_lanes(tmp_path, ["6.1", "7.3"])
    assert found.exit_code == 0  # a change is a result
    assert "1 of 2 cells changed by 0.5 % or more" in found.text
    assert json.loads((tmp_path / "compare.json").read_text())["verdict"] == "different"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "6.1", "7.3", "compare.html", "compare.json", "kernels.json", "kernels.md"
    ]  # fmt: skip
    lane(tmp_path / "7.4", "7.4", {OFF: [980.0], ON: [None]})
    assert Reports().compare_lanes(tmp_path, ["6.1", "7.4"]).exit_code == 4
