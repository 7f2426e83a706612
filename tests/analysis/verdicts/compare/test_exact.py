"""The virtual kernel: to the bit, down to the packet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.verdicts.compare.comparison import CompareOptions, Comparison
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import headline
from testbed.base.errors import StorageError
from testbed.model import CAPTURE_FILE, HAR_FILE, SCHEMA_VERSION, Record
from tests.analysis.sample import broken
from tests.analysis.verdicts.compare.folder import (
    FIRST,
    SECOND,
    another_page,
    made,
    with_capture,
    write_records_of,
    write_times,
)
from tests.capture.conversation import MS, another_boot, conversation

OTHER = another_page()
PAGES = CompareOptions(("pages",))


def pair(tmp_path: Path, base: list[float], new: list[float], across: bool = False) -> Comparison:
    one = write_times(tmp_path / "base", {FIRST: base})
    if not across:
        return compare_results(one, write_times(tmp_path / "new", {FIRST: new}))
    return compare_results(
        one, write_times(tmp_path / "new", {FIRST: new}, environment=OTHER), PAGES
    )


def test_one_load_without_any_spread_is_enough(tmp_path: Path) -> None:
    found = pair(tmp_path, [1000.25], [1000.25])
    assert (found.verdict, found.exit_code) == ("same", 0)
    assert found.cells[0].effect is not None and found.cells[0].effect.ms == 0
    assert found.cells[0].trials[0].same


def test_the_last_bit_of_a_load_time_counts_in_one_environment(tmp_path: Path) -> None:
    found = pair(tmp_path, [1000.0, 1000.0], [1000.0, 1000.0000000000001])
    (cell,) = found.cells
    assert (cell.verdict, cell.direction) == ("different", "slower")
    assert "determinism is broken" in cell.reason and "in 1 of 2 trials" in cell.reason


def test_so_does_a_capture(tmp_path: Path) -> None:
    sides = []
    for name, packets in (("base", conversation(3)), ("new", another_boot(conversation(2)))):
        folder = tmp_path / name
        one = with_capture(folder, made(FIRST, 0, 1000.0), packets)
        sides.append(write_records_of(folder, [one], [FIRST]))
    (cell,) = compare_results(sides[0], sides[1]).cells
    assert (cell.verdict, cell.direction) == ("different", "changed")
    assert cell.packets is not None and cell.packets.telling.number == 7
    assert (cell.packets_seed, cell.packets_note) == (0, None)


def test_a_capture_that_is_not_there_is_told(tmp_path: Path) -> None:
    one = made(FIRST, 0, 1000.0)
    base = write_records_of(tmp_path / "base", [one], [FIRST])
    other = with_capture(tmp_path / "new", made(FIRST, 0, 1010.0), conversation())
    new = write_records_of(tmp_path / "new", [other], [FIRST])
    (cell,) = compare_results(base, new).cells
    assert cell.packets is None
    assert cell.packets_note == f"{base} holds no capture of trial {one.trial_id}"
    path = new / "trials" / other.trial_id / "client.pcap"
    path.write_bytes(path.read_bytes() + b"x")
    (cell,) = compare_results(base, new).cells
    assert "is not the file that its record names" in str(cell.packets_note)


def test_the_same_packets_in_another_boot_of_one_environment(tmp_path: Path) -> None:
    sides = []
    for name, packets in (("base", conversation()), ("new", another_boot(conversation()))):
        one = with_capture(tmp_path / name, made(FIRST, 0, 1000.0), packets)
        sides.append(write_records_of(tmp_path / name, [one], [FIRST]))
    (cell,) = compare_results(sides[0], sides[1]).cells
    assert cell.verdict == "different"
    assert "same packets at the same times" in str(cell.packets_note)


def test_without_captures_the_load_time_decides_and_that_is_told(tmp_path: Path) -> None:
    bare = replace(made(FIRST, 0, 1000.0), artefacts={})
    folders = [write_records_of(tmp_path / name, [bare], [FIRST]) for name in ("base", "new")]
    (cell,) = compare_results(folders[0], folders[1]).cells
    assert cell.verdict == "same" and "a capture was not kept" in cell.reason


@pytest.mark.parametrize(("new", "verdict", "direction"), [
    ([1000.9, 2001.8], "same", None), ([999.2, 1998.4], "same", None),
    ([1001.0, 2002.0], "different", "slower"), ([900.0, 1800.0], "different", "faster"),
    ([1000.0, 2000.0], "same", None),
])  # fmt: skip
def test_across_something_the_minimum_effect_decides(
    tmp_path: Path, new: list[float], verdict: str, direction: str | None
) -> None:
    (cell,) = pair(tmp_path, [1000.0, 2000.0], new, across=True).cells
    assert (cell.verdict, cell.direction) == (verdict, direction)
    assert len(cell.trials) == 2


def test_within_the_minimum_effect_the_numbers_are_told(tmp_path: Path) -> None:
    (cell,) = pair(tmp_path, [1000.0, 1000.0], [1000.25, 1000.0], across=True).cells
    assert cell.reason == (
        "other packets in 1 of 2 trials, the load time within 0.1 % "
        "(median +0.125 ms; at most +0.250 ms, seed 0)"
    )


@pytest.mark.parametrize("name", [CAPTURE_FILE, HAR_FILE])
def test_other_bits_in_the_same_time_are_counted_in_the_headline(tmp_path: Path, name: str) -> None:
    base = [made(FIRST, 0, 1000.0), made(SECOND, 0, 2000.0)]
    new = [made(c, 0, t, environment=OTHER) for c, t in ((FIRST, 1000.0), (SECOND, 2000.0))]
    base = [replace(one, artefacts={name: "a" * 64}) for one in base]
    new = [replace(one, artefacts={name: x * 64}) for one, x in zip(new, "ab", strict=True)]
    found = compare_results(
        write_records_of(tmp_path / "base", base, [FIRST, SECOND]),
        write_records_of(tmp_path / "new", new, [FIRST, SECOND], environment=OTHER),
        PAGES,
    )
    assert headline(found) == "SAME: 2 cells, 2 same (1 with other bits)."


def outcome_of(tmp_path: Path, base: list[Record], new: list[Record]) -> Comparison:
    return compare_results(
        write_records_of(tmp_path / "base", base, [FIRST, SECOND]),
        write_records_of(tmp_path / "new", new, [FIRST, SECOND]),
    )


def test_what_is_no_longer_proven_is_different_and_says_why(tmp_path: Path) -> None:
    good = [made(FIRST, 0, 1000.0), made(SECOND, 0, 2000.0)]
    silent = broken(good[0], "unproven")
    found = outcome_of(tmp_path, good, [silent, good[1]])
    first, second = found.cells
    assert (first.verdict, first.direction, second.verdict) == ("different", "changed", "same")
    assert "seed 0 is unproven: 3 of 20 SYNs carry no request" in first.reason
    backwards = outcome_of(tmp_path / "back", [silent, good[1]], good)
    assert backwards.cells[0].verdict == "inconclusive"
    assert "BASE has no proven load: seed 0 is unproven" in backwards.cells[0].reason
    assert backwards.exit_code == 5


def test_one_of_several_trials_that_fails_is_different(tmp_path: Path) -> None:
    good = [made(FIRST, seed, 1000.0) for seed in range(3)]
    found = outcome_of(tmp_path, good, [*good[:2], broken(good[2], "timeout")])
    assert found.cells[0].verdict == "different"
    assert "what is proven in BASE is not in NEW: seed 2 is timeout" in found.cells[0].reason


def test_trials_that_did_not_run_yet_and_trials_of_other_seeds(tmp_path: Path) -> None:
    good = [made(FIRST, seed, 1000.0) for seed in range(3)]
    base = write_records_of(tmp_path / "base", good, [FIRST], repetitions=3)
    begun = write_records_of(tmp_path / "begun", good[:2], [FIRST], repetitions=3)
    (cell,) = compare_results(base, begun).cells
    assert (cell.verdict, cell.more_runs) == ("inconclusive", 1)
    fewer = write_records_of(tmp_path / "fewer", good[:2], [FIRST], repetitions=2)
    (cell,) = compare_results(base, fewer).cells
    assert cell.verdict == "same" and "1 trial of BASE is not in NEW" in cell.reason
    others = [made(FIRST, seed, 1000.0) for seed in range(10, 13)]
    apart = write_records_of(tmp_path / "apart", others, [FIRST], repetitions=3)
    (cell,) = compare_results(base, apart).cells
    assert cell.verdict == "inconclusive"
    assert "seeds 0..2 in BASE, seeds 10..12 in NEW" in cell.reason


def test_a_half_written_last_line_is_reported_and_its_cell_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = [made(FIRST, 0, 1000.0), made(SECOND, 0, 2000.0)]
    folders = [write_records_of(tmp_path / name, good, [FIRST, SECOND]) for name in ("base", "new")]
    path = folders[1] / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    with caplog.at_level("WARNING", "testbed"):
        found = compare_results(folders[0], folders[1])
    assert "half-written" in caplog.text
    assert [cell.verdict for cell in found.cells] == ["same", "inconclusive"]
    assert found.cells[1].reason == "NEW has no proven load: not run; run the rest with --resume"
    assert any(note.startswith("1 planned trial of NEW") for note in found.notes)


def test_an_unknown_schema_is_refused_by_name(tmp_path: Path) -> None:
    base = write_times(tmp_path / "base", {FIRST: [1000.0]})
    new = write_times(tmp_path / "new", {FIRST: [1000.0]})
    path = new / "records.jsonl"
    path.write_text(path.read_text().replace(f'"schema":{SCHEMA_VERSION}', '"schema":99'))
    with pytest.raises(StorageError, match="schema 99"):
        compare_results(base, new)


def test_packets_that_moved_in_time_are_shown(tmp_path: Path) -> None:
    late = [replace(one, at_ns=one.at_ns + (one.at_ns > 200 * MS) * MS) for one in conversation()]
    sides = []
    for name, packets, plt_ms in (("base", conversation(), 300.0), ("new", late, 301.0)):
        one = with_capture(tmp_path / name, made(FIRST, 0, plt_ms), packets)
        sides.append(write_records_of(tmp_path / name, [one], [FIRST]))
    (cell,) = compare_results(sides[0], sides[1]).cells
    assert cell.packets is not None
    assert cell.packets.order is None and cell.packets.time is not None
