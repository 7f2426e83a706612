"""Rates as multiples of a saturation, and the search for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import ConfigurationError
from testbed.experiment.config import load_experiment
from testbed.experiment.options import parse_override, select
from testbed.experiment.plan import plan_trials
from testbed.model import Experiment
from tests.hallway import CATALOGUE
from wings.server_loads.saturation import RESOLUTION, bisect, keeps_up
from wings.server_loads.spec import HIGHEST_RATE, ServerLoad
from wings.server_loads.tests.loads import served

KIND = 'kind = "server_load"\n'
RELATIVE = (
    f'{KIND}saturation_per_s = 1000\n[sweep]\nmechanism = ["default", "abort"]\n'
    "rate_of_saturation = [0.5, 1.0, 1.333]\n"
)


def load(folder: Path, text: str, *sets: str) -> Experiment:
    path = folder / "trial.toml"
    path.write_text(text)
    return load_experiment(path, CATALOGUE, [parse_override(text) for text in sets])


def rates(experiment: Experiment) -> list[int]:
    return [c.arrivals.rate_per_s for c in experiment.conditions if isinstance(c, ServerLoad)]


def test_trials_have_the_product_in_the_place_of_the_multiple(tmp_path: Path) -> None:
    experiment = load(tmp_path, RELATIVE)
    assert rates(experiment) == [500, 1000, 1333] * 2
    assert experiment.saturation_per_s == 1000
    plain = load(tmp_path, RELATIVE, "rate_per_s=[500, 1000, 1333]")
    assert [t.id for t in plan_trials(plain)] == [t.id for t in plan_trials(experiment)]


def test_a_multiple_is_set_alone_and_takes_the_place_of_a_rate(tmp_path: Path) -> None:
    plain = f"{KIND}saturation_per_s = 1000\n[arrivals]\nrate_per_s = 7\n"
    assert rates(load(tmp_path, plain, "rate_of_saturation=1.5")) == [1500]
    assert rates(load(tmp_path, plain, "rate_of_saturation=[2, 3]")) == [2000, 3000]
    assert rates(load(tmp_path, RELATIVE, "rate_per_s=7")) == [7, 7]
    assert rates(load(tmp_path, RELATIVE, "saturation_per_s=100"))[0] == 50


def test_only_takes_the_multiple_too(tmp_path: Path) -> None:
    experiment = load(tmp_path, RELATIVE)
    assert rates(select(experiment, "rate_of_saturation=1.333,mechanism=abort")) == [1333]
    with pytest.raises(ConfigurationError, match="rate_per_s is one of 500, 1000, 1333"):
        select(experiment, "rate_of_saturation=2")
    with pytest.raises(ConfigurationError, match="not a number above 0, up to 100"):
        select(experiment, "rate_of_saturation=much")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{KIND}[sweep]\nrate_of_saturation = [1.0]\n",
         "trial.toml:3: sweep.rate_of_saturation: a multiple of saturation_per_s, which is not "
         "set; ./run.sh saturation FILE finds it, then set it at the top of the file"),
        (f"{KIND}saturation_per_s = 9\n[arrivals]\nrate_of_saturation = 1.0\nrate_per_s = 3\n",
         "trial.toml:4: arrivals.rate_of_saturation: there is rate_per_s as well; keep one of the "
         "two"),
        (f"{KIND}saturation_per_s = 9\n[arrivals]\nrate_of_saturation = 1.0\n"
         "[sweep]\nrate_of_saturation = [2.0]\n",
         "trial.toml:6: sweep.rate_of_saturation: also in [arrivals]; keep one of the two"),
        (f"{KIND}saturation_per_s = 9\n[sweep]\nrate_of_saturation = [1.0, 1.01]\n",
         "trial.toml:4: sweep.rate_of_saturation: times 9 this is 9, 9 a second; allowed: "
         "different whole numbers from 1 to 1000000"),
        ('page = "wsj"\nclient = "graph"\nsaturation_per_s = 9\n[sweep]\n'
         "rate_of_saturation = [1.0]\n",
         'trial.toml:5: sweep.rate_of_saturation: trials of the kind page_load have no rate_per_s; '
         'set kind = "server_load"'),
    ],
)  # fmt: skip
def test_what_makes_no_rate_is_named(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)
    (problem,) = caught.value.problems
    assert problem.endswith(f"/{expected}")


def test_keeping_up_is_to_answer_as_fast_as_connections_come() -> None:
    # 20 connections in 2 s.
    assert keeps_up(served(replies_per_s=10.0)) and keeps_up(served(replies_per_s=9.9))
    assert not keeps_up(served(replies_per_s=9.7))


@given(st.integers(1, HIGHEST_RATE - 1), st.integers(1, 100_000))
def test_a_search_encloses_the_saturation(saturation: int, begin: int) -> None:
    tried: list[int] = []

    def holds(rate: int) -> bool:
        tried.append(rate)
        return rate <= saturation

    *_, last = bisect(begin, holds)
    assert last.kept <= saturation < last.lost
    assert last.lost <= max(last.kept + 1, last.kept * RESOLUTION)
    assert len(tried) == len(set(tried)) <= 32


@pytest.mark.parametrize("always", [True, False])
def test_a_server_without_a_saturation_has_no_bounds(always: bool) -> None:
    assert not list(bisect(1000, lambda _: always))
