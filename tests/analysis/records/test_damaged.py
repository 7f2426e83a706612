"""Results that were changed or damaged are refused by name, whatever is in their place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.records.results import read_results
from testbed.base.errors import StorageError
from testbed.base.places import ROOT
from testbed.results.manifest import MANIFEST_FILE, load_manifest
from testbed.results.records import RECORDS_FILE

RESULTS = ROOT / "analysis" / "baselines" / "paper-table1"
NAN, ENDLESS = float("nan"), float("inf")
CONDITION = ("experiment", "conditions", 1)


def changed(document: Any, path: tuple[str | int, ...], value: object) -> str:
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return json.dumps(document)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    shutil.copy(RESULTS / MANIFEST_FILE, tmp_path)
    lines = (RESULTS / RECORDS_FILE).read_text().splitlines(keepends=True)
    (tmp_path / RECORDS_FILE).write_text("".join(lines[:2]))
    return tmp_path


@pytest.mark.parametrize(("path", "value", "named"), [
    ((*CONDITION, "tcp"), 7, "tcp"), ((*CONDITION, "tcp", "tfo"), [1], "tfo"),
    ((*CONDITION, "link"), {"a": 1}, "link.a"), ((*CONDITION, "page"), {}, "page"),
    ((*CONDITION, "client"), -1, "client"), ((*CONDITION, "link", "down_kbit"), NAN, "NaN"),
    ((*CONDITION, "link", "rtt_ms"), "20", "rtt_ms"), ((*CONDITION, "later"), True, "later"),
    (("experiment", "repetitions"), ENDLESS, "Infinity"),
    (("experiment", "until_ci_pct"), "x", "until_ci_pct"),
    (("experiment", "conditions"), 3, "conditions"), (("experiment",), [], "experiment"),
    (("environment", "parts"), 1, "parts"),
])  # fmt: skip
def test_a_damaged_manifest_is_refused(
    results: Path, path: tuple[str | int, ...], value: object, named: str
) -> None:
    manifest = json.loads((results / MANIFEST_FILE).read_text())
    (results / MANIFEST_FILE).write_text(changed(manifest, path, value))
    with pytest.raises(StorageError, match=named) as caught:
        read_results(results)
    assert MANIFEST_FILE in str(caught.value)


def test_a_record_with_a_number_without_an_end_is_refused(results: Path) -> None:
    first, second = (results / RECORDS_FILE).read_text().splitlines()
    path = ("attempt",)
    (results / RECORDS_FILE).write_text(f"{first}\n{changed(json.loads(second), path, NAN)}\n")
    with pytest.raises(StorageError, match=r"jsonl:2: NaN is no finite number"):
        read_results(results)


def test_what_is_whole_is_read(results: Path) -> None:
    assert len(read_results(results).records) == 2
    assert load_manifest(results).experiment.kind == "page_load"
