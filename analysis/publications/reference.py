"""Publications: the values that one states from a CSV, and what must be said beside them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from analysis.publications.stated import KNOBS, Stated, parse_stated
from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean

FOLDER = Path(__file__).parent / "reference"
# The quantities of a table that holds page load times without and with Fast Open.
PLT, IMPROVEMENT = "plt", "improvement"
_Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


@dataclass(frozen=True, slots=True)
class Published:
    """One published row: load times in seconds, improvement in percent, and where it stands."""

    plt_off_s: float
    plt_on_s: float
    improvement_pct: float
    source: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs from the publication, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """What a publication says without a number, in our words, and where."""

    place: str
    says: str


@dataclass(frozen=True, slots=True)
class Reference:
    """What a publication states, valid where the knobs in ``applies`` have these values.

    ``rows`` are those stated values that are a table of page load times, by (page, rtt_ms).
    ``variants`` maps pages of ours to the published page that they are another model of.
    """

    name: str
    title: str
    citation: str
    stated: tuple[Stated, ...]
    sentences: tuple[Sentence, ...]
    rows: dict[tuple[str, float], Published]
    applies: dict[str, Any]
    variants: dict[str, str]
    differences: tuple[Difference, ...]

    def find(self, axes: Mapping[str, Any]) -> Published | None:
        """Return the published row for these axes; ``None`` where nothing was published."""
        if not self.holds_for(axes):
            return None
        page = str(axes.get("page"))
        return self.rows.get((self.variants.get(page, page), float(axes.get("rtt_ms", -1))))

    def holds_for(self, axes: Mapping[str, Any]) -> bool:
        """Whether ``axes`` has the knob values for which anything is published at all."""
        return all(axes.get(name) == value for name, value in self.applies.items())

    def select(
        self, quantity: str | None = None, place: str | None = None, **axes: Any
    ) -> tuple[Stated, ...]:
        """Return what is stated of ``quantity`` at ``place``, in the order of the source.

        With ``axes``, knobs by leaf name, only what is stated for exactly these values or for
        any; a page of ours counts as the published page that it is a model of.
        """
        page = axes.get("page")
        known = axes if page is None else {**axes, "page": self.variants.get(page, page)}
        return tuple(
            one
            for one in self.stated
            if quantity in (None, one.quantity) and place in (None, one.place)
            if not axes or one.covers(known)
        )


def read_reference(name: str, folder: Path = FOLDER) -> Reference:
    """Read the publication ``name``: NAME.csv, and NAME.toml if it is there.

    Raises:
        ConfigurationError: there is none of that name (the message lists those that exist), or
            every problem of the two files, each with its place.
    """
    path = folder / f"{name}.csv"
    if Path(name).name != name or not path.is_file():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.csv")))
        raise ConfigurationError(
            [f"no published table {name!r} in analysis/publications/reference; there are: {known}"]
        )
    problems: list[str] = []
    stated: tuple[Stated, ...] = ()
    notes = _Notes()
    try:
        stated = parse_stated(path.read_text(encoding="utf-8"), path.name)
    except (ConfigurationError, OSError, UnicodeDecodeError) as error:
        problems += _problems_of(error, path.name)
    notes_path = path.with_suffix(".toml")
    if notes_path.is_file():
        try:
            notes = _read_notes(notes_path)
        except (ConfigurationError, OSError, UnicodeDecodeError) as error:
            problems += _problems_of(error, notes_path.name)
    if problems:
        raise ConfigurationError(problems)
    return Reference(
        name=name,
        title=notes.title or name,
        citation=notes.citation or name,
        stated=stated,
        sentences=tuple(Sentence(one.place, one.says) for one in notes.sentence),
        rows=published_rows(stated),
        applies=notes.applies,
        variants=notes.variants,
        differences=tuple(Difference(one.what, one.why) for one in notes.difference),
    )


def published_rows(stated: Sequence[Stated]) -> dict[tuple[str, float], Published]:
    """Those of ``stated`` that are rows of load times and improvement, by (page, rtt_ms).

    A row is whole when one place states all three for one page and round-trip time.
    """
    arms = {(PLT, False): "off", (PLT, True): "on", (IMPROVEMENT, None): "gain"}
    found: dict[tuple[str, str, float], dict[str, float]] = {}
    for one in stated:
        arm = arms.get((one.quantity, one.axes.get("tfo")))
        if arm and one.value is not None and set(one.axes) - {"tfo"} == {"page", "rtt_ms"}:
            key = (one.place, str(one.axes["page"]), float(one.axes["rtt_ms"]))
            found.setdefault(key, {})[arm] = one.value
    return {
        (page, rtt_ms): Published(row["off"], row["on"], row["gain"], place)
        for (place, page, rtt_ms), row in found.items()
        if len(row) == len(arms)
    }


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Difference(_Strict):
    what: _Text
    why: _Text


class _Sentence(_Strict):
    place: _Text
    says: _Text


class _Notes(_Strict):
    """What NAME.toml may hold."""

    title: _Text | None = None
    citation: _Text | None = None
    applies: dict[str, bool | int | float | str] = Field(default_factory=dict)
    variants: dict[str, str] = Field(default_factory=dict)
    sentence: list[_Sentence] = Field(default_factory=list)
    difference: list[_Difference] = Field(default_factory=list)


def _read_notes(path: Path) -> _Notes:
    try:
        notes = _Notes.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError([f"{path.name}: not TOML: {error}"]) from None
    except ValidationError as error:
        raise ConfigurationError(
            [
                f"{path.name}: {'.'.join(str(part) for part in one['loc'])}: {one['msg']}"
                for one in error.errors(include_url=False)
            ]
        ) from None
    unknown = [name for name in notes.applies if name not in KNOBS]
    if unknown:
        raise ConfigurationError(
            [
                f"{path.name}: applies.{name}: no knob is named so{did_you_mean(name, KNOBS)}"
                for name in unknown
            ]
        )
    return notes


def _problems_of(error: Exception, where: str) -> list[str]:
    if isinstance(error, ConfigurationError):
        return error.problems
    return [f"{where}: cannot be read: {error}"]
