"""An algorithm that a pinned kernel does not have is refused before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from testbed.experiment.config import load_experiment
from testbed.experiment.options import parse_override
from testbed.model import Experiment
from testbed.runner.prepare import read_catalogue
from tests.hallway import CATALOGUE

MINIMAL = 'page = "wsj"\nclient = "graph"\n'
KNOWN = replace(CATALOGUE, algorithms={"7.3": ("reno", "cubic", "bbr")})


def load(folder: Path, *sets: str) -> Experiment:
    path = folder / "trial.toml"
    path.write_text(MINIMAL)
    return load_experiment(path, KNOWN, [parse_override(text) for text in sets])


@pytest.mark.parametrize(
    "asked", ["congestion_control=bbr3", "route.server.congctl=bbr3", "route.client.congctl=bbr3"]
)
def test_an_algorithm_that_no_such_kernel_has(tmp_path: Path, asked: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, asked)
    (problem,) = caught.value.problems
    assert "the virtual kernel 7.3 has no 'bbr3'" in problem
    assert "allowed: reno, cubic, bbr, or a kernel of your own" in problem


@pytest.mark.parametrize("asked", ["reno", "cubic", "bbr"])
def test_those_that_it_has(tmp_path: Path, asked: str) -> None:
    assert load(tmp_path, f"congestion_control={asked}").conditions


def test_other_kernels_tell_when_they_run(tmp_path: Path) -> None:
    assert load(tmp_path, "congestion_control=bbr3", "kernel.version=6.1").conditions


def test_what_pinned_kernels_are_built_with() -> None:
    assert read_catalogue().algorithms == dict.fromkeys(
        ("7.3", "6.1", "6.12"), ("reno", "cubic", "bbr", "dctcp")
    )
