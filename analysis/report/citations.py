"""Citations of a report as BibTeX: the program with what ran, and the publication it rebuilds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from analysis.published.reference import Reference
from analysis.records.results import Results
from testbed.base import places

CITED = re.compile(r"(?P<authors>.+?): (?P<title>.+?)[.,] (?P<note>.*?(?P<year>(?:19|20)\d\d).*)")
"""How `Reference.citation` is written: names, title, and where and when it appeared."""
SPECIAL = re.compile(r"([&%$#_{}])")


def list_entries(results: Results, reference: Reference | None) -> Iterator[str]:
    """Yield an entry for Firstflight as it gave ``results``, and one for the publication."""
    facts = results.manifest.get("environment", {}).get("facts", {})
    revision = facts.get("git_revision", "unknown")[:12]
    about = (places.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    told = dict(re.findall(r'^(title|version): "?(.*?)"?$', about, re.MULTILINE))
    (author,) = re.findall(r"^  - name: (.+)$", about, re.MULTILINE)
    note = f"revision {revision}, environment {results.identity.environment}"
    yield _entry("firstflight", f"{{{author}}}", told["title"], "", f"{told['version']}, {note}")
    cited = CITED.fullmatch(reference.citation) if reference else None
    if reference and cited:
        authors = " and ".join(cited["authors"].split(", "))
        yield _entry(reference.name, authors, cited["title"], cited["year"], cited["note"])


def _entry(key: str, author: str, title: str, year: str, note: str) -> str:
    fields = {"author": author, "title": f"{{{_escape(title)}}}", "year": year,
              "note": _escape(note.rstrip("."))}  # fmt: skip
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{key},", *lines, "}"])


def _escape(text: str) -> str:
    """Make ``text`` one that TeX prints as it is."""
    return SPECIAL.sub(r"\\\1", text)
