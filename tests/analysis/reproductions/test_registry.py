from __future__ import annotations

from pathlib import Path

import pytest

from analysis.published.reference import FOLDER, read_reference
from analysis.reproductions import rebuild
from tests.analysis.reproductions.sweeps import condition, results_of
from tests.analysis.sample import record

PUBLISHED = sorted({path.stem for path in FOLDER.iterdir()})


@pytest.mark.parametrize("name", ["a-sweep", "sweep", "../sweep", "agreement", *PUBLISHED])
def test_an_experiment_of_another_name_is_not_rebuilt(name: str, tmp_path: Path) -> None:
    results = results_of(tmp_path, [record(condition("amazon", 20.0), 0, 1000.0)], name)
    assert rebuild(results, None) is None


def test_an_unpublished_map_goes_by_the_experiment(tmp_path: Path) -> None:
    records = [record(condition("amazon", 20.0), 0, 1000.0)]
    rebuilt = rebuild(results_of(tmp_path, records, "reuse-initcwnd"), None)
    assert rebuilt is not None and rebuilt.title.startswith("Where reuse")


@pytest.mark.parametrize("name", PUBLISHED)
def test_without_any_record_everything_is_not_measured(name: str, tmp_path: Path) -> None:
    rebuilt = rebuild(results_of(tmp_path, []), read_reference(name))
    assert rebuilt is not None
    assert rebuilt.figures == ()
    assert {check.agreement for check in rebuilt.checks} <= {"not measured"}
