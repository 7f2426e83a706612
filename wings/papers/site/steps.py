"""Steps of page load time between neighbouring releases, and the commits that made them."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from analysis.records.cells import experiment_of, key_of
from analysis.records.results import Results
from analysis.verdicts.compare.comparison import EVERYTHING, CellFinding, CompareOptions
from analysis.verdicts.compare.folders import compare_results
from analysis.words import clean
from testbed.base.errors import ConfigurationError
from testbed.experiment.label import knob_text
from wings.papers.site.matrix import Matrix, MatrixRow, differing_beside_kernel, name_of

STEPS_FILE = "steps.toml"
_MOVED = ("slower", "faster", "broken")
_LAB_OPTIONS = ("--set", "--link", "--client", "--protocol", "--seed", "-n")
"""Options of a run that bisect needs as well."""


class StatedCommit(BaseModel):
    """A commit that makes a step between two releases, and how it was found."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    before: str
    after: str
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}$")]
    subject: str = ""
    found: str = "by bisection"

    @property
    def words(self) -> str:
        """The commit as kernel developers cite it."""
        return f'{self.commit[:12]} ("{clean(self.subject)}")' if self.subject else self.commit[:12]


class _Stated(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    step: list[StatedCommit]


@dataclass(frozen=True, slots=True)
class Moved:
    """A row of page loads that moved between the columns ``before`` and ``after``, and by what."""

    row: MatrixRow
    before: int
    after: int
    finding: CellFinding

    @property
    def pct(self) -> float | None:
        """By how many percent the load time grew."""
        shift = self.finding.attribution.pct if self.finding.attribution else None
        return shift.value if shift else None

    @property
    def words(self) -> str:
        """What it came to: ``slower 0.86 %``."""
        return self.finding.attribution.words if self.finding.attribution else ""


@dataclass(frozen=True, slots=True)
class ReleaseStep:
    """What moved between two neighbouring releases, the most first.

    ``bisect`` is the command that finds the commit, in a tree of the kernel.
    """

    number: int
    before: str
    after: str
    moved: tuple[Moved, ...]
    commits: tuple[StatedCommit, ...]
    bisect: str


def read_stated(files: Sequence[Path]) -> tuple[StatedCommit, ...]:
    """Return the commits that ``files`` state.

    Raises:
        ConfigurationError: with all that is wrong in them.
    """
    stated: list[StatedCommit] = []
    problems: list[str] = []
    for file in files:
        try:
            stated += _Stated.model_validate(tomllib.loads(file.read_text("utf-8"))).step
        except ValidationError as error:
            for each in error.errors():
                problems.append(f"{file}: {'.'.join(map(str, each['loc']))}: {each['msg']}")
        except OSError as error:
            problems.append(f"cannot read {file}: {error.strerror}")
        except ValueError as error:  # neither TOML nor UTF-8
            problems.append(f"{file}: {error}")
    if problems:
        raise ConfigurationError(problems)
    return tuple(stated)


def find_steps(
    matrix: Matrix, stated: Sequence[StatedCommit]
) -> tuple[tuple[ReleaseStep, ...], tuple[str, ...]]:
    """Return the steps, and a sentence for each two folders that cannot be held together.

    Raises:
        ConfigurationError: a commit is stated for a step that there is not.
    """
    between: dict[tuple[int, int], list[Moved]] = {}
    apart: dict[str, None] = {}
    for moved in _find_moved(matrix, apart):
        between.setdefault((moved.before, moved.after), []).append(moved)
    steps: list[ReleaseStep] = []
    for (left, right), moved_rows in sorted(between.items()):
        before, after = matrix.columns[left].version, matrix.columns[right].version
        commits = [one for one in stated if (one.before, one.after) == (before, after)]
        most = tuple(sorted(moved_rows, key=lambda each: -abs(each.pct or 0.0)))
        bisect = _bisect(matrix, before, after, most)
        steps.append(ReleaseStep(len(steps) + 1, before, after, most, tuple(commits), bisect))
    seen = {(step.before, step.after) for step in steps}
    strangers = [one for one in stated if (one.before, one.after) not in seen]
    if strangers:
        known = ", ".join(f"{before} to {after}" for before, after in sorted(seen)) or "none"
        raise ConfigurationError(
            [f"commit {one.commit[:12]}: no step from {one.before} to {one.after} is seen; steps: "
             f"{known}" for one in strangers]
        )  # fmt: skip
    return tuple(steps), tuple(apart)


def _find_moved(matrix: Matrix, apart: dict[str, None]) -> Iterator[Moved]:
    """Yield each row that moved between neighbouring releases: from one that has its number."""
    compared: dict[tuple[Path, Path], dict[object, CellFinding]] = {}
    for row in matrix.loads:
        for left, base, right, new in _neighbours(matrix, row):
            if differing_beside_kernel(base, new):
                apart[f"{name_of(base)} and {name_of(new)}"] = None
                continue
            folders = base.folder, new.folder
            if folders not in compared:
                options = CompareOptions(EVERYTHING, min_effect_pct=0.0, attribute=True)
                cells = compare_results(*folders, options).cells
                compared[folders] = {key_of(cell.axes): cell for cell in cells}
            finding = compared[folders].get(key_of(row.axes or {}))
            if finding and finding.attribution and finding.attribution.verdict in _MOVED:
                yield Moved(row, left, right, finding)


def _neighbours(matrix: Matrix, row: MatrixRow) -> Iterator[tuple[int, Results, int, Results]]:
    """Yield the columns and folders of each two neighbouring releases of a row."""
    base: tuple[int, Results] | None = None
    for place, found in enumerate(row.found):
        if not found or not found.records or not matrix.columns[place].release:
            continue
        if base:
            yield *base, place, found.results
        if row.medians[place] is not None:
            base = place, found.results


def _bisect(matrix: Matrix, before: str, after: str, moved: Sequence[Moved]) -> str:
    """Return the command that finds the commit, by the row that got slower most, or broke.

    Where none did, any other packet is what is looked for.
    """
    slower = [each for each in moved if each.words == "broken" or (each.pct or 0.0) > 0.0]
    most = (slower or list(moved))[0]
    found = most.row.found[most.before]
    axes = most.row.axes or {}
    varying = [name for name in matrix.names if name in axes]
    cell = ",".join(f"{name}={knob_text(axes[name])}" for name in varying)
    words = [] if found is None else _experiment(found.results)
    good, bad = (f"v{version.removeprefix('v')}" for version in (before, after))
    words += ["--good", good, "--bad", bad, *([] if slower else ["--any"]), cell]
    return clean("./run.sh kernel bisect --git LINUX " + shlex.join(words))


def _experiment(results: Results) -> list[str]:
    """Return the options that name the experiment of ``results``, as its run changed it."""
    arguments = [str(each) for each in results.manifest.get("arguments") or ()]
    name = str(experiment_of(results.manifest).get("name"))
    files = [each for each in arguments if re.search(r"\.toml$", each)]
    changed = [word for option, value in pairwise(arguments) if option in _LAB_OPTIONS
               and not value.startswith("kernel") for word in (option, value)]  # fmt: skip
    return ["--experiment", files[0] if files else f"configs/{name}.toml", *changed]
