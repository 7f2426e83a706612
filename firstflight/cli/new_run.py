"""New run on this machine: its folder and lanes made, their trials run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from analysis.records.metric import PLT, Metric
from firstflight.cli.ended import say_tally
from firstflight.cli.means import chosen_store
from firstflight.cli.services import Services
from testbed.base import places
from testbed.model import Experiment
from testbed.results.tally import Tally
from testbed.runner.launch import Prepare, RunLane, open_lanes, run_lanes


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run that has ended: ``tallies`` are those of its first lanes if it was interrupted."""

    folder: Path
    lanes: tuple[RunLane, ...]
    tallies: list[Tally]

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it."""
        return self.tallies[-1].interrupted

    def say_tallies(self) -> None:
        """Log the tally of each lane, and what is left to do."""
        for lane, tally in zip(self.lanes, self.tallies, strict=False):
            say_tally(lane, tally, self.folder)


def run_new(
    services: Services, experiments: Sequence[Experiment], output: Path | None, *,
    prepare: Prepare | None = None, jobs: int | None = None, metric: Metric = PLT,
    no_store: bool = True, copies: bool = True,
) -> NewRun:  # fmt: skip
    """Run a lane for each of ``experiments``, in ``output`` or a new folder of the results.

    By default ``jobs`` are as many as there are cores.  Without ``no_store`` trials come from the
    store of results where it has them; ``copies`` is as `open_lanes` says.

    Raises:
        TestbedError: a part of the run cannot be had, or results cannot be written.
    """
    with places.using_cache(services.cache()):
        folder, lanes = open_lanes(prepare or services.prepare, experiments,
                                   jobs or len(os.sched_getaffinity(0)), services.results, output,
                                   services.now, copies=copies)  # fmt: skip
        tallies = run_lanes(lanes, services.reports.list_unsettled,
                            partial(services.reports.draw_table, metric=metric),
                            store=chosen_store(services, no_store))  # fmt: skip
    return NewRun(folder, lanes, tallies)
