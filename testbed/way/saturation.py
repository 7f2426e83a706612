"""Search for the saturation of a server: trials at one rate after the other, each kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from testbed.base.errors import TrialError
from testbed.experiment.plan import plan_trials
from testbed.experiment.saturation import Bracket, bisect, keeps_up
from testbed.model import Experiment, Record, ServedLoad, ServerLoad
from testbed.results.manifest import make_manifest, write_manifest
from testbed.results.progress import Display
from testbed.results.records import read_records
from testbed.way.launch import RunLane
from testbed.way.run import run_experiment

BEGIN = 1000
"""The first rate that is tried, in connections a second, where a file knows no better one."""


def plan_search(experiment: Experiment) -> Experiment:
    """Return the experiment of a search: the first condition of ``experiment``, once.

    Its first rate is the saturation that ``experiment`` states, or BEGIN.
    """
    return _at(
        replace(
            experiment,
            name=f"{experiment.name}-saturation",
            title=f"Saturation: {experiment.title}",
            repetitions=1,
            until_ci_pct=None,
            warmup_blocks=0,
            reference=None,
            leave_out=(),
        ),
        (experiment.saturation_per_s or BEGIN,),
    )


def search_saturation(
    lane: RunLane, display: Display, now: Callable[[], datetime]
) -> Iterator[Bracket]:
    """Yield ever narrower bounds of the saturation; the trials are in the lane's folder.

    Raises:
        KeyboardInterrupt: a signal ended a trial; the records so far are intact.
        TrialError: a trial has no number, with the reason.
        StorageError, MissingError: as ``run_experiment``.
    """
    experiment = lane.manifest.experiment
    tried: list[int] = []

    def holds(rate: int) -> bool:
        tried.append(rate)
        asked = _at(experiment, tuple(tried))
        manifest = make_manifest(
            asked, lane.manifest.environment, plan_trials(asked), now(), tuple(sys.argv[1:])
        )
        write_manifest(lane.folder, manifest)
        tally = run_experiment(lane.folder, manifest, lane.setup, display)
        if tally.interrupted:
            raise KeyboardInterrupt
        return keeps_up(_served(read_records(lane.folder)[-1], rate))

    return bisect(_rate_of(experiment), holds)


def _served(record: Record, rate: int) -> ServedLoad:
    if record.outcome != "ok" or record.served is None:
        raise TrialError(
            f"at {rate:,} connections a second the trial was {record.outcome}: {record.reason}"
        )
    return record.served


def _rate_of(experiment: Experiment) -> int:
    return _load_of(experiment).arrivals.rate_per_s


def _at(experiment: Experiment, rates: tuple[int, ...]) -> Experiment:
    """Return ``experiment`` with its first condition at each of ``rates``."""
    load = _load_of(experiment)
    loads = (replace(load, arrivals=replace(load.arrivals, rate_per_s=rate)) for rate in rates)
    return replace(experiment, conditions=tuple(loads))


def _load_of(experiment: Experiment) -> ServerLoad:
    first = experiment.conditions[0]
    if not isinstance(first, ServerLoad):
        raise TypeError("only a server has a saturation")
    return first
