from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from analysis.publications.reference import FOLDER, read_reference
from analysis.rebuilt import BY_EXPERIMENT, BY_REFERENCE, rebuild
from tests.analysis.rebuilt.sweeps import condition, results_of
from tests.analysis.sample import record


def test_every_publication_is_rebuilt_by_a_module() -> None:
    assert set(BY_REFERENCE) == {path.stem for path in FOLDER.glob("*.csv")}
    for module in (*BY_REFERENCE.values(), *BY_EXPERIMENT.values()):
        assert callable(import_module(f"analysis.rebuilt.{module}").rebuild)


def test_of_an_unknown_experiment_there_is_nothing_to_rebuild(tmp_path: Path) -> None:
    results = results_of(tmp_path, [record(condition("amazon", 20.0), 0, 1000.0)])
    assert rebuild(results, None) is None


def test_an_unpublished_map_goes_by_the_experiment(tmp_path: Path) -> None:
    records = [record(condition("amazon", 20.0), 0, 1000.0)]
    rebuilt = rebuild(results_of(tmp_path, records, "reuse-initcwnd"), None)
    assert rebuilt is not None and rebuilt.title.startswith("Where reuse")


@pytest.mark.parametrize("name", sorted(BY_REFERENCE))
def test_without_any_record_everything_is_not_measured(name: str, tmp_path: Path) -> None:
    rebuilt = rebuild(results_of(tmp_path, []), read_reference(name))
    assert rebuilt is not None
    assert rebuilt.figures == ()
    assert {check.agreement for check in rebuilt.checks} <= {"not measured"}
