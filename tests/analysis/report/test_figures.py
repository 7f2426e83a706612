"""Figures of a report as files, and citations as BibTeX."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.published.reference import Reference
from analysis.records.results import Results, read_results
from analysis.report.citations import CITED, list_entries
from analysis.report.figures import write_figures
from testbed.base.errors import MissingError, StorageError
from testbed.client.chromium.browser import find_browser
from tests.analysis.sample import write_sample

REFERENCES = sorted(Path("analysis/published/reference").glob("*.toml"))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """A sample with every kind of figure."""
    return read_results(write_sample(tmp_path))


def no_browser() -> Path:
    """A machine without one."""
    raise MissingError("no headless Chromium")


def test_without_a_browser_every_svg_is_written(results: Results, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "figures"
    with pytest.raises(MissingError, match="no headless Chromium"):
        write_figures(results, folder, no_browser)
    drawn = sorted(folder.iterdir())
    assert len(drawn) > 2
    assert {file.suffix for file in drawn} == {".svg"}
    assert all(file.read_text("utf-8").startswith("<svg") for file in drawn)
    assert any(file.stem.startswith("intervals-") for file in drawn)


@pytest.mark.browser
def test_each_figure_is_one_sheet_of_pdf(results: Results, tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    number = write_figures(results, folder, find_browser)
    printed = sorted(folder.glob("*.pdf"))
    assert len(printed) == len(list(folder.glob("*.svg"))) == number
    for file in printed:
        content = file.read_bytes()
        assert content.startswith(b"%PDF-")
        assert b"/Count 1" in content


def test_a_folder_that_cannot_be_made(results: Results, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        StorageError, match=r"cannot make .*file/figures: Not a directory; make room"
    ):
        write_figures(results, tmp_path / "file" / "figures", no_browser)


def test_an_entry_names_what_gave_the_numbers(results: Results) -> None:
    (entry,) = list_entries(results, None)
    assert entry.startswith("@misc{firstflight,\n  author = {{The Firstflight authors}},\n")
    assert f"environment {results.identity.environment}}}" in entry


def test_an_entry_of_a_publication(results: Results) -> None:
    citation = "A. One, B. Two: TCP & more. CoNEXT 2011, Table 1 (section 6.1)."
    published = Reference.model_validate({"title": "t", "citation": citation, "name": "some-table"})
    _, entry = list_entries(results, published)
    assert entry == (
        "@misc{some-table,\n  author = {A. One and B. Two},\n  title = {{TCP \\& more}},\n"
        "  year = {2011},\n  note = {CoNEXT 2011, Table 1 (section 6.1)},\n}"
    )


def test_every_published_table_has_one() -> None:
    texts = [file.read_text("utf-8") for file in REFERENCES]
    cited = [text.split('citation = "')[1].split('"')[0] for text in texts]
    assert len(cited) > 8
    assert [text for text in cited if not CITED.fullmatch(text)] == []
