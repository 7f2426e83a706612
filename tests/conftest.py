"""A hallway with a fake kernel behind its services: no root, no kernel build, no browser."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from testbed.base import places
from testbed.experiment.config import Catalogue
from testbed.experiment.plan import plan_trials
from testbed.model import DEFAULT_ROOT, Experiment, Trial
from testbed.results.environment import Environment
from testbed.root.cache import Root, ensure_named
from tests.hallway import CATALOGUE, ENVIRONMENT, make_experiment


@pytest.fixture(scope="session")
def root() -> Root:
    """The root that trials run, assembled now if need be."""
    return ensure_named(DEFAULT_ROOT, places.cache(), print)


@pytest.fixture
def tag() -> str:
    """Begins the names of a lab of this test run."""
    return f"fft{os.getpid()}-"


@pytest.fixture
def catalogue() -> Catalogue:
    return CATALOGUE


@pytest.fixture
def environment() -> Environment:
    return ENVIRONMENT


@pytest.fixture
def experiment() -> Experiment:
    return make_experiment()


@pytest.fixture
def trials(experiment: Experiment) -> tuple[Trial, ...]:
    return plan_trials(experiment)


@pytest.fixture
def now() -> datetime:
    return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    return folder
