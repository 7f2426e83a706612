"""Pages show what the committed results give, to the letter."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest

from analysis.readme import list_pages, render_page
from analysis.records.results import read_results
from analysis.report.publications import Agreement
from testbed.base.errors import ConfigurationError
from testbed.base.places import CONFIGS, ROOT
from testbed.experiment.config import load_experiment
from testbed.runner.prepare import read_catalogue
from wings.papers.documents import COMMITTED, PAPERS, README, TABLES, list_reproductions
from wings.papers.published.reference import read_reference

TEXT = README.read_text(encoding="utf-8")
SHOWN = [(page, name) for page, tables in TABLES.items() for name in tables]


def name_page(of: object) -> str:
    """How a test's case is named: a page by its place, a table by its name."""
    return "-".join(of.relative_to(ROOT).with_suffix("").parts) if isinstance(of, Path) else str(of)


def grow(measured: Any) -> Any:
    """Everything with a fraction made half as much again, but theory."""
    if isinstance(measured, dict):
        return {name: each if name == "theory" else grow(each) for name, each in measured.items()}
    if isinstance(measured, list):
        return [grow(value) for value in measured]
    return measured * 1.5 if isinstance(measured, float) else measured


@pytest.mark.parametrize("page", list_pages(), ids=name_page)
def test_the_tables_are_those_of_the_committed_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert render_page(page, text) == text, "make readme writes the tables anew"


@pytest.mark.parametrize("page", TABLES, ids=name_page)
def test_every_table_says_where_it_is_from(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for shown in TABLES[page].values():
        results = read_results(ROOT / shown.folder)
        facts = results.manifest["environment"]["facts"]
        caption = next(line for line in text.splitlines() if f"`{shown.folder}`" in line)
        assert facts["git_revision"][:12] in caption
        assert str(results.identity.environment) in caption
        for version in results.identity.clients.values():
            assert version in caption


@pytest.mark.nightly(but="^README-paper-table1$|^wings-papers-docs-tcp-rto-min$")
@pytest.mark.parametrize(("page", "name"), SHOWN, ids=name_page)
def test_another_number_is_found_on_either_side(page: Path, name: str, tmp_path: Path) -> None:
    folder = TABLES[page][name].folder
    shutil.copytree(ROOT / folder, tmp_path / folder)
    written = re.search(rf"<!-- table: {name} -->\n(.*?)<!-- end -->", page.read_text(), re.DOTALL)
    assert written
    made = list_pages()[page][name]
    assert made(tmp_path) == written[1]
    path = tmp_path / folder / "records.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    parts = ("lab",) if name == "calibration" else ("load", "served")
    for record in records[::2]:
        record |= {part: grow(record[part]) for part in parts}
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    assert made(tmp_path) != written[1]


def test_every_publication_has_its_verdicts_counted() -> None:
    lines = list_reproductions(ROOT).splitlines()
    heads, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    counted = {row[0].strip("`"): dict(zip(heads, row, strict=True)) for row in rows[1:]}
    committed = {line.split()[1] for line in (ROOT / COMMITTED).read_text().splitlines()}
    for name in committed & {path.stem for path in CONFIGS.glob("*.toml")}:
        stated = load_experiment(CONFIGS / f"{name}.toml", read_catalogue()).reference
        states = stated and (read_reference(stated).stated or read_reference(stated).claims)
        assert (name in counted) == bool(states), name
    for row in counted.values():
        assert int(row["claims"]) == sum(int(row[verdict]) for verdict in get_args(Agreement)) > 0
    # A table of claims on the same page has as many of each verdict.
    text = PAPERS.read_text(encoding="utf-8")
    block = text.partition("<!-- table: tum-website -->")[2].partition("<!-- end -->")[0]
    shown = Counter(re.findall(r"\| ([^|]+) \|$", block, re.MULTILINE))
    for verdict in get_args(Agreement):
        assert int(counted["tum-website"][verdict]) == shown[verdict]


def test_a_table_too_many_or_too_few_is_named() -> None:
    with pytest.raises(ConfigurationError) as refused:
        render_page(README, TEXT.replace("table: tum-website", "table: tum-webcite"))
    assert refused.value.problems == ["README.md: no table is called tum-webcite",
                                      "README.md: the table tum-website is missing"]  # fmt: skip


def test_what_is_shown_is_measured_anew_with_the_committed_results() -> None:
    lines = (ROOT / "analysis" / "committed-results.txt").read_text().splitlines()
    kept = {"/".join(("analysis", *line.split()[:2])) for line in lines if line}
    assert {TABLES[page][name].folder for page, name in SHOWN} <= kept
