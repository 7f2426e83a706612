from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from analysis.report.settling import list_unsettled
from firstflight.cli.main import main
from testbed.base.errors import ConfigurationError
from testbed.base.places import CONFIGS
from testbed.experiment.config import load_experiment
from testbed.experiment.options import Override
from testbed.experiment.plan import plan_trials
from testbed.experiment.stopping import (
    draws_nothing,
    look_points,
    nothing_varies,
    seeds_differ,
)
from testbed.kernel.run.interface import RawResult
from testbed.model import (
    RESOLUTION_MS,
    Condition,
    Experiment,
    LinkSpec,
    Outcome,
    PageLoad,
    Record,
    RequestTiming,
    TcpSpec,
    Trial,
)
from testbed.results.manifest import Manifest, load_manifest, make_manifest
from testbed.results.records import read_records
from testbed.results.tally import Tally
from testbed.runner.local import on_this_machine
from testbed.runner.run import run_experiment
from tests.fake_kernel import FakeKernel
from tests.hallway import CATALOGUE, ENVIRONMENT, make_experiment, make_means, make_services
from tests.runner.test_run import Quiet

QUICK = str(CONFIGS / "quick.toml")


class Looks:
    """An analysis that has settled when each condition has ``enough`` loads."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.seen: list[int] = []

    def __call__(self, experiment: Experiment, records: Sequence[Record]) -> tuple[str, ...]:
        counted = sum(not record.trial.warm_up for record in records)
        self.seen.append(counted // len(experiment.conditions))
        return () if self.seen[-1] >= self.enough else ("amazon, 20 ms",)


def sampling(most: int = 100, **changes: Any) -> Experiment:
    return replace(make_experiment(), until_ci_pct=1.0, max_repetitions=most, **changes)


def manifest_of(experiment: Experiment) -> Manifest:
    now = datetime.fromisoformat("2026-01-02T03:04:05Z")
    return make_manifest(experiment, ENVIRONMENT, now, ())


def go(
    folder: Path, experiment: Experiment, looks: Looks, kernel: FakeKernel | None = None
) -> tuple[Tally, Quiet]:
    display = Quiet()
    means = make_means(kernel or FakeKernel(), 2 if experiment.kernel == "virtual" else 1)
    total = run_experiment(
        folder,
        manifest_of(experiment),
        on_this_machine(means, ENVIRONMENT),
        display,
        list_unsettled=looks,
    )
    return total, display


def repetitions(folder: Path) -> int:
    return 1 + max(r.trial.repetition for r in read_records(folder))


def test_a_fixed_number_is_one_point_and_nobody_looks(results: Path) -> None:
    assert list(look_points(make_experiment(3), ())) == [3]
    looks = Looks(1)
    total, _ = go(results, make_experiment(3), looks)
    assert (looks.seen, total.exit_code) == ([], 0)


def test_looks_are_few_and_bounded() -> None:
    assert list(look_points(sampling(22), ())) == [2, 10, 15, 20, 22]
    assert list(look_points(sampling(10), ())) == [2, 10]
    assert list(look_points(sampling(30, repetitions=24), ())) == [2, 24, 29, 30]


class Copying(FakeKernel):
    """A kernel on which a seed decides nothing."""

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        return FakeKernel.run(self, replace(trial, seed=0), page, out, slot, cancel)


def test_copies_are_not_repeated_until_they_please(
    results: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "testbed")
    looks = Looks(99)
    total, _ = go(results, sampling(), looks, Copying())
    assert (looks.seen, total.unsettled, total.exit_code) == ([], (), 0)
    assert (repetitions(results), total.outcomes["ok"]) == (2, 8 * 2)
    (said,) = (line for line in caplog.messages if line.startswith("nothing varies"))
    for knob in ("loss_pct", "think_spread_pct", "start_spread_ms"):
        assert knob in said
    total, display = go(results, sampling(), looks, Copying())
    assert (display.todo, total.exit_code) == ([], 0)


def test_two_loads_may_be_equal_by_chance_where_a_draw_was_asked_for(results: Path) -> None:
    """A lossy link may lose nothing twice."""
    experiment = sampling()
    lossy = tuple(
        replace(one, link=replace(one.link, loss_pct=0.1))
        for one in experiment.conditions_as(Condition)
    )
    looks = Looks(10)
    go(results, replace(experiment, conditions=lossy), looks, Copying())
    assert looks.seen == [10]


def test_whole_blocks_are_added_until_all_has_settled(results: Path) -> None:
    looks = Looks(14)
    total, display = go(results, sampling(), looks)
    assert looks.seen == [10, 15]
    assert (total.outcomes["ok"], total.unsettled, total.exit_code) == (8 * 15, (), 0)
    assert display.skipped == 8 * 10
    assert len({r.trial_id for r in read_records(results)}) == 8 * 15


def test_the_bound_ends_it_with_the_cells_named(results: Path) -> None:
    total, _ = go(results, sampling(12), Looks(99))
    assert (total.exit_code, total.unsettled) == (5, ("amazon, 20 ms",))
    assert repetitions(results) == 12


def test_what_failed_is_not_tried_again_at_each_look(results: Path) -> None:
    experiment = sampling()
    plan: dict[str, Outcome] = {plan_trials(experiment)[0].id: "failed"}
    total, _ = go(results, experiment, Looks(15), FakeKernel(plan=plan))
    assert (total.outcomes["failed"], total.exit_code) == (1, 4)
    assert {r.attempt for r in read_records(results)} == {1}


def test_a_resumed_run_goes_on_where_it_was(results: Path) -> None:
    go(results, sampling(12), Looks(99))
    looks = Looks(99)
    total, _ = go(results, sampling(20), looks)
    assert looks.seen == [15, 20]
    assert (total.exit_code, repetitions(results)) == (5, 20)
    looks = Looks(20)
    total, display = go(results, sampling(20), looks)
    assert (display.todo, looks.seen, total.exit_code) == ([], [20], 0)


def test_on_the_host_blocks_have_positions_and_one_warm_up(results: Path) -> None:
    looks = Looks(15)
    total, _ = go(results, sampling(kernel="host"), looks)
    records = read_records(results)
    assert [r.trial.warm_up for r in records] == [True] * 8 + [False] * 120
    assert [r.position for r in records] == [*range(8)] * 16
    assert [r.trial.repetition for r in records[8:]] == [n for n in range(15) for _ in range(8)]
    assert (looks.seen, total.outcomes["ok"], total.exit_code) == ([10, 15], 120, 0)


def test_a_failed_warm_up_is_no_failure_of_the_run(results: Path) -> None:
    experiment = replace(make_experiment(), kernel="host")
    plan: dict[str, Outcome] = {plan_trials(experiment)[0].id: "timeout"}
    total, _ = go(results, experiment, Looks(0), FakeKernel(plan=plan))
    assert (total.outcomes["ok"], total.not_run, total.exit_code) == (8, 0, 0)
    assert read_records(results)[0].outcome == "timeout"


def test_the_command_line_collects_more_until_it_has_settled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services = make_services(tmp_path, list_unsettled=Looks(20))
    asked = ["run", QUICK, "--until-ci", "1%", "--max-n", "12", "--json"]
    assert main(asked, services) == 5
    out, err = capsys.readouterr()
    reported = json.loads(out)
    assert (reported["exit_code"], reported["unsettled"]) == (5, ["amazon, 20 ms"])
    assert "wider than asked: amazon, 20 ms; collect more with --resume" in err
    folder = reported["results"]
    assert len(read_records(Path(folder))) == 24
    assert main(["run", "--resume", folder], services) == 5
    assert main(["run", "--resume", folder, "--max-n", "9"], services) == 2
    assert main(["run", "--resume", folder, "--until-ci", "2"], services) == 2
    assert main(["run", "--resume", folder, "--max-n", "30"], services) == 0
    assert repetitions(Path(folder)) == 20


def test_a_bound_needs_something_to_bound(tmp_path: Path) -> None:
    for overrides, message in (
        ({"max_repetitions": "20"}, "which is not set"),
        ({"until_ci_pct": "1", "repetitions": "101"}, "101 is above max_repetitions, 100"),
        ({"until_ci_pct": "0"}, "a percentage above 0"),
        ({"until_ci_pct": "1", "max_repetitions": "9"}, "from 10 to"),
    ):
        given = [Override(key, value, f"--set {key}") for key, value in overrides.items()]
        with pytest.raises(ConfigurationError, match=message):
            load_experiment(Path(QUICK), CATALOGUE, given)
    services = make_services(tmp_path)
    assert main(["run", QUICK, "-o", str(tmp_path / "fixed")], services) == 0
    assert main(["run", "--resume", str(tmp_path / "fixed"), "--max-n", "20"], services) == 2


def test_with_the_real_analysis_the_run_ends_when_its_intervals_are_narrow(tmp_path: Path) -> None:
    services = make_services(tmp_path, list_unsettled=list_unsettled)
    folder = tmp_path / "run"
    assert (
        main(["run", QUICK, "--until-ci", "20", "--max-n", "200", "-o", str(folder)], services) == 0
    )
    records, asked = read_records(folder), load_manifest(folder).experiment
    assert 10 < repetitions(folder) < 200
    assert list_unsettled(asked, records) == ()
    last_look = [r for r in records if r.trial.repetition < repetitions(folder) - 5]
    assert list_unsettled(asked, last_look)


URL = "http://www.page.test/"
LOAD = PageLoad("graph", "1", 100.0, (RequestTiming(URL, 200, 0.0, 100.0),))
OFF, ON = (Condition("p", "graph", tcp=TcpSpec(tfo=tfo)) for tfo in (False, True))


def later(ms: float, plt_ms: float = 0.0) -> PageLoad:
    """The load with an end of its request so much later, and of all of it."""
    request = replace(LOAD.requests[0], end_ms=100.0 + ms)
    return replace(LOAD, plt_ms=100.0 + plt_ms, requests=(request,))


def record(condition: Condition, seed: int, load: PageLoad | None = LOAD, **more: object) -> Record:
    trial = Trial(condition, seed, seed, "virtual", "7.3")
    made = Record(trial.id, trial, "ok", "env", measured=load)
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("loads", "differ"),
    [
        ([], None),
        ([LOAD], None),
        ([LOAD, LOAD, LOAD], False),
        ([LOAD, later(0.000256, 0.000768)], False),
        ([LOAD, LOAD, later(0.0, 2 * RESOLUTION_MS)], True),
        # A browser's load may end in the same frame although a request took longer.
        ([LOAD, later(2 * RESOLUTION_MS)], True),
        ([LOAD, replace(LOAD, requests=())], True),
    ],
)
def test_seeds_differ(loads: list[PageLoad], differ: bool | None) -> None:
    assert seeds_differ("page_load", loads) is differ


def test_one_cell_that_varies_is_enough() -> None:
    copies = [record(OFF, 0), record(OFF, 1)]
    assert nothing_varies(copies)
    assert nothing_varies([*copies, record(ON, 0), record(ON, 1)])
    assert not nothing_varies([*copies, record(ON, 0), record(ON, 1, later(1.0, 1.0))])


def test_what_does_not_count_says_nothing() -> None:
    assert not nothing_varies([])
    once = [record(OFF, 0)]
    assert not nothing_varies(once)
    assert not nothing_varies([*once, record(OFF, 1, outcome="unproven")])
    again = record(OFF, 0, attempt=2)  # of the same trial
    assert not nothing_varies([*once, again])
    warm = record(OFF, 1)
    assert not nothing_varies([*once, replace(warm, trial=replace(warm.trial, warm_up=True))])
    failed = record(ON, 0, None, outcome="failed")
    assert nothing_varies([*once, record(OFF, 1), failed])


@pytest.mark.parametrize(
    ("condition", "nothing"),
    [
        (OFF, True),
        (replace(OFF, link=LinkSpec(loss_pct=0.1)), False),
        (replace(OFF, think_spread_pct=1.0), False),
        (replace(OFF, start_spread_ms=1.0), False),
    ],
)
def test_knobs_that_ask_for_draws(condition: Condition, nothing: bool) -> None:
    assert draws_nothing(Experiment("e", "", (ON, condition))) is nothing
