"""Runs go in once, lanes never mix, and a cell keeps its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.records.cells import flatten
from analysis.records.kind import find_metric
from analysis.verdicts.baseline import draft_baseline
from testbed.base.errors import ConfigurationError
from testbed.model import Condition
from tests.analysis.nights import SWEEP, night, with_part
from tests.analysis.sample import experiment, write_results
from wings.papers.history.database import open_history
from wings.papers.history.runs import KeptRun, keep_run, name_of, read_runs
from wings.papers.history.trend import TrendLane, read_lanes


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    folder = tmp_path / "baseline"
    folder.mkdir()
    for name, text in draft_baseline(night(tmp_path / "first", 1), folder).files.items():
        (folder / name).write_text(text)
    return folder


def runs(history: Path) -> tuple[KeptRun, ...]:
    with open_history(history) as connection:
        return read_runs(connection)


def lanes(history: Path, last: int = 100) -> tuple[TrendLane, ...]:
    with open_history(history) as connection:
        return read_lanes(connection, last)


def medians(lane: TrendLane) -> Iterator[list[float | None]]:
    for line in lane.lines:
        yield [point.median_ms if point else None for point in line.points]


def test_the_same_results_are_once(tmp_path: Path, history: Path) -> None:
    folder = night(tmp_path / "one", 1)
    assert "added" in keep_run(history, folder, None)
    assert "there already" in keep_run(history, folder, None)
    copy = night(tmp_path / "copy", 1)
    assert "there already" in keep_run(history, copy, None)
    assert "added" in keep_run(history, night(tmp_path / "two", 2), None)
    assert [run.created_utc[:10] for run in runs(history)] == ["2026-11-01", "2026-11-02"]


def test_resumed_results_take_their_own_place(tmp_path: Path, history: Path) -> None:
    keep_run(history, night(tmp_path / "one", 1, failed=0), None)
    assert next(iter(medians(lanes(history)[0]))) == [None]
    assert "brought up to date" in keep_run(history, night(tmp_path / "again", 1), None)
    assert len(runs(history)) == 1
    assert next(iter(medians(lanes(history)[0]))) != [None]


def test_results_without_a_record_are_refused(tmp_path: Path, history: Path) -> None:
    empty = write_results(tmp_path / "empty", [], experiment(1, conditions=SWEEP))
    with pytest.raises(ConfigurationError, match="nothing to remember"):
        keep_run(history, empty, None)


def test_each_version_of_a_kernel_is_a_lane(tmp_path: Path, history: Path) -> None:
    keep_run(history, night(tmp_path / "new", 1), None)
    keep_run(history, night(tmp_path / "old", 2, 1.5, version="6.1"), None)
    keep_run(history, night(tmp_path / "new2", 3, 1.1), None)
    found = lanes(history)
    assert [(lane.newest.kernel_version, len(lane.runs)) for lane in found] == [
        ("7.3", 2),
        ("6.1", 1),
    ]
    assert all(line.moved_pct == pytest.approx(10.0) for line in found[0].lines)
    assert all(line.moved_pct is None for line in found[1].lines)


def test_verdicts_are_kept_by_cell(tmp_path: Path, history: Path, baseline: Path) -> None:
    assert "same against" in keep_run(history, night(tmp_path / "same", 2), baseline)
    slower = night(tmp_path / "slower", 3, 1.05)
    assert "different against" in keep_run(history, slower, baseline)
    (lane,) = lanes(history)
    verdicts = [[point.verdict if point else None for point in line.points] for line in lane.lines]
    assert verdicts == [["same", "different"]] * len(SWEEP)
    assert all(line.last and line.last.later_pct == pytest.approx(5.0) for line in lane.lines)
    assert [run.verdict for run in lane.runs] == ["same", "different"]


def test_another_lane_is_not_held_against_the_baseline(
    tmp_path: Path, history: Path, baseline: Path
) -> None:
    said = keep_run(history, night(tmp_path / "old", 2, version="6.1"), baseline)
    assert "refused" in said
    assert "6.1" in said


def test_another_environment_is_told_by_its_parts(tmp_path: Path, history: Path) -> None:
    keep_run(history, night(tmp_path / "one", 1), None)
    newer = with_part("package.nginx", "1.26.0-1")
    keep_run(history, night(tmp_path / "two", 2, environment=newer), None)
    other = with_part("code.testbed", "cd" * 32)
    keep_run(history, night(tmp_path / "three", 3, environment=other), None)
    (lane,) = lanes(history)
    assert [change.place for change in lane.changes] == [1, 2]
    assert lane.changes[0].parts == ("package.nginx: 1.22.1-9+deb12u2 → 1.26.0-1",)
    assert "code.testbed" in lane.changes[1].parts


def test_a_night_without_a_number_is_a_gap(tmp_path: Path, history: Path) -> None:
    keep_run(history, night(tmp_path / "one", 1), None)
    keep_run(history, night(tmp_path / "two", 2, failed=3), None)
    (lane,) = lanes(history)
    gaps = [line for line in lane.lines if line.last and line.last.median_ms is None]
    assert len(gaps) == 1
    assert gaps[0].last is not None
    assert gaps[0].last.outcomes == {"unproven": 1}


def test_what_a_visitor_sees_is_kept_beside_the_load_time(tmp_path: Path, history: Path) -> None:
    keep_run(history, night(tmp_path / "one", 1, seen=True), None)
    keep_run(history, night(tmp_path / "two", 2, 1.2, failed=0, seen=True), tmp_path / "one")
    with open_history(history) as connection:
        (by_paint,) = read_lanes(connection, 100, find_metric("fcp_ms"))
        (by_load,) = read_lanes(connection, 100)
    first, second = (line.points for line in (by_paint.lines[0], by_paint.lines[1]))
    assert first[0] is not None and first[0].median_ms is not None and first[0].n == 1
    assert first[1] is not None and first[1].median_ms is None
    assert second[1] is not None and (second[1].verdict, second[1].later_pct) == (None, None)
    assert [line.axes for line in by_paint.lines] == [line.axes for line in by_load.lines]
    again = night(tmp_path / "two", 2, 1.2, seen=True)
    assert "brought up to date" in keep_run(history, again, tmp_path / "one")
    with open_history(history) as connection:
        (by_paint,) = read_lanes(connection, 100, find_metric("fcp_ms"))
    assert all(point and point.n == 1 for line in by_paint.lines for point in line.points)


def test_only_the_last_runs_are_read(tmp_path: Path, history: Path) -> None:
    for day in (1, 2, 3):
        keep_run(history, night(tmp_path / str(day), day), None)
    (lane,) = lanes(history, last=2)
    assert [run.created_utc[:10] for run in lane.runs] == ["2026-11-02", "2026-11-03"]


def test_a_cell_keeps_its_name_when_knobs_come() -> None:
    axes = flatten(Condition("amazon", "graph"))
    assert name_of(axes) == '{"client":"graph","page":"amazon","rtt_ms":20,"tfo":false}'
    older = {name: value for name, value in axes.items() if name != "randomness"}
    assert name_of(older) == name_of(axes)
    assert name_of({**axes, "rtt_ms": 20}) == name_of(axes)
    assert name_of({**axes, "initcwnd_segments": 4}) != name_of(axes)
