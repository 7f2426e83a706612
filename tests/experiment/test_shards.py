from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from testbed.base.errors import ConfigurationError
from testbed.experiment.plan import plan_trials
from testbed.experiment.shards import Shard, parse_shard, refuse_shard
from testbed.model import Trial
from tests.hallway import make_experiment

TRIALS = plan_trials(make_experiment(repetitions=5))


def parts(of: int, overlap_pct: float = 0.0) -> list[tuple[Trial, ...]]:
    return [Shard(number, of, overlap_pct).part_of(TRIALS) for number in range(1, of + 1)]


@pytest.mark.parametrize("of", [1, 2, 3, 7, 16, 40, 64])
def test_every_trial_is_in_one_part_and_parts_are_even(of: int) -> None:
    found = Counter(trial.id for part in parts(of) for trial in part)
    assert found == Counter(trial.id for trial in TRIALS)
    sizes = [len(part) for part in parts(of)]
    assert max(sizes) - min(sizes) <= 1


def test_the_trials_of_a_seed_stay_together_in_the_order_of_the_plan() -> None:
    for part in parts(5):
        assert len({trial.seed for trial in part}) == 1
        places = [TRIALS.index(trial) for trial in part]
        assert places == sorted(places)


def test_a_part_does_not_depend_on_the_order_of_the_plan() -> None:
    turned = TRIALS[::-1]
    for number in range(1, 8):
        shard = Shard(number, 7, 10.0)
        assert set(shard.part_of(turned)) == set(shard.part_of(TRIALS))


def test_an_overlap_is_the_beginning_of_the_next_part_and_the_last_has_the_first() -> None:
    alone, more = parts(4), parts(4, 20.0)
    for number, part in enumerate(more):
        extra = {t.id for t in part} - {t.id for t in alone[number]}
        assert len(extra) == 2  # of 10 trials
        assert extra <= {t.id for t in alone[(number + 1) % 4]}


@pytest.mark.parametrize(
    ("shard", "overlap", "complaint"),
    [
        ("0/4", None, "the parts of 4 are 1/4 to 4/4"),
        ("17/16", None, "the parts of 16 are 1/16 to 16/16"),
        ("1/0", None, "a plan has 1 to"),
        ("3", None, "write it as K/N"),
        ("-1/4", None, "write it as K/N"),
        ("1/4/2", None, "write it as K/N"),
        ("1/4", "x%", "--overlap x%: write it as a share"),
        ("1/4", "101%", "--overlap 101%: write it as a share"),
        ("1/4", "nan", "--overlap nan: write it as a share"),
        (None, "1%", "give --shard K/N, too"),
    ],
)
def test_what_is_no_part_is_refused(shard: str | None, overlap: str | None, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_shard(shard, overlap)
    assert complaint in str(caught.value)


def test_all_problems_at_once_and_what_is_right() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_shard("5/4", "x")
    assert len(caught.value.problems) == 2
    assert parse_shard(None, None) is None
    assert parse_shard("3/16", "2.5%") == Shard(3, 16, 2.5)
    assert str(Shard(3, 16)) == "3/16"


def test_parts_are_for_the_virtual_kernel_and_a_fixed_number() -> None:
    wrong = replace(make_experiment(), kernel="host", until_ci_pct=1.0)
    with pytest.raises(ConfigurationError) as caught:
        refuse_shard(Shard(1, 2), wrong)
    real, open_end = caught.value.problems
    assert "real time" in real
    assert "-n" in open_end
