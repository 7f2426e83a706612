"""Publications beside results: what a report shows of them, and who has them.

A wing has them: it provides `Publications` to the extension point ``publications``.  Without it
nothing was published, and nothing is rebuilt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from analysis.tables.table import PublishedRows
from testbed.base.wings import provided

if TYPE_CHECKING:
    from analysis.plot import Plot
    from analysis.records.results import Results

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
class StatedCheck:
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
    checks: tuple[StatedCheck, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    story: tuple[str, ...] = ()

    def with_note(self, note: str) -> Rebuilt:
        """Return the same with ``note`` below each table and figure."""
        return replace(
            self,
            tables=tuple(replace(t, note=f"{t.note} {note}".strip()) for t in self.tables),
            figures=tuple(replace(f, caption=f"{f.caption} {note}".strip()) for f in self.figures),
        )


class Publication(PublishedRows, Protocol):
    """A publication, or claims of one's own, that results are held to."""

    @property
    def title(self) -> str:
        """What of it is rebuilt."""

    @property
    def citation(self) -> str:
        """Where it was published, for people."""

    @property
    def entry(self) -> str:
        """Its BibTeX entry; empty: it has none."""

    @property
    def stated(self) -> Sequence[object]:
        """The values that it states; none: it makes claims alone."""

    @property
    def differences(self) -> Sequence[object]:
        """What differs from ours, each ``what`` with its ``why``."""


class Publications(Protocol):
    """What a wing that has publications is asked for."""

    def check(self, name: str, kind: str, names: Mapping[str, Collection[str]]) -> None:
        """See that the publication ``name`` can be shown beside trials of ``kind``.

        ``names`` are those that there are here, by what they name, such as ``page``.

        Raises:
            ConfigurationError: with every problem of its files.
        """

    def find(self, results: Results) -> Publication | None:
        """Return the publication that the experiment names, if it names one.

        Raises:
            ConfigurationError: it names one that does not exist, or that cannot be read.
        """

    def rebuild(self, results: Results) -> Rebuilt | None:
        """Rebuild the publication, or the figures of an experiment without one, if there are any.

        Raises:
            ConfigurationError: it cannot be read, or the manifest is not a run's.
        """


def publications() -> Publications | None:
    """Return the publications that are here; ``None`` without a wing that has them."""
    return next((each.load() for each in provided("publications")), None)


def find_publication(results: Results) -> Publication | None:
    """Return the publication that the experiment of ``results`` names and that is known here."""
    known = publications()
    return known.find(results) if known else None


def rebuild(results: Results) -> Rebuilt | None:
    """Return what is rebuilt of ``results``, if anything is."""
    known = publications()
    return known.rebuild(results) if known else None
