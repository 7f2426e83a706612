"""The doors from the command line into the rooms: each a callable, so that a test can fake it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed import places
from testbed.config import Catalogue
from testbed.environment import Environment
from testbed.model import Experiment
from testbed.run import Means
from testbed.stopping import Unsettled


@dataclass(frozen=True, slots=True)
class Compared:
    """Two results folders held against each other: for people, for programs, and the exit code."""

    text: str
    document: dict[str, Any]
    exit_code: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the command line needs of the analysis, which the testbed itself does not know.

    ``write_reports`` writes table, summary and report into a results folder, ``render_terminal``
    returns its table as text.  ``list_unsettled`` names the cells whose intervals are wider than
    the experiment's ``until_ci_pct``; there are none when all have settled.
    ``cross_check`` compares two results folders and writes what it found into the second.
    """

    write_reports: Callable[[Path], None]
    render_terminal: Callable[[Path], str]
    list_unsettled: Unsettled
    cross_check: Callable[[Path, Path], Compared]


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
    cache: Callable[[], Path] = places.cache


def open_doors(analysis: Analysis) -> Doors:
    """The real doors, with the analysis that the caller brings."""
    # Imported here: a test with other doors needs neither kernels nor pages.
    from testbed.prepare import prepare, prepare_determinism, read_catalogue

    return Doors(analysis, read_catalogue, prepare, prepare_determinism)
