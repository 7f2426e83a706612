from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from bench.__main__ import MEASUREMENTS, attempt, select
from bench.bootstrap import fresh_environment
from bench.cost import TrialStage, increments
from bench.result import Result, all_met, caption, judge, table, write_json
from bench.table1 import TimedRun, describe
from bench.work import Machine, Work
from testbed.base.errors import ConfigurationError, StorageError, TestbedError, TrialError
from testbed.model import Cost
from tests.analysis.sample import broken, conditions, record

IDLE, BUSY = Machine(2, 0.1), Machine(2, 3.0)
MET = Result("speed", "under 2 s", "1.5 s", "met", 5, "median", real_time=True)
MISSED = replace(MET, name="size", measured="3 s", verdict="missed", real_time=False)
REPORTED = replace(MET, name="guess", verdict="reported")


def test_a_missed_target_counts_and_an_untold_one_does_not() -> None:
    assert all_met([MET, REPORTED])
    assert not all_met([MET, MISSED])
    assert (judge(True), judge(False)) == ("met", "missed")


def test_what_was_not_measured_in_full_can_be_missed_but_not_met() -> None:
    assert (judge(True, in_full=False), judge(False, in_full=False)) == ("reported", "missed")


def test_a_measurement_that_fails_is_a_missed_target(tmp_path: Path) -> None:
    def fail(work: Work) -> Result:
        raise TrialError("no guest\nthe console's last lines")

    result = attempt("speed", fail, Work(tmp_path, IDLE))
    assert (result.verdict, result.measured, result.how) == ("missed", "failed", "no guest")
    assert result.details == {"error": "no guest\nthe console's last lines"}


def test_selecting_by_name_and_by_beginning() -> None:
    names = ("table1-chromium", "table1-chromium-n20", "table1-graph", "generator")
    assert select((), names) == names
    assert select(("generator", "table1-chromium"), names) == ("table1-chromium", "generator")
    assert select(("table1",), names) == names[:3]


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"--only genrator: no such .*generator"):
        select(("genrator",), tuple(MEASUREMENTS))


def test_a_busy_machine_is_named_for_real_time_only() -> None:
    assert "NOT IDLE" not in caption([MET], IDLE)
    assert "NOT IDLE" not in caption([MISSED], BUSY)
    assert caption([MET, MISSED], BUSY).endswith("too high: speed")


def test_the_table_has_asked_and_measured() -> None:
    console = Console(width=120, record=True)
    console.print(table([MET, MISSED], IDLE))
    lines = console.export_text()
    for text in ("speed", "under 2 s", "1.5 s", "met", "missed", "median", "load 0.10"):
        assert text in lines


def test_the_json_has_everything(tmp_path: Path) -> None:
    path = tmp_path / "new" / "bench.json"
    write_json(path, [MET], BUSY, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), quick=True)
    document = json.loads(path.read_text())
    assert document["created"] == "2026-01-02T03:04:05Z"
    assert document["machine"]["idle"] is False
    assert document["results"][0]["measured"] == "1.5 s"


def test_files_of_a_result_lie_beside_the_json(tmp_path: Path) -> None:
    found = replace(MET, files={"list.toml": "price = 1"})
    written = write_json(tmp_path / "b.json", [found], IDLE, datetime.now(UTC), quick=True)
    assert written == (tmp_path / "b.json", tmp_path / "b-list.toml")
    assert written[1].read_text() == "price = 1"


def test_json_that_cannot_be_written_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="-o FILE"):
        write_json(tmp_path / "file" / "x.json", [], IDLE, datetime.now(UTC), quick=False)


def test_costs_of_a_run_leave_out_what_has_none() -> None:
    first, second, third = (record(one) for one in conditions()[:3])
    records = (replace(first, cost=Cost(cpu_s=2.0, wall_s=3.0, virtual_s=10.0)),
               replace(second, cost=Cost(cpu_s=4.0, wall_s=5.0, virtual_s=20.0)),
               replace(broken(third, "timeout"), cost=None))  # fmt: skip
    costs = describe(TimedRun(6.0, records))
    assert (costs["trials"], costs["ok"]) == (3, 2)
    assert (costs["cpu_s_median"], costs["cpu_s_max"]) == (3.0, 4.0)
    assert costs["virtual_s_per_wall_s"] == 5.0


def test_a_run_without_costs_is_an_error() -> None:
    with pytest.raises(TestbedError, match="no cost"):
        describe(TimedRun(6.0, ()))


def test_a_stage_costs_what_it_adds() -> None:
    stages = [TrialStage("boot", (0.1, 0.3, 0.2)), TrialStage("lab", (0.5,)),
              TrialStage("server", (0.75,))]  # fmt: skip
    added = increments(stages)
    assert list(added) == ["boot", "lab", "server"]
    assert list(added.values()) == pytest.approx([0.2, 0.3, 0.25])


def test_a_fresh_bootstrap_knows_nothing_of_the_last(tmp_path: Path) -> None:
    given = {"PATH": "/bin", "FIRSTFLIGHT_JS": "x", "PYTHONPATH": "y", "XDG_CACHE_HOME": "z"}
    assert fresh_environment(given, tmp_path) == {
        "PATH": "/bin",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
