"""The README shows what the committed results give, to the letter, and no table beside it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from analysis.readme import list_pages, render_page
from analysis.records.results import read_results
from testbed.base.errors import ConfigurationError
from testbed.base.places import CONFIGS, ROOT
from testbed.experiment.config import load_experiment
from testbed.runner.prepare import read_catalogue
from wings.papers.documents import README, TABLES

TEXT = README.read_text(encoding="utf-8")
SHOWN = [(page, name) for page, tables in TABLES.items() for name in tables]


def copy_committed(folder: Path, page: Path) -> Path:
    """The committed results that a page shows, to be changed."""
    for shown in TABLES[page].values():
        shutil.copytree(ROOT / shown.folder, folder / shown.folder)
    return folder


def outside(text: str) -> list[str]:
    """Rules of fenced tables that no program writes."""
    kept = re.sub(r"<!-- table: .*?<!-- end -->", "", text, flags=re.DOTALL)
    return [line for line in kept.splitlines() if re.fullmatch(r"-{3,}(\s+-{3,})+", line)]


@pytest.mark.parametrize("page", list_pages(), ids=lambda page: page.stem)
def test_the_tables_are_those_of_the_committed_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert render_page(page, text) == text, "make readme writes the tables anew"


@pytest.mark.parametrize("page", TABLES, ids=lambda page: page.stem)
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


def test_no_table_of_results_is_written_by_hand() -> None:
    assert outside(TEXT) == []
    assert outside(f"{TEXT}\n```\npage    off s\n------  -----\nwsj     1.0\n```\n")


@pytest.mark.nightly(but="^README-paper-table1$")
@pytest.mark.parametrize(("page", "name"), SHOWN, ids=lambda of: getattr(of, "stem", of))
def test_another_number_is_found_on_either_side(page: Path, name: str, tmp_path: Path) -> None:
    text, root = page.read_text(encoding="utf-8"), copy_committed(tmp_path, page)
    assert render_page(page, text, root) == text
    block = text.partition(f"<!-- table: {name} -->")[2].partition("<!-- end -->")[0]
    number = re.findall(r"\d\.\d{3}\b", block)[0]
    typed = text.replace(block, block.replace(number, "9.999", 1))
    assert typed != text
    assert render_page(page, typed, root) == text
    path = root / TABLES[page][name].folder / "records.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        record["load"]["plt_ms"] *= 1.02
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    assert render_page(page, text, root) != text


def test_a_table_too_many_or_too_few_is_named() -> None:
    with pytest.raises(ConfigurationError) as refused:
        render_page(README, TEXT.replace("table: tum-website", "table: tum-webcite"))
    assert refused.value.problems == ["README: no table is called tum-webcite",
                                      "README: the table tum-website is missing"]  # fmt: skip


def test_what_is_shown_is_measured_anew_with_the_committed_results() -> None:
    lines = (ROOT / "analysis" / "committed-results.txt").read_text().splitlines()
    kept = {"/".join(("analysis", *line.split()[:2])) for line in lines if line}
    assert {TABLES[page][name].folder for page, name in SHOWN} <= kept


def test_the_sweeps_are_as_long_as_they_are_said_to_be() -> None:
    papers = ROOT / "wings" / "papers"
    table = (papers / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| (\d+) \|", table, flags=re.MULTILINE)
    assert len(rows) == 15
    text = (papers / "docs" / "tcp.md").read_text(encoding="utf-8")
    rows += re.findall(r"\(`([\w-]+)`, (\d+) loads", text)
    assert len(rows) == 16
    for name, loads in rows:
        asked = load_experiment(CONFIGS / f"{name}.toml", read_catalogue())
        kernels = len(asked.kernel_versions) or 1
        assert len(asked.conditions) * asked.repetitions * kernels == int(loads), name
