"""Tables of the changes that ``kernel try`` has tried, as Markdown for the documents."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.formats.markdown import escape, make_table
from analysis.words import count
from testbed.base.places import ROOT
from wings.kernels.verdicts.changes import KEPT, ChangeSet, TriedChange, read_kept

PUBLIC = "public.toml"
HEADS = ["change", "cells by verdict", "largest"]
SAYS = "`kernel try` says"
LEAST_PCT = 0.005
"""A smaller change is not shown."""


@dataclass(frozen=True, slots=True)
class PublicChange:
    """A change that others have published.

    Attributes:
        name: the stem of its file, and the end of its kernel's name.
        commit: its commit in Linux; empty: it is in no release.
        subject: its subject.
        claims: what its message says that it does.
        words: the words of ``kernel try`` that it was tried with.
        why: why it was not; empty: it was.
    """

    name: str
    commit: str
    subject: str
    claims: str
    words: str = ""
    why: str = ""

    @property
    def title(self) -> str:
        """Its commit and subject, in Markdown."""
        return f"{self.commit} {escape(self.subject)}".strip()


def list_set(name: str, folder: Path, *, answers: bool = False) -> str:
    """Return a table of the committed set ``name``, and where it was tried.

    Changes that came to the same have one row, which may have what ``kernel try`` says.
    """
    kept = read_kept(name, folder)
    alike: dict[tuple[str, ...], list[str]] = {}
    for each in kept.changes:
        described = [*_describe(each), *([escape(each.answer)] if answers else [])]
        alike.setdefault(tuple(described), []).append(_suffix(each).replace("-", " "))
    rows = [["; ".join(names), *came] for came, names in alike.items()]
    heads = [*HEADS, *([SAYS] if answers else [])]
    return "\n".join([*make_table(heads, rows, ["largest"]), "", _origin(kept), ""])


def list_public(folder: Path) -> str:
    """Return the public changes: a row for each that moved a cell, and a line for each other."""
    tried, origins = _read_public(folder)
    heads = ["change", "its message says", "with", *HEADS[1:], SAYS]
    changes = read_public(folder)
    rows, other, same, refused = [], [], [], []
    for change in changes:
        words = f"`{change.words}`" if change.words else ""
        if change.why:
            refused.append(change.commit or escape(change.subject))
        elif (came := tried[change.name]).found:
            claims, answer = escape(change.claims), escape(came.answer)
            rows.append([change.title, claims, words, *_describe(came), answer])
        elif set(came.counts) == {"no effect"}:
            same.append(f"- {change.title}{words and f', {words}'}")
        else:
            other.append(f"- {change.title}{words and f', {words}'}: {_describe(came)[0]}")
    table = make_table(heads, rows, ["largest"])
    return "\n".join([*table, "", "No cell is slower or faster, but packets differ:", "", *other,
                      "", "No effect in any cell, equal to the bit:", "", *same, "", *origins, "",
                      f"Not tried (`{KEPT / PUBLIC}` says why): {', '.join(refused)}.",
                      ""])  # fmt: skip


def read_public(folder: Path) -> list[PublicChange]:
    """Return the public changes, in the order of their table."""
    return [
        PublicChange(**c) for c in tomllib.loads((folder / PUBLIC).read_text("utf-8"))["change"]
    ]


def _read_public(folder: Path) -> tuple[dict[str, TriedChange], list[str]]:
    """Return what each public change came to by name, and where they were tried."""
    kept = [read_kept(path.stem, folder) for path in sorted(folder.glob("public-*.json"))]
    return {_suffix(e): e for one in kept for e in one.changes}, [_origin(one) for one in kept]


def _suffix(tried: TriedChange) -> str:
    """Return a kernel's name behind that of its set: the stem of the patch's file."""
    return tried.name.partition("-")[2]


def _describe(tried: TriedChange) -> list[str]:
    """Return the cells of HEADS but the first: how many cells came to what, and the largest."""
    counts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(tried.counts.items()))
    largest = f"{tried.extreme_pct:+.2f} %" if abs(tried.extreme_pct) >= LEAST_PCT else "none"
    return [f"{counts}; it has not {escape(tried.misses)}" if tried.misses else counts, largest]


def _origin(kept: ChangeSet) -> str:
    return (
        f"{count(len(kept.changes), 'kernel')} beside {kept.kernel} with `{kept.experiment}.toml`: "
        f"{kept.loads:,} loads at revision {kept.revision}, environment {kept.environment}."
    )


PAGES: Mapping[Path, Mapping[str, Callable[[Path], str]]] = {
    ROOT / "wings" / "kernels" / "docs" / "changes.md": {
        "public": lambda root: list_public(root / KEPT),
        "bulk": lambda root: list_set("bulk", root / KEPT),
        "noops": lambda root: list_set("noops", root / KEPT),
        "plants": lambda root: list_set("plants", root / KEPT),
        "history": lambda root: list_set("history", root / KEPT, answers=True),
        "history-with-loss": lambda root: list_set("history-with-loss", root / KEPT, answers=True),
    }
}
"""What `make readme` writes into its page of changes, by name, from what is below a root."""
DRAWINGS: Mapping[Path, Callable[[], str]] = {}
