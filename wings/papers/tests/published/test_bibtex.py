"""BibTeX entries: every publication has one, and none contradicts CITATION.cff."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML

from analysis.report.provenance import cite_tool
from testbed.base import places
from wings.papers import REFERENCES
from wings.papers.published.reference import read_entries, read_reference

CITATION: dict[str, Any] = YAML(typ="safe").load(places.ROOT / "CITATION.cff")


def test_every_published_table_has_an_entry() -> None:
    entries = {read_reference(path.stem).entry for path in REFERENCES.glob("*.csv")}
    assert entries == set(read_entries().values())


def test_the_tool_is_cited_as_its_citation_file_says() -> None:
    entry = cite_tool("1a2b3c")
    (author,) = CITATION["authors"]
    for field, value in (("author", f"{{{author['name']}}}"), ("title", CITATION["title"]),
                         ("version", CITATION["version"]),
                         ("note", "Revision 1a2b3c")):  # fmt: skip
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
