"""Coverage of the sources: each item of them, whether it works here, and what shows that.

``coverage.csv`` has a line for each item.  Its state is *works*, *cannot be*, or *missing*; a note
says why, beside one that works how far.  Its evidence is what there is by these names, such as
``config tum-initcwnd; claim tum-initcwnd: window_gain``: a claim, sentence or difference is named
by its publication, and its quantity or how it begins.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from testbed.base.errors import ConfigurationError
from testbed.base.places import ROOT
from wings.papers import REFERENCES
from wings.papers.published.reference import read_entries, read_reference

COVERAGE = Path(__file__).with_name("coverage.csv")
WORKS, CANNOT_BE, MISSING = STATES = ("works", "cannot be", "missing")
HEADER = ("id", "source", "section", "item", "state", "note", "evidence")
_OWN = {"slides": "TCP Fast Open: the slides of its talk at CoNEXT 2011",
        "purpose": "What the testbed is for"}  # fmt: skip
SOURCES = ("fastopen", "overload", "cs244", "slides", "tum", "purpose")
_PLACES: Mapping[str, str] = {"scenario": "scenarios/{}.toml", "config": "configs/{}.toml",
                              "page": "pages/{}/page.toml", "file": "{}"}  # fmt: skip
_ROWS = {"check": ("docs/checks.md", "\n| {} | "), "knob": ("docs/knobs.md", "\n| `{}` ")}
"""References made from the code itself: the page, and how a row of it begins."""


class Support(NamedTuple):
    """What shows an item, by its kind and name, and the file that has it."""

    kind: str
    name: str
    file: Path


class Item(NamedTuple):
    """An item of a source, and its state here."""

    number: int
    source: str
    section: str
    text: str
    state: str
    note: str
    evidence: tuple[Support, ...]


def read_coverage(path: Path = COVERAGE, root: Path = ROOT) -> tuple[Item, ...]:
    """Read the items, in their order.

    Raises:
        ConfigurationError: every problem, with its line: a state or source that there is not, an
            item without evidence or reason, or evidence that there is not.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    if not rows or tuple(rows[0]) != HEADER:
        raise ConfigurationError([f"{path.name}:1: the columns are {','.join(HEADER)}"])
    items, problems = [], []
    for line, row in enumerate(rows, 2):
        named = [each.partition(" ") for each in filter(None, row["evidence"].split("; "))]
        found = [(kind, name, find_evidence(kind, name, root)) for kind, _, name in named]
        problems += [f"{path.name}:{line}: {problem}" for problem in _problems(row, line - 1)]
        problems += [f"{path.name}:{line}: no {kind} is {name!r}; correct the name, or add it"
                     for kind, name, file in found if file is None]  # fmt: skip
        items.append(
            Item(line - 1, row["source"], row["section"], row["item"], row["state"], row["note"],
                 tuple(Support(kind, name, file) for kind, name, file in found if file))
        )  # fmt: skip
    if problems:
        raise ConfigurationError(problems)
    return tuple(items)


def _problems(row: Mapping[str, str], number: int) -> Iterator[str]:
    if row["id"] != str(number):
        yield f"id: {row['id']!r} stands where {number} is next"
    if row["source"] not in SOURCES:
        yield f"source: {row['source']!r} is none of {', '.join(SOURCES)}"
    if row["state"] not in STATES:
        yield f"state: {row['state']!r} is none of {', '.join(STATES)}"
    elif row["state"] == WORKS and not row["evidence"]:
        yield "evidence: nothing shows that it works"
    elif row["state"] != WORKS and not row["note"]:
        yield f"note: say why it {'cannot be' if row['state'] == CANNOT_BE else 'is missing'}"


def find_evidence(kind: str, name: str, root: Path = ROOT) -> Path | None:
    """Return the file below ``root`` that has what is called so; ``None``: there is none."""
    if place := _PLACES.get(kind):
        file = Path(place.format(name))
        return file if (root / file).exists() else None
    if kind == "test":
        path, _, function = name.partition("::")
        there = (root / path).is_file() and f"def {function}(" in (root / path).read_text("utf-8")
        return Path(path) if there else None
    if kind in _ROWS:
        page, row = _ROWS[kind]
        return Path(page) if row.format(name) in (root / page).read_text("utf-8") else None
    find, (publication, _, begin) = _SAID.get(kind), name.partition(": ")
    if find is None or not begin or not _is_published(publication):
        return None
    said = any(text.startswith(begin) for text in find(publication))
    return (REFERENCES / f"{publication}.toml").relative_to(ROOT) if said else None


def _is_published(name: str) -> bool:
    return (REFERENCES / f"{name}.toml").is_file()


_SAID: Mapping[str, Callable[[str], Iterator[str]]] = {
    "claim": lambda name: (claim.quantity or claim.says for claim in read_reference(name).claims),
    "sentence": lambda name: (each.says for each in read_reference(name).sentences),
    "difference": lambda name: (each.what for each in read_reference(name).differences),
}


def render_coverage(root: Path = ROOT) -> str:
    """Return how many items work, and a table for each source, as docs/ has them."""
    items = read_coverage(root=root)
    counts = {state: sum(item.state == state for item in items) for state in STATES}
    said = (f"{counts[WORKS]} work", f"{counts[CANNOT_BE]} cannot be",
            *([f"{counts[MISSING]} are missing"] if counts[MISSING] else []))  # fmt: skip
    lines = [f"Of {len(items)} items {', '.join(said)}."]
    for source in SOURCES:
        lines += [f"\n## {_title(source)}\n", "| id | section | item | state | shown by |",
                  "|--:|---|---|---|---|"]  # fmt: skip
        lines += [_row(item) for item in items if item.source == source]
    return "\n".join(lines) + "\n"


def _title(source: str) -> str:
    if source in _OWN:
        return _OWN[source]
    fields = dict(re.findall(r"^  (title|year) = \{(.*)\},?$", read_entries()[source], re.M))
    return f"{re.sub('[{}]', '', fields['title'])} ({fields['year']})"


def _row(item: Item) -> str:
    note = {WORKS: "{}", CANNOT_BE: "*cannot be*, because {}", MISSING: "*missing*: {}"}
    state = note[item.state].format(item.note) if item.note else ""
    shown = ", ".join(f"{each.kind} [{each.name}](../{each.file})" for each in item.evidence)
    state = f"*works*{f'; {state}' if state else ''}" if item.state == WORKS else state
    return f"| {item.number} | {item.section} | {item.text} | {state} | {shown} |"
