"""The doors from the command line into the rooms: each a callable, so that a test can fake it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.base import places
from testbed.experiment.config import Catalogue
from testbed.experiment.stopping import Unsettled
from testbed.model import Experiment
from testbed.results.environment import Environment
from testbed.run import Means


@dataclass(frozen=True, slots=True)
class Compared:
    """Two results folders held against each other: for people, for programs, and the exit code."""

    text: str
    document: dict[str, Any]
    exit_code: int


@dataclass(frozen=True, slots=True)
class Comparing:
    """How ``compare`` was asked to compare; a minimum effect of ``None`` is the kernel's own.

    ``across`` names what may differ, ``junit`` and ``markdown`` the files to write.
    """

    across: tuple[str, ...]
    alpha: float
    min_effect_pct: float | None
    allow_faster: bool
    junit: Path | None
    markdown: Path | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A baseline before it is written: its files by name, what it changes, where it is from."""

    files: dict[str, str]
    changes: str
    origin: str


@dataclass(frozen=True, slots=True)
class Regression:
    """What the command line needs to tell one night from another.

    ``draft_baseline`` takes results, the folder of the baseline and whether cells may go;
    ``describe_baseline`` returns a line.  ``add_history`` takes the database, results and the
    baseline to hold them against, ``write_trend`` the database, the page and the number of runs;
    both return a sentence.  ``list_history`` returns the runs, the oldest first.
    """

    draft_baseline: Callable[[Path, Path, bool], Draft]
    describe_baseline: Callable[[Path], str]
    add_history: Callable[[Path, Path, Path | None], str]
    list_history: Callable[[Path], list[dict[str, Any]]]
    write_trend: Callable[[Path, Path, int], str]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the command line needs of the analysis, which the testbed itself does not know.

    ``write_reports`` writes table, summary and report into a results folder, ``render_terminal``
    returns its table as text.  ``list_unsettled`` names the cells whose intervals are wider than
    the experiment's ``until_ci_pct``; there are none when all have settled.
    ``cross_check`` compares two results folders and writes what it found into a third folder.
    ``compare`` holds new results against a base.
    """

    write_reports: Callable[[Path], object]
    render_terminal: Callable[[Path], str]
    list_unsettled: Unsettled
    cross_check: Callable[[Path, Path, Path], Compared]
    regression: Regression
    compare: Callable[[Path, Path, Comparing], Compared]


@dataclass(frozen=True, slots=True)
class Doors:
    """Everything that the command line reaches.

    ``prepare`` takes an experiment and the number of jobs.  ``check_determinism`` takes a number
    of boots, a client, a kernel version and the number of jobs, and returns a description of each
    boot that differs from the first.
    """

    analysis: Analysis
    catalogue: Callable[[], Catalogue]
    prepare: Callable[[Experiment, int], tuple[Means, Environment]]
    check_determinism: Callable[[int, str, str, int], tuple[str, ...]]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    results: Path = places.RESULTS
    baselines: Path = places.ROOT / "analysis" / "baselines"
    cache: Callable[[], Path] = places.cache


def open_doors(analysis: Analysis) -> Doors:
    """The real doors, with the analysis that the caller brings."""
    # Imported here: a test with other doors needs neither kernels nor pages.
    from testbed.prepare import prepare, prepare_determinism, read_catalogue

    return Doors(analysis, read_catalogue, prepare, prepare_determinism)
