"""What a publication's tables and figures look like when they are rebuilt from records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # a notebook or a report imports Altair; the words for a table need not
    from altair import TopLevelMixin

Agreement = Literal["agrees", "differs", "not measured"]


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
    """A rebuilt figure; ``name`` is short, for a file or an anchor, and ``caption`` says it all."""

    name: str
    title: str
    chart: TopLevelMixin
    caption: str


@dataclass(frozen=True, slots=True)
class Check:
    """One stated value of the publication beside ours, in words, and why they differ if so."""

    where: str
    what: str
    stated: str
    ours: str
    agreement: Agreement
    why: str = ""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Everything rebuilt of one publication; ``files`` are further files by name, as text."""

    title: str
    tables: tuple[Grid, ...] = ()
    figures: tuple[Figure, ...] = ()
    checks: tuple[Check, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
