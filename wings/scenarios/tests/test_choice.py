"""The verb of scenarios: what it lists, plans and refuses, without a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from testbed.experiment.config import Catalogue
from testbed.runner.prepare import read_library
from wings.scenarios.choice import choose_scenarios, plan_lanes
from wings.scenarios.tests import SCENARIOS

FILES = read_library(SCENARIOS)
CATALOGUE = Catalogue(frozenset(), frozenset(), frozenset(),
                      {"virtual": ("7.3", "6.1", "6.12"), "host": ("6.18",)}, {"scenario": FILES},
                      ("7.3", "6.1"))  # fmt: skip
CACHED = choose_scenarios(["cached-cookie"], CATALOGUE)


def refused(*names: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        choose_scenarios(names, CATALOGUE)
    return list(caught.value.problems)


def test_all_are_chosen_once() -> None:
    chosen = choose_scenarios(["cached-cookie", "all", "cached-cookie"], CATALOGUE)
    assert [one.scenario for one in chosen[:1]] == ["cached-cookie"]
    assert {one.scenario for one in chosen} == FILES.keys()
    assert len(chosen) == len(FILES)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILES["refused"])
    (chosen,) = choose_scenarios([str(file)], CATALOGUE)
    assert (chosen.scenario, chosen.text) == ("mine", FILES["refused"])


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('title = "x"')
    gone = tmp_path / "gone.toml"
    problems = refused("cached-cooky", str(gone), str(file))
    assert problems[0].startswith("no scenario is named 'cached-cooky' (did you mean 'cached-coo")
    assert problems[1] == f"cannot read {gone}: No such file or directory"
    assert "wrong: steps: missing, or no text" in problems
    file.write_text(FILES["cached-cookie"].replace("client  recv c", "client receive c"))
    assert "'receive' is nothing that client can do (did you mean 'recv'?); allowed: listen" in str(
        refused(str(file))
    )


def test_each_kernel_is_a_lane() -> None:
    def lanes(*versions: str, host: bool = False, everything: bool = False) -> list[str]:
        found = plan_lanes(CACHED, "virtual", versions, host, everything, CATALOGUE)
        return [f"{one.kernel} {one.kernel_version}" for one in found]

    assert lanes() == ["virtual 7.3"]
    assert lanes(everything=True, host=True) == ["virtual 7.3", "virtual 6.1", "host 6.18"]
    assert lanes("6.1", "6.1") == ["virtual 6.1"]
    assert lanes("6.12", everything=True) == ["virtual 6.12"]
    (lane,) = plan_lanes(CACHED, "host", (), False, True, CATALOGUE)
    assert (lane.kernel, lane.conditions, lane.kind) == ("host", CACHED, "scenario")
    assert lane.warmup_blocks == 0


@pytest.mark.parametrize(("kernel", "version", "said"), [
    ("virtul", "7.3", "--kernel virtul: no such kernel (did you mean 'virtual'?); allowed"),
    ("virtual", "7.4", "--kernel-version 7.4: the virtual kernel has no version '7.4'"),
])  # fmt: skip
def test_a_kernel_that_is_none(kernel: str, version: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match="allowed: ") as caught:
        plan_lanes(CACHED, kernel, (version,), False, False, CATALOGUE)
    assert caught.value.problems[0].startswith(said)
