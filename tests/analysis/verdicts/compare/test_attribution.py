"""What a cell came to on another virtual kernel: each verdict, by captures and load times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.verdicts.compare.attribution import (
    CLOCK_READ_NS,
    HARMLESS_PCT,
    HARMLESS_THREADS_PCT,
    LEAST_SEEDS,
    PHASE_NS,
    CellAttribution,
    counters_that_part,
)
from analysis.verdicts.compare.comparison import CompareOptions
from analysis.verdicts.compare.documents import describe_comparison
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import attributed, render_text
from testbed.model import Condition
from tests.analysis.sample import record
from tests.analysis.verdicts.compare.test_kernels import ACKED, ANSWERED, ASKED, OFF, OPENING, lane
from tests.capture.conversation import Sent
from tests.capture.packets import ACK

CHROMIUM = replace(OFF, client="chromium")
LOAD = (*OPENING, ASKED, ANSWERED, ACKED)
REORDERED = (*OPENING, ASKED, ACKED, ANSWERED)
AGAIN = (*LOAD, Sent(300_000_000, "server", ACK, 1, 7, b"answer"))


def shifted(*by_ns: int) -> tuple[Sent, ...]:
    """The load with its packets later, the last of ``by_ns`` for all further ones."""
    return tuple(
        replace(sent, at_ns=sent.at_ns + by_ns[min(place, len(by_ns) - 1)])
        for place, sent in enumerate(LOAD)
    )


def attribute(
    tmp_path: Path, new_ms: Sequence[float | None], segments: Sequence[Sent] | None = LOAD,
    condition: Condition = OFF,
) -> CellAttribution:  # fmt: skip
    """What a cell came to whose loads took 1000 ms, and now take ``new_ms``."""
    old = lane(tmp_path / "7.3", "7.3", {condition: [1000.0] * len(new_ms)}, LOAD)
    new = lane(tmp_path / "mine", "mine", {condition: new_ms}, segments)
    (cell,) = compare_results(old, new, CompareOptions(("kernel",))).cells
    assert cell.attribution is not None
    return cell.attribution


def test_equal_to_the_bit_is_no_effect(tmp_path: Path) -> None:
    found = attribute(tmp_path, [1000.0, 1000.0])
    assert (found.verdict, found.seeds, found.other_packets) == ("no effect", 2, False)
    assert found.pct is not None and found.pct.value == 0.0
    assert found.counters == ()


def test_equal_captures_of_a_load_that_took_longer_are_no_such_thing(tmp_path: Path) -> None:
    assert attribute(tmp_path, [1001.0]).verdict == "slower"


@pytest.mark.parametrize("condition", [OFF, CHROMIUM], ids=lambda one: one.client)
@pytest.mark.parametrize("ticks", [(0, 1), (0, 0, -1, 2), (0, 390)])
def test_shifts_by_clock_reads_are_phase_only(
    tmp_path: Path, ticks: tuple[int, ...], condition: Condition
) -> None:
    moved = shifted(*(n * CLOCK_READ_NS for n in ticks))
    found = attribute(tmp_path, [1000.001], moved, condition)
    low, high = (each(ticks) * CLOCK_READ_NS for each in (min, max))
    assert (found.verdict, found.shift_ns) == ("phase only", (low, high))
    assert found.other_packets is False


@pytest.mark.parametrize(("by_ns", "new_ms", "verdict"), [
    ((0, CLOCK_READ_NS + 1), 1000.0, "other packets"),
    ((0, 391 * CLOCK_READ_NS), 1000.0, "other packets"),
    ((0, CLOCK_READ_NS), 1000.0 + PHASE_NS / 1e6, "slower"),
    ((0, CLOCK_READ_NS), 1000.0 - PHASE_NS / 1e6, "faster"),
])  # fmt: skip
def test_phase_is_strict(
    tmp_path: Path, by_ns: tuple[int, ...], new_ms: float, verdict: str
) -> None:
    found = attribute(tmp_path, [new_ms], shifted(*by_ns))
    assert found.verdict == verdict
    assert "the same packets at other times in 1 of 1 trial" in found.reason
    assert found.other_packets is False


@pytest.mark.parametrize("client", ["graph", "wget2"])
@pytest.mark.parametrize("segments", [REORDERED, AGAIN, LOAD[:-1]])
def test_other_packets_are_tcp_s(tmp_path: Path, segments: Sequence[Sent], client: str) -> None:
    condition = replace(OFF, client=client)
    for new_ms, verdict in ((1000.0, "other packets"), (1050.0, "slower"), (990.0, "faster")):
        found = attribute(tmp_path / str(new_ms), [new_ms], segments, condition)
        assert (found.verdict, found.other_packets) == (verdict, True)
        assert found.pct is not None
        assert found.pct.value == pytest.approx((new_ms - 1000.0) / 10.0)


@pytest.mark.parametrize(("client", "said", "verdict"), [
    ("curl", (["curl"], ["curl"]), "slower"),
    ("curl", (["curl"], []), "inconclusive"),  # both have to say so
    ("curl", (None, None), "inconclusive"),  # results from before there was such a client
    ("graph", (None, ["graph"]), "slower"),  # the base is older than what clients say
    ("graph", ([], []), "inconclusive"),
])  # fmt: skip
def test_results_say_which_client_is_tcp_alone(
    tmp_path: Path, client: str, said: tuple[list[str] | None, list[str] | None], verdict: str
) -> None:
    condition = replace(OFF, client=client)
    old = lane(tmp_path / "7.3", "7.3", {condition: [1000.0]}, LOAD)
    new = lane(tmp_path / "mine", "mine", {condition: [1050.0]}, AGAIN)
    for folder, names in zip((old, new), said, strict=True):
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest |= {} if names is None else {"tcp_alone": names}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    (cell,) = compare_results(old, new, CompareOptions(("kernel",))).cells
    assert cell.attribution is not None
    assert cell.attribution.verdict == verdict


@pytest.mark.parametrize(("client", "by_ns", "new_ms", "verdict"), [
    ("graph", 0, 1005.0, "slower"),
    ("wget2", 0, 1005.0, "spread"),
    ("wget2", CLOCK_READ_NS, 995.0, "spread"),
    ("wget2", 0, 1000.0, "other packets"),
    ("wget2", 0, 1000.0 + 10 * HARMLESS_THREADS_PCT + 1, "slower"),
    ("wget2", 1000, 1005.0, "slower"),  # something else had moved a packet before
])  # fmt: skip
def test_threads_in_another_order_ask_for_something_else_first(
    tmp_path: Path, client: str, by_ns: int, new_ms: float, verdict: str
) -> None:
    opening = (OPENING[0], *(replace(one, at_ns=one.at_ns + by_ns) for one in OPENING[1:]))
    other = (*opening, replace(ASKED, data=b"GET /b"), ANSWERED, ACKED)
    found = attribute(tmp_path, [new_ms], other, replace(OFF, client=client))
    assert found.verdict == verdict
    asked = "other packets, the first of them another request of the client"
    assert found.reason.startswith(asked) == (by_ns != 1000)


def test_a_browser_needs_seeds(tmp_path: Path) -> None:
    few = [1500.0] * (LEAST_SEEDS - 1)
    found = attribute(tmp_path, few, AGAIN, CHROMIUM)
    assert (found.verdict, found.other_packets) == ("inconclusive", True)
    assert f"{LEAST_SEEDS} are needed" in found.reason


@pytest.mark.parametrize(("new_ms", "verdict"), [
    ([1010.0] * 5, "spread"),  # not 0, and within what does nothing
    ([1000.0 + 10 * HARMLESS_PCT] * 5, "spread"),
    ([1030.0, 1031.0, 1032.0, 1033.0, 1034.0], "slower"),
    ([970.0, 969.0, 968.0, 967.0, 966.0], "faster"),
    ([950.0, 1200.0, 1000.0, 1300.0, 1100.0], "spread"),  # it holds 0
])  # fmt: skip
def test_a_browser_s_loads_spread(tmp_path: Path, new_ms: list[float], verdict: str) -> None:
    found = attribute(tmp_path, new_ms, AGAIN, CHROMIUM)
    assert (found.verdict, found.seeds) == (verdict, 5)
    assert found.pct is not None and found.pct.interval is not None


def test_what_is_no_longer_proven_is_broken(tmp_path: Path) -> None:
    found = attribute(tmp_path, [1000.0, None])
    assert (found.verdict, found.seeds) == ("broken", 1)
    assert found.reason.startswith("seed 1 is proven in BASE and not in NEW: ")


def test_without_captures_little_can_be_told(tmp_path: Path) -> None:
    assert attribute(tmp_path / "equal", [1000.0], None).verdict == "inconclusive"
    found = attribute(tmp_path / "later", [1010.0], None)
    assert (found.verdict, found.other_packets) == ("slower", None)


def test_trials_that_are_still_to_run(tmp_path: Path) -> None:
    old = lane(tmp_path / "7.3", "7.3", {OFF: [1000.0, 1000.0]}, LOAD)
    new = lane(tmp_path / "mine", "mine", {OFF: [1000.0, 1000.0]}, LOAD)
    records = (new / "records.jsonl").read_text().splitlines(keepends=True)
    for kept, reason in ((records[:1], "so far no effect, in 1 of 2 trials"),
                         ([], "NEW has no number of this cell")):  # fmt: skip
        (new / "records.jsonl").write_text("".join(kept))
        options = CompareOptions(("kernel",), attribute=True)
        (cell,) = compare_results(old, new, options).cells
        assert cell.attribution is not None
        assert (cell.attribution.verdict, cell.attribution.reason) == ("inconclusive", reason)


def test_counters_that_part() -> None:
    base = record(OFF)
    assert base.proof is not None
    base = replace(base, proof=replace(
        base.proof, client_counters={"TcpOutSegs": 10, "TcpInSegs": 9}, server_counters={}
    ))  # fmt: skip
    assert base.proof is not None
    new = replace(base, proof=replace(base.proof,
                                      client_counters={"TcpOutSegs": 12, "TcpInSegs": 9},
                                      server_counters={"TcpExtTCPTimeouts": 5}))  # fmt: skip
    found = [(one.end, one.name, one.base, one.new) for one in counters_that_part(base, new)]
    assert found == [("server", "TcpExtTCPTimeouts", 0, 5), ("client", "TcpOutSegs", 10, 12)]
    assert counters_that_part(base, replace(new, proof=None)) == ()


def test_compare_says_what_the_cells_came_to(tmp_path: Path) -> None:
    other = replace(OFF, page="wsj")
    old = lane(tmp_path / "7.3", "7.3", {OFF: [1000.0], other: [1000.0]}, LOAD)
    new = lane(tmp_path / "mine", "mine", {OFF: [1000.0], other: [1050.0]}, AGAIN)
    found = compare_results(old, new, CompareOptions(("kernel",)))
    assert attributed(found) == ["What the cells came to: 1 slower, 1 other packets."]
    assert "  slower 5.00 %  " in render_text(found, 160)
    cells = describe_comparison(found)["cells"]
    assert [(cell["attribution"] or {})["verdict"] for cell in cells] == ["other packets", "slower"]


def test_of_one_kernel_nothing_is_attributed_unasked(tmp_path: Path) -> None:
    one = lane(tmp_path / "7.3", "7.3", {OFF: [1000.0]}, LOAD)
    assert attributed(compare_results(one, one)) == []
    (cell,) = compare_results(one, one, CompareOptions(attribute=True)).cells
    assert cell.attribution is not None and cell.attribution.verdict == "no effect"


def test_more_than_the_kernel_differs(tmp_path: Path) -> None:
    old = lane(tmp_path / "7.3", "7.3", {OFF: [1000.0]}, LOAD)
    new = lane(tmp_path / "mine", "mine", {replace(OFF, client="wget2"): [1000.0]}, LOAD)
    found = compare_results(old, new, CompareOptions(("kernel", "client")))
    assert "More than the kernel differs (client)" in attributed(found)[0]
