from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.sample import record
from wings.papers import REFERENCES
from wings.papers.publications import rebuild_as
from wings.papers.published.reference import read_reference
from wings.papers.tests.reproductions.sweeps import condition, results_of

PUBLISHED = sorted({path.stem for path in REFERENCES.iterdir()})


@pytest.mark.parametrize("name", ["a-sweep", "sweep", "../sweep", "agreement", *PUBLISHED])
def test_an_experiment_of_another_name_is_not_rebuilt(name: str, tmp_path: Path) -> None:
    results = results_of(tmp_path, [record(condition("amazon", 20.0), 0, 1000.0)], name)
    assert rebuild_as(results, None) is None


def test_an_unpublished_map_goes_by_the_experiment(tmp_path: Path) -> None:
    records = [record(condition("amazon", 20.0), 0, 1000.0)]
    rebuilt = rebuild_as(results_of(tmp_path, records, "reuse-initcwnd"), None)
    assert rebuilt is not None and rebuilt.title.startswith("Where reuse")


@pytest.mark.parametrize("name", PUBLISHED)
def test_without_any_record_everything_is_not_measured(name: str, tmp_path: Path) -> None:
    rebuilt = rebuild_as(results_of(tmp_path, []), read_reference(name))
    assert rebuilt is not None
    assert rebuilt.figures == ()
    assert {check.agreement for check in rebuilt.checks} <= {"not measured"}
