"""Published tables: the numbers from a CSV, and what must be said beside them from a TOML."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import ConfigurationError

FOLDER = Path(__file__).parent / "reference"


@dataclass(frozen=True, slots=True)
class Published:
    """One published row: load times in seconds, improvement in percent."""

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
class Reference:
    """A published table by (page, rtt_ms), valid where the axes in ``applies`` agree.

    ``variants`` maps pages of ours to the published page that they are another model of.
    """

    name: str
    title: str
    citation: str
    rows: dict[tuple[str, float], Published]
    applies: dict[str, Any]
    variants: dict[str, str]
    differences: tuple[Difference, ...]

    def find(self, axes: Mapping[str, Any]) -> Published | None:
        """Return the published row for these axes; ``None`` where nothing was published."""
        if any(axes.get(name) != value for name, value in self.applies.items()):
            return None
        page = str(axes.get("page"))
        return self.rows.get((self.variants.get(page, page), float(axes.get("rtt_ms", -1))))


def read_reference(name: str, folder: Path = FOLDER) -> Reference:
    """Read the published table ``name`` (the TOML beside the CSV is optional).

    Raises:
        ConfigurationError: there is no such table; the message lists those that exist.
    """
    path = folder / f"{name}.csv"
    if Path(name).name != name or not path.is_file():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.csv")))
        raise ConfigurationError(
            [f"no published table {name!r} in analysis/reference; there are: {known}"]
        )
    with path.open(encoding="utf-8", newline="") as lines:
        rows = {
            (row["page"], float(row["rtt_ms"])): Published(
                float(row["plt_off_s"]),
                float(row["plt_on_s"]),
                float(row["improvement_pct"]),
                row["source"],
            )
            for row in csv.DictReader(lines)
        }
    notes_path = path.with_suffix(".toml")
    notes = tomllib.loads(notes_path.read_text(encoding="utf-8")) if notes_path.is_file() else {}
    return Reference(
        name=name,
        title=notes.get("title", name),
        citation=notes.get("citation", name),
        rows=rows,
        applies=notes.get("applies", {}),
        variants=notes.get("variants", {}),
        differences=tuple(Difference(d["what"], d["why"]) for d in notes.get("difference", ())),
    )
