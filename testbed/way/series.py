"""Series of experiments in one results folder: each goes on where the one before it ended."""

from __future__ import annotations

import sys
from datetime import datetime

from testbed.model import Experiment, Record
from testbed.results.manifest import make_manifest, write_manifest
from testbed.results.progress import Display
from testbed.results.records import read_records
from testbed.way.launch import RunLane
from testbed.way.local import on_this_machine
from testbed.way.run import run_experiment


def run_next(lane: RunLane, experiment: Experiment, display: Display, now: datetime) -> Record:
    """Run what ``experiment`` has and the lane's folder lacks; return the last record.

    Raises:
        KeyboardInterrupt: a signal ended a trial; the records so far are intact.
        StorageError, MissingError: as ``run_experiment``.
    """
    environment = lane.manifest.environment
    manifest = make_manifest(experiment, environment, now, tuple(sys.argv[1:]))
    write_manifest(lane.folder, manifest)
    perform = on_this_machine(lane.setup, environment)
    if run_experiment(lane.folder, manifest, perform, display).interrupted:
        raise KeyboardInterrupt
    return read_records(lane.folder)[-1]
