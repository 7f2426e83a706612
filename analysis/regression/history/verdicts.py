"""What a run's comparison with its baseline said, as the history keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.records.cells import key_of
from analysis.records.results import Results, read_results
from analysis.regression.compare import CompareOptions, Comparison, compare_results
from testbed.base.errors import ConfigurationError

EVERYTHING = ("all",)
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """The verdict on the cell with these axes, and how much later its loads end, in percent."""

    axes: dict[str, Any]
    verdict: str
    later_pct: float | None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The environment of the baseline, the verdict on the whole, and that on each cell.

    ``overall`` of REFUSED says that the two cannot be compared, and ``why`` then says why.
    """

    baseline: str
    overall: str
    cells: tuple[CellVerdict, ...] = ()
    why: str | None = None

    def of(self, axes: Mapping[str, Any]) -> CellVerdict | None:
        """The verdict on the cell with these axes, if it was compared."""
        wanted = key_of(dict(axes))
        return next((cell for cell in self.cells if key_of(cell.axes) == wanted), None)


def find_verdicts(results: Results, baseline: Path) -> Verdicts:
    """Compare ``results`` with ``baseline``, whatever the environments differ in.

    Another kernel, or another version of it, is another lane: the two are not compared.

    Raises:
        ConfigurationError, StorageError: ``baseline`` cannot be read.
    """
    base = read_results(baseline)
    theirs, ours = base.identity, results.identity
    name = theirs.environment or "unknown"
    if (theirs.kernel, theirs.kernel_version) != (ours.kernel, ours.kernel_version):
        return Verdicts(
            name,
            REFUSED,
            why=f"the baseline is of the {theirs.kernel} kernel {theirs.kernel_version}, "
            f"the run of the {ours.kernel} kernel {ours.kernel_version}",
        )
    try:
        found = compare_results(baseline, results.folder, CompareOptions(across=EVERYTHING))
    except ConfigurationError as error:
        return Verdicts(name, REFUSED, why="; ".join(error.problems))
    return Verdicts(name, found.verdict, _by_cell(found))


def _by_cell(found: Comparison) -> tuple[CellVerdict, ...]:
    return tuple(
        CellVerdict(dict(cell.axes), found.counted(cell), cell.effect.pct if cell.effect else None)
        for cell in found.cells
    )
