"""The doors from the command line into the rooms: each a callable, so that a test can fake it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from testbed import places
from testbed.config import Catalogue
from testbed.environment import Environment
from testbed.model import Experiment
from testbed.run import Means


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the command line needs of the analysis, which the testbed itself does not know.

    ``write_reports`` writes table, summary and report into a results folder, ``render_terminal``
    returns its table as text.
    """

    write_reports: Callable[[Path], None]
    render_terminal: Callable[[Path], str]


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
