"""Series of experiments in one results folder: each goes on where the one before it ended."""

from __future__ import annotations

import sys
from datetime import datetime

from testbed.experiment.plan import plan_trials
from testbed.model import Experiment, Record
from testbed.results.manifest import make_manifest, write_manifest
from testbed.results.progress import Display
from testbed.results.records import read_records
from testbed.way.launch import RunLane
from testbed.way.run import run_experiment


def run_next(lane: RunLane, experiment: Experiment, display: Display, now: datetime) -> Record:
    """Run what ``experiment`` has and the lane's folder lacks; return the last record.

    Raises:
        KeyboardInterrupt: a signal ended a trial; the records so far are intact.
        StorageError, MissingError: as ``run_experiment``.
    """
    environment = lane.manifest.environment
    trials = plan_trials(experiment)
    manifest = make_manifest(experiment, environment, trials, now, tuple(sys.argv[1:]))
    write_manifest(lane.folder, manifest)
    if run_experiment(lane.folder, manifest, lane.setup, display).interrupted:
        raise KeyboardInterrupt
    return read_records(lane.folder)[-1]
