"""Publications: what one states, in numbers and claims, and how ours differ.

NAME.csv has the stated values (`wings.papers.published.stated`); NAME.toml the title, the link that
they hold for, the claims that the rebuilt figures are held to, and what differs from ours and why.
One of both is enough: an experiment of our own states claims, and no numbers.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from analysis.tables.table import Published
from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from wings.papers import REFERENCES
from wings.papers.published.stated import KNOBS, Stated, parse_stated

ENTRIES = Path(__file__).with_name("publications.bib")
_ENTRY = re.compile(r"^@\w+\{(\w+),\n.*?^\}$", re.DOTALL | re.MULTILINE)
# The quantities of a table that holds page load times without and with Fast Open.
PLT, IMPROVEMENT, DEVIATION = "plt", "improvement", "plt_deviation"
_Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Difference(_Strict):
    """One thing that differs from the publication, and why.

    ``of_model`` is what differs in virtual time only, where a server's work is priced by a model.
    """

    what: _Text
    why: _Text
    of_model: bool = False


class Sentence(_Strict):
    """A sentence of the publication, in our words, that no measurement here can check."""

    place: _Text
    says: _Text


class Pointer(_Strict):
    """A difference by its ``what``; given as a reason where a differing cell meets ``cells``."""

    what: _Text
    cells: str = ""


class PublishedClaim(_Strict):
    """One claim of a publication, and the measured cells that it is held to.

    A claim is one of these:

    - ``quantity``: each stated value of that quantity, against the column of that name (or
      ``measured``) of the cells that have its knobs; with ``counted``, in how many cells it holds;
    - ``holds``: a condition on columns that each cell meets;
    - ``rises`` or ``falls``: a column that does so along the column ``along``, in each group of
      cells with the same ``each``; at every step, or with ``ends`` from the first to the last.

    Cells are the rows of the measured ``table`` that meet the condition ``cells``, with the columns
    of ``derived`` added.  Those are made of the whole table, so that a row may be held against
    others: ``plt_ms.where(qdisc == 'fifo').groupby(page).transform('max')``.  Conditions and
    derived columns are written as pandas.DataFrame.eval reads them.  A claim that is not of a
    quantity counts in how many cells, or groups, it holds; if it says what is ``ours``, each is a
    check of its own.

    ``says``, ``place``, ``row`` (names a cell or group), ``step`` (a cell within its group),
    ``stated``, ``ours`` and ``why`` are templates: ``{rtt_ms}`` is a knob or word,
    ``{saved_s:2}`` a number with two decimals, ``{gap:+1}`` with its sign, ``{pages:page}`` a
    count.  Several cells give a range.  ``why_of_model`` says that ``why`` is one of virtual time.
    """

    says: _Text
    place: str = ""
    table: str = "cells"
    cells: str = ""
    derived: dict[str, str] = Field(default_factory=dict)
    quantity: str = ""
    measured: str = ""
    counted: bool = False
    holds: str = ""
    rises: str = ""
    falls: str = ""
    along: str = ""
    each: str = ""
    ends: bool = False
    row: str = ""
    step: str = ""
    stated: str = "yes"
    ours: str = ""
    why: str = ""
    why_of_model: bool = False
    see: list[Pointer] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        kinds = [name for name in ("quantity", "holds", "rises", "falls") if getattr(self, name)]
        if len(kinds) != 1:
            raise ValueError("a claim has one of quantity, holds, rises and falls")
        if (self.rises or self.falls) and not (self.along and self.each):
            raise ValueError("what rises or falls does so along a column, for each of another")
        if not self.quantity and not self.place:
            raise ValueError("a claim that is not of a quantity of the CSV needs its place")
        return self


class Reference(_Strict):
    """A publication, valid where the knobs in ``applies`` have these values.

    ``rows`` are those stated values that are a table of page load times, by (page, rtt_ms).
    ``variants`` maps pages of ours to the published page that they are another model of.
    """

    name: str
    title: _Text
    citation: _Text
    applies: dict[str, bool | int | float | str] = Field(default_factory=dict)
    variants: dict[str, str] = Field(default_factory=dict)
    claims: list[PublishedClaim] = Field(default_factory=list, alias="claim")
    sentences: list[Sentence] = Field(default_factory=list, alias="sentence")
    differences: list[Difference] = Field(default_factory=list, alias="difference")
    stated: tuple[Stated, ...] = ()
    rows: dict[tuple[str, float], Published] = Field(default_factory=dict)

    def find(self, axes: Mapping[str, Any]) -> Published | None:
        """Return the published row for these axes; ``None`` where nothing was published."""
        if any(axes.get(name) != value for name, value in self.applies.items()):
            return None
        page = str(axes.get("page"))
        return self.rows.get((self.variants.get(page, page), float(axes.get("rtt_ms", -1))))

    @property
    def entry(self) -> str:
        """The BibTeX entry of what it was taken from, whose key its name begins with.

        ``fastopen-table1`` has that of ``fastopen``; a table of one's own need not have one.
        """
        return read_entries().get(self.name.partition("-")[0], "")

    def in_real_time(self) -> Self:
        """Return the publication to compare real-time loads with: no reasons that a model gives."""
        of_model = {difference.what for difference in self.differences if difference.of_model}
        claims = [
            claim.model_copy(
                update={
                    "why": "" if claim.why_of_model else claim.why,
                    "see": [pointer for pointer in claim.see if pointer.what not in of_model],
                }
            )
            for claim in self.claims
        ]
        remaining = [difference for difference in self.differences if not difference.of_model]
        return self.model_copy(update={"claims": claims, "differences": remaining})

    def select(self, quantity: str) -> tuple[Stated, ...]:
        """Return the stated values of ``quantity``, in the order of the source."""
        return tuple(stated for stated in self.stated if stated.quantity == quantity)


@cache
def read_entries() -> dict[str, str]:
    """Return all BibTeX entries by their keys."""
    return {match[1]: match[0] for match in _ENTRY.finditer(ENTRIES.read_text(encoding="utf-8"))}


def read_reference(name: str, folder: Path = REFERENCES) -> Reference:
    """Read the publication ``name``: NAME.csv and NAME.toml, as far as they are there.

    Raises:
        ConfigurationError: there is none of that name (the message lists those that exist), or
            every problem of the two files, each with its place.
    """
    path = folder / f"{name}.csv"
    notes = path.with_suffix(".toml")
    if Path(name).name != name or not (path.is_file() or notes.is_file()):
        known = ", ".join(sorted({p.stem for p in folder.iterdir()}))
        raise ConfigurationError(
            [f"no published table {name!r} in wings/papers/published/reference; there are: {known}"]
        )
    problems: list[str] = []
    stated: tuple[Stated, ...] = ()
    try:
        if path.is_file():
            stated = parse_stated(path.read_text(encoding="utf-8"), path.name)
    except ConfigurationError as error:
        problems += error.problems
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path.name}: cannot be read: {error}")
    reference = _read_notes(name, notes, problems)
    if reference and not problems:
        problems += [f"{name}.toml: {problem}" for problem in _unknown_names(reference, stated)]
    if reference is None or problems:
        raise ConfigurationError(problems)
    return reference.model_copy(update={"stated": stated, "rows": published_rows(stated)})


def published_rows(stated: Sequence[Stated]) -> dict[tuple[str, float], Published]:
    """Return the published load times and improvements, by (page, rtt_ms).

    A row counts only if one place states all three for that page and round-trip time.
    """
    arms = {(PLT, False): "off", (PLT, True): "on", (IMPROVEMENT, None): "gain"}
    rows: dict[tuple[str, str, float], dict[str, float]] = {}
    for cell in stated:
        arm = arms.get((cell.quantity, cell.axes.get("tfo")))
        if arm and cell.value is not None and set(cell.axes) - {"tfo"} == {"page", "rtt_ms"}:
            key = (cell.place, str(cell.axes["page"]), float(cell.axes["rtt_ms"]))
            rows.setdefault(key, {})[arm] = cell.value
    within = {(cell.axes.get("page"), cell.axes.get("rtt_ms")): cell.high for cell in stated
              if cell.quantity == DEVIATION}  # fmt: skip
    return {(page, rtt_ms): Published(row["off"], row["on"], row["gain"], place,
                                      within.get((page, rtt_ms)))
            for (place, page, rtt_ms), row in rows.items() if len(row) == len(arms)}  # fmt: skip


def _read_notes(name: str, path: Path, problems: list[str]) -> Reference | None:
    """Read NAME.toml; add what is wrong with it to ``problems``."""
    try:
        notes = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return Reference.model_validate({"title": name, "citation": name, **notes, "name": name})
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path.name}: not TOML: {error}")
    except ValidationError as error:
        problems += [
            f"{path.name}: {'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
            for detail in error.errors(include_url=False)
        ]
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path.name}: cannot be read: {error}")
    return None


def _unknown_names(reference: Reference, stated: Sequence[Stated]) -> Iterator[str]:
    """Yield a sentence for each name of a knob, quantity or difference that does not exist."""
    for name in reference.applies:
        if name not in KNOBS:
            yield f"applies.{name}: no knob is named so{did_you_mean(name, KNOBS)}"
    quantities = {row.quantity for row in stated}
    headings = {difference.what for difference in reference.differences}
    for claim in reference.claims:
        if claim.quantity and claim.quantity not in quantities:
            known = did_you_mean(claim.quantity, quantities)
            yield f"claim {claim.says!r}: the CSV states no {claim.quantity!r}{known}"
        for pointer in claim.see:
            if pointer.what not in headings:
                yield f"claim {claim.says!r}: there is no difference {pointer.what!r}"
