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
HEADS = ["change", "cells by verdict", "largest", "`kernel try` says"]
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


def list_set(name: str, folder: Path) -> str:
    """Return a row for each change of the committed set ``name``, and where it was tried."""
    kept = read_kept(name, folder)
    rows = [[_suffix(each).replace("-", " "), *_describe(each)] for each in kept.changes]
    return "\n".join([*make_table(HEADS, rows, ["largest"]), "", _origin(kept), ""])


def list_public(folder: Path) -> str:
    """Return a row for each public change, with what its message claims, and where it was tried."""
    tried, origins = _read_public(folder)
    heads = ["change", "its message says", "with", *HEADS[1:]]
    changes = read_public(folder)
    rows = [
        [change.title, escape(change.claims), f"`{change.words}`" if change.words else "",
         *_describe(tried[change.name])]
        for change in changes if not change.why
    ]  # fmt: skip
    refused = [f"- {change.title}: {escape(change.why)}." for change in changes if change.why]
    table = make_table(heads, rows, ["largest"])
    return "\n".join([*table, "", *origins, "", "Not tried:", "", *refused, ""])


def list_packets(folder: Path) -> str:
    """Return the first packet that differs in the cell that each public change moved most."""
    tried, _ = _read_public(folder)
    blocks = [
        f"{c.subject} ({tried[c.name].extreme_cell}):\n\n```\n{packets}\n```\n"
        for c in read_public(folder) if not c.why
        if (packets := "\n".join(tried[c.name].differs))
    ]  # fmt: skip
    return "\n".join(blocks)


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
    """Return the cells of HEADS but the first."""
    counts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(tried.counts.items()))
    largest = f"{tried.extreme_pct:+.2f} %" if abs(tried.extreme_pct) >= LEAST_PCT else "none"
    says = f"{tried.answer}; it has not {tried.misses}" if tried.misses else tried.answer
    return [counts, largest, escape(says)]


def _origin(kept: ChangeSet) -> str:
    return (
        f"{count(len(kept.changes), 'kernel')} beside {kept.kernel} with `{kept.experiment}.toml`: "
        f"{kept.loads:,} loads at revision {kept.revision}, environment {kept.environment}."
    )


PAGES: Mapping[Path, Mapping[str, Callable[[Path], str]]] = {
    ROOT / "docs" / "kernel-changes.md": {
        "public": lambda root: list_public(root / KEPT),
        "packets": lambda root: list_packets(root / KEPT),
        "bulk": lambda root: list_set("bulk", root / KEPT),
        "noops": lambda root: list_set("noops", root / KEPT),
        "plants": lambda root: list_set("plants", root / KEPT),
    },
}
"""What is written into each page, by name, from what is committed below a root."""
DRAWINGS: Mapping[Path, Callable[[], str]] = {}
