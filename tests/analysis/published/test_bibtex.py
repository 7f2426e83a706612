"""BibTeX entries: every publication has one, and none contradicts CITATION.cff."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML

from analysis.published.bibtex import TOOL, cite, read_entries
from testbed.base import places

CITATION: dict[str, Any] = YAML(typ="safe").load(places.ROOT / "CITATION.cff")


def test_every_published_table_has_an_entry() -> None:
    tables = [path.stem for path in places.REFERENCES.glob("*.csv")]
    cited = {tuple(cite(None, table)) for table in tables}
    assert {both[1] for both in cited} == set(read_entries().values()) - {read_entries()[TOOL]}


def test_the_tool_is_cited_as_its_citation_file_says() -> None:
    (entry,) = cite("1a2b3c", None)
    (author,) = CITATION["authors"]
    for field, value in (
        ("author", f"{{{author['name']}}}"),
        ("title", CITATION["title"]),
        ("version", CITATION["version"]),
        ("note", "Revision 1a2b3c"),
    ):
        assert f"  {field} = {{{value}}}" in entry
    assert entry.count("{") == entry.count("}")


def test_the_paper_is_cited_as_the_citation_file_says() -> None:
    (paper,) = CITATION["references"]
    entry = read_entries()["fastopen"]
    names = [f"{name['family-names']}, {name['given-names']}" for name in paper["authors"]]
    assert f"author = {{{' and '.join(names)}}}" in entry
    assert f"title = {{{{{paper['title']}}}}}" in entry
    assert f"booktitle = {{{paper['collection-title']}}}" in entry
    assert f"year = {{{paper['year']}}}" in entry
