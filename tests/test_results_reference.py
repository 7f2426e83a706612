"""docs/results.md against their code, and against real results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypedDict, get_args

import pytest

from analysis.kinds.page_load.tables import (
    CELL_COLUMNS,
    CELL_MILESTONES,
    CELL_PATHS,
    PAIR_COLUMNS,
    PAIR_MILESTONES,
    PAIR_PATHS,
)
from analysis.records.cells import Cell, cells_of
from analysis.records.results import read_results
from analysis.tables.rows import table_rows
from analysis.tables.summary import Summary, render_summary, summarise
from analysis.tables.table import ResultTable, make_table
from analysis.verdicts.compare.comparison import CompareOptions
from analysis.verdicts.compare.documents import describe_comparison
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.schema import ComparisonDocument
from firstflight.results_reference import (
    KNOBS,
    RESULTS_REFERENCE,
    TRIAL_FILES,
    describe,
    documents_in,
    read_exit_codes,
    render_results,
)
from testbed.base import errors
from testbed.base.machine import describe_machine, describe_queues, read_sample
from testbed.base.places import ROOT
from testbed.experiment.knobs import paths
from testbed.lab.link.protocol import LinkReport
from testbed.model import Record
from testbed.results.environment import read_facts
from testbed.results.manifest import Manifest
from testbed.runner.judge import ARTEFACTS

BASELINES = sorted((ROOT / "analysis" / "baselines").iterdir())
NAMED_BY_DATA = re.compile(r"\bby [\w' ]*(name|names|outcome|verdict|protocol)\b")
"""What a description says of an object whose keys are data."""
KNOB_NAMES = {path[-1] for path in paths()} | {"link", "tcp", "server", "arrivals"}


def undescribed(value: Any, hint: Any, meaning: str, place: str) -> Iterator[str]:
    """Each key of a document that neither a field nor the words about its field explain."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from undescribed(each, (get_args(hint) or (hint,))[0], meaning, place)
        return
    if not isinstance(value, Mapping):
        return
    documents = tuple(documents_in(hint))
    known = {
        f.name: f for document in documents if document not in KNOBS for f in describe(document)
    }
    for key, below in value.items():
        where = f"{place}.{key}"
        if key in known:
            yield from undescribed(below, known[key].type, known[key].meaning, where)
        elif KNOBS.keys() & set(documents) or "(knobs.md)" in meaning:
            yield from () if key in KNOB_NAMES or isinstance(below, Mapping) else (where,)
        elif documents and isinstance(below, Mapping):
            yield from undescribed(below, documents[0], meaning, where)
        elif not (f"`{key}`" in meaning or f"`{key.partition('.')[0]}.`" in meaning):
            yield from () if NAMED_BY_DATA.search(meaning) else (where,)


def described(value: Any, root: type) -> list[str]:
    """What of a document of the kind ``root`` is not described."""
    return sorted(set(undescribed(value, root, "", root.__name__)))


def test_the_reference_is_what_the_code_says() -> None:
    assert RESULTS_REFERENCE.read_text(encoding="utf-8") == render_results(), "run make reference"


@pytest.mark.parametrize("folder", BASELINES, ids=lambda path: path.name)
def test_everything_in_committed_results_is_described(folder: Path) -> None:
    assert described(json.loads((folder / "manifest.json").read_text()), Manifest) == []
    for line in (folder / "records.jsonl").read_text().splitlines():
        assert described(json.loads(line), Record) == []


@pytest.mark.parametrize("folder", BASELINES, ids=lambda path: path.name)
def test_every_key_of_the_summary_and_of_a_comparison_is_described(folder: Path) -> None:
    results = read_results(folder)
    summary = render_summary(summarise(results, make_table(cells_of(results), None)))
    whole = json.loads(summary)
    rows = whole.pop("table")
    assert rows
    assert described(whole, Summary) == []
    compared = describe_comparison(compare_results(folder, folder, CompareOptions()))
    assert described(json.loads(json.dumps(compared)), ComparisonDocument) == []


def columns(cells: tuple[Cell, ...]) -> tuple[ResultTable, list[str]]:
    table = make_table(cells, None)
    return table, [name for name in table_rows(table)[0] if name not in table.axes]


def of_one_visit(columns: Iterable[str]) -> list[str]:
    # The committed loads were not watched until their pages had settled.
    return [name for name in columns if not name.startswith(("first_", "settled_"))]


@pytest.mark.parametrize(
    ("folder", "browser"), [("nightly", False), ("paper-table1", True)], ids=["graph", "chromium"]
)
def test_every_column_of_the_table_is_described_in_its_order(folder: str, browser: bool) -> None:
    cells = cells_of(read_results(ROOT / "analysis" / "baselines" / folder))
    table, found = columns(cells)
    assert table.paired
    further = of_one_visit(PAIR_MILESTONES) if browser else ()
    assert found == [*PAIR_COLUMNS, *further, *PAIR_PATHS]
    table, found = columns(tuple(cell for cell in cells if cell.axes["tfo"]))
    assert not table.paired
    further = of_one_visit(CELL_MILESTONES) if browser else ()
    assert found == [*CELL_COLUMNS, *further, *CELL_PATHS]


def test_what_a_machine_and_a_link_report_is_described() -> None:
    sample = read_sample()
    link = {each.name for each in fields(LinkReport) if "int" in each.type or "float" in each.type}
    link -= {"late_packets"}  # counts by class, which a record does not keep
    machine = {*describe_machine(sample, sample), *describe_queues(1.0, 0.0, 0.0), *link}
    record = {"machine": dict.fromkeys(machine, 0.0)}
    assert described(record, Record) == []
    facts = {"environment": {"facts": {**read_facts(ROOT), "confinement": "", "cpuid": ""}}}
    assert described(facts, Manifest) == []


def test_every_kept_file_and_every_exit_code_is_described() -> None:
    assert set(ARTEFACTS) <= set(TRIAL_FILES)
    codes = {str(value) for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert set(read_exit_codes()) == codes
    assert all(read_exit_codes().values())


@dataclass(frozen=True)
class Undescribed:
    """A class with a field that nothing is said of."""

    known_ms: float
    """What it is."""
    other: int


class Lacking(TypedDict):
    """The same of a typed dictionary."""

    name: str


@pytest.mark.parametrize(("kind", "field"), [(Undescribed, "other"), (Lacking, "name")])
def test_a_field_without_a_description_is_refused_by_name(kind: type, field: str) -> None:
    with pytest.raises(ValueError, match=rf"string below the field.*{kind.__name__}\.{field}'\]"):
        describe(kind)


def test_a_key_without_a_description_is_found() -> None:
    record = {
        "trial_id": "",
        "speed": 1,
        "lab": {"knobs": {"wind.speed": "1"}},
        "machine": {"x": 1},
    }
    record["trial"] = {"condition": {"page": "", "wind": 1, "link": {"rtt_ms": 1, "wind": 2}}}
    assert described(record, Record) == [
        "Record.lab.knobs.wind.speed",
        "Record.machine.x",
        "Record.speed",
        "Record.trial.condition.wind",
    ]
