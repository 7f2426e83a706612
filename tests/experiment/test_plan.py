from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from testbed.base.errors import ConfigurationError
from testbed.experiment.plan import choose_trials, plan_trials, positions
from testbed.kernel import KERNELS
from testbed.model import Condition, Experiment, LinkSpec, TcpSpec, digest, in_real_time
from testbed.model.knob import FIRST_SCHEMA, declared
from tests.hallway import make_experiment


def test_each_repetition_has_the_next_seed() -> None:
    trials = plan_trials(replace(make_experiment(repetitions=3), seed=5))
    assert [(t.repetition, t.seed) for t in trials[::8]] == [(0, 5), (1, 6), (2, 7)]
    assert len(trials) == 24
    assert [t.condition for t in trials] == list(make_experiment().conditions) * 3


def test_ids_are_unique_and_stable(experiment: Experiment) -> None:
    ids = [trial.id for trial in plan_trials(replace(experiment, repetitions=5))]
    assert len(set(ids)) == len(ids) == 40
    assert ids == [trial.id for trial in plan_trials(replace(experiment, repetitions=5))]
    assert ids[:8] == [trial.id for trial in plan_trials(experiment)]


def test_the_time_out_does_not_change_an_id_but_kernel_and_seed_do(experiment: Experiment) -> None:
    ids = {trial.id for trial in plan_trials(experiment)}
    assert {t.id for t in plan_trials(replace(experiment, timeout_s=1.0))} == ids
    assert not {t.id for t in plan_trials(replace(experiment, kernel_version="6.1"))} & ids
    assert not {t.id for t in plan_trials(replace(experiment, seed=9))} & ids


def test_equal_conditions_are_refused(experiment: Experiment) -> None:
    twice = replace(experiment, conditions=experiment.conditions[:1] * 2)
    with pytest.raises(ConfigurationError, match="the same"):
        plan_trials(twice)
    with pytest.raises(ConfigurationError, match="no trials"):
        plan_trials(replace(experiment, conditions=()))


def on_host(experiment: Experiment, **changes: Any) -> Experiment:
    return replace(experiment, kernel="host", **changes)


def test_in_real_time_each_block_holds_every_condition_once_in_an_order_of_its_own(
    experiment: Experiment,
) -> None:
    trials = [t for t in plan_trials(on_host(experiment, repetitions=4)) if not t.warm_up]
    blocks = [trials[i : i + 8] for i in range(0, 32, 8)]
    assert [{t.repetition for t in block} for block in blocks] == [{0}, {1}, {2}, {3}]
    assert [{t.seed for t in block} for block in blocks] == [{0}, {1}, {2}, {3}]
    orders = [tuple(experiment.conditions.index(t.condition) for t in block) for block in blocks]
    assert all(sorted(order) == list(range(8)) for order in orders)
    assert len({*orders, tuple(range(8))}) == 5


def test_the_order_follows_from_the_seed_and_more_blocks_do_not_change_it(
    experiment: Experiment,
) -> None:
    two, four = (plan_trials(on_host(experiment, repetitions=n)) for n in (2, 4))
    assert four[: len(two)] == two
    other = plan_trials(on_host(experiment, repetitions=2, seed=1))
    assert [t.condition for t in other] != [t.condition for t in two]


def test_positions_count_within_a_block_and_virtual_time_has_none(experiment: Experiment) -> None:
    trials = plan_trials(on_host(experiment, repetitions=2))
    assert [positions(trials)[t.id] for t in trials] == [*range(8)] * 3
    assert positions(plan_trials(replace(experiment, repetitions=2))) == {}


def test_one_warm_up_block_in_real_time_and_none_in_virtual(experiment: Experiment) -> None:
    assert [t.warm_up for t in plan_trials(on_host(experiment))] == [True] * 8 + [False] * 8
    assert not any(t.warm_up for t in plan_trials(experiment))
    asked = plan_trials(on_host(experiment, warmup_blocks=2))
    assert sum(t.warm_up for t in asked) == 16
    assert len({t.id for t in asked}) == 24
    assert not any(t.warm_up for t in plan_trials(on_host(experiment, warmup_blocks=0)))


def test_what_counts_has_the_id_that_it_had_before_there_were_warm_ups(
    experiment: Experiment,
) -> None:
    (trial, *_) = plan_trials(experiment)
    identity = asdict(trial)
    del identity["timeout_s"], identity["warm_up"]
    for each in declared(Condition):
        if each.knob.since > FIRST_SCHEMA:
            holder = identity["condition"]
            for table in each.table:
                holder = holder[table]
            del holder[each.name]
    assert identity["condition"].pop("quic") == {}  # a table that came later
    assert trial.id == digest(identity)[:16]
    assert replace(trial, warm_up=True).id != trial.id


def test_a_condition_is_warmed_up_whenever_it_runs(experiment: Experiment) -> None:
    trials = plan_trials(on_host(experiment, repetitions=2))
    every = frozenset(trial.id for trial in trials)
    assert choose_trials(trials, every) == ()
    left = trials[-1]
    chosen = choose_trials(trials, every - {left.id})
    assert [t.warm_up for t in chosen] == [True, False]
    assert {t.condition for t in chosen} == {left.condition}


def test_of_all_kernels_the_host_alone_runs_in_real_time() -> None:
    assert [name for name in KERNELS if in_real_time(name)] == ["host"]


def test_a_client_without_chance_loads_once_what_draws_nothing() -> None:
    exact, chromium = (
        Condition("amazon", client, LinkSpec(rtt_ms=20.0), TcpSpec())
        for client in ("graph", "chromium")
    )
    lossy = replace(exact, link=replace(exact.link, loss_pct=0.3))
    asked = replace(make_experiment(repetitions=3), conditions=(exact, lossy, chromium))
    trials = plan_trials(asked, once=("graph",))
    assert [(t.condition, t.seed) for t in trials] == [
        (exact, 0), (lossy, 0), (chromium, 0), (lossy, 1), (chromium, 1), (lossy, 2), (chromium, 2),
    ]  # fmt: skip
    assert len(plan_trials(asked)) == 9
