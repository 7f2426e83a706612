"""Rebuilt publications: tables, figures, and stated values beside ours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from analysis.plot import Plot

Agreement = Literal["agrees", "differs", "our spread is too wide to say", "not measured"]


@dataclass(frozen=True, slots=True)
class Grid:
    """A rebuilt table: as many values in each row as columns; ``None`` is an empty field.

    Units are in the column names.  ``note`` is one sentence below it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A rebuilt figure; ``name`` is short, for a file or an anchor; ``caption`` explains it."""

    name: str
    title: str
    chart: Plot
    caption: str


@dataclass(frozen=True, slots=True)
class Check:
    """One stated value of the publication beside ours, in words, and why they differ if so.

    ``lane`` is which kernel ours is of, where results of several are side by side.
    """

    where: str
    what: str
    stated: str
    ours: str
    agreement: Agreement
    why: str = ""
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Everything rebuilt of one publication; ``files`` are further files by name, as text.

    ``story`` tells in a few sentences what its figures show; a report begins with them.
    """

    title: str
    tables: tuple[Grid, ...] = ()
    figures: tuple[Figure, ...] = ()
    checks: tuple[Check, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    story: tuple[str, ...] = ()

    def with_note(self, note: str) -> Rebuilt:
        """Return the same with ``note`` below each table and figure."""
        return replace(
            self,
            tables=tuple(replace(t, note=f"{t.note} {note}".strip()) for t in self.tables),
            figures=tuple(replace(f, caption=f"{f.caption} {note}".strip()) for f in self.figures),
        )
