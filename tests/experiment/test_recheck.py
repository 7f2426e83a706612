from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.base.places import CONFIGS, ROOT
from testbed.experiment.config import load_experiment
from testbed.experiment.recheck import check_experiment
from testbed.model import Condition, Experiment, LinkSpec
from testbed.model.knob import build
from testbed.results.manifest import load_manifest
from testbed.runner.prepare import read_catalogue

CATALOGUE = read_catalogue()
COMMITTED = (*ROOT.glob("analysis/baselines/*/manifest.json"),
             *ROOT.glob("analysis/samples/*/manifest.json"))  # fmt: skip
CONDITION = Condition("amazon", "graph", LinkSpec(rtt_ms=20.0))
EXPERIMENT = Experiment("small", "Small", (CONDITION,))


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_what_a_file_may_say_may_come_back(path: Path) -> None:
    experiment = load_experiment(path, CATALOGUE, ())
    assert check_experiment(replace(experiment, kernel_versions=()), CATALOGUE) == []


@pytest.mark.parametrize("path", sorted(COMMITTED), ids=lambda path: path.parent.name)
def test_what_was_run_may_be_run_again(path: Path) -> None:
    assert check_experiment(load_manifest(path.parent).experiment, CATALOGUE) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": "../x"}, '"../x" cannot name an experiment'),
        ({"conditions": ()}, "it has no conditions"),
        ({"kind": "server_load"}, "of another kind than server_load"),
        ({"repetitions": -1}, "repetitions: -1 is not"),
        ({"seed": 2**40}, "seed: "),
        ({"kernel": "other"}, "kernel.name: no kernel is named 'other'"),
        ({"kernel_version": "9.9"}, "no version '9.9'"),
        ({"kernel_versions": ("6.1", "7.3")}, "of several kernels"),
        ({"reference": "x"}, "reference: no reference is named 'x'"),
        ({"until_ci_pct": 0.0}, "until_ci_pct: 0.0 is not"),
        ({"command_folder": "/root"}, "a command of somebody's own"),
        (
            {"conditions": (replace(CONDITION, client="command", command="curl {url}"),)},
            "a command of somebody's own",
        ),
    ],
)
def test_what_no_file_may_say(changes: dict[str, Any], problem: str) -> None:
    (found,) = check_experiment(replace(EXPERIMENT, **changes), CATALOGUE)
    assert problem in found


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"rtt_ms": -5.0}, "rtt_ms: -5.0 is not"),
        ({"page": "../../x"}, "page: no page is named '../../x'"),
        ({"client": "sh"}, "client: no client is named 'sh'"),
        ({"congestion_control": "x; y"}, "congestion_control: "),
    ],
)
def test_what_no_condition_may_have(values: dict[str, Any], problem: str) -> None:
    given = {"page": "amazon", "client": "graph", "rtt_ms": 20.0} | values
    experiment = replace(EXPERIMENT, conditions=(build(Condition, given),))
    (found,) = check_experiment(experiment, CATALOGUE)
    assert found.startswith(problem)


def test_all_problems_at_once() -> None:
    wrong = build(Condition, {"page": "none", "client": "none", "rtt_ms": -1.0})
    found = check_experiment(
        replace(EXPERIMENT, conditions=(wrong, wrong), repetitions=0), CATALOGUE
    )
    assert len(found) == 4
