"""Runs for the tests: loads and promises on two releases and on a kernel of one's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from testbed.experiment.lanes import write_lanes
from testbed.model import Condition
from testbed.results.environment import Environment
from testbed.results.manifest import load_manifest
from testbed.results.records import read_records
from tests.analysis.sample import ENVIRONMENT, write_results
from tests.analysis.verdicts.compare.test_attribution import AGAIN, LOAD
from tests.analysis.verdicts.compare.test_kernels import OFF, ON, Times, lane
from wings.scenarios.tests.promised import write_promises

WSJ = replace(OFF, page="wsj")
OLD: Times = {OFF: [1000.0], ON: [900.0], WSJ: [2000.0]}
NEW: Times = {OFF: [1020.0], ON: [900.0], WSJ: [None]}
MINE: Times = {OFF: [1030.0]}


def write_loads(folder: Path) -> Path:
    """Loads on 6.12, 6.1 and a kernel of one's own; on 6.12 one is slower, one not proven."""
    lane(folder / "6.12", "6.12", NEW, AGAIN)
    lane(folder / "6.1", "6.1", OLD, LOAD)
    lane(folder / "mine", "mine", MINE, AGAIN)
    write_lanes(folder, ["6.12", "6.1", "mine"])
    return folder


def write_kept(folder: Path, version: str = "6.12") -> Path:
    """Promises on the same build of a kernel as its loads are on."""
    write_promises(folder, version)
    environment = Environment({"kernel.version": version}, ENVIRONMENT.pages, {})
    records = [replace(r, environment=environment.id) for r in read_records(folder)]
    return write_results(folder, records, load_manifest(folder).experiment, environment)


def change_environment(folder: Path, part: str, values: Mapping[str, str]) -> Path:
    """Change ``parts`` or ``pages`` of what a folder's manifest says that it was made with."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["environment"][part] |= values
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def load_once(folder: Path, version: str, condition: Condition, plt_ms: float) -> Path:
    """One load of a condition on a kernel."""
    return lane(folder, version, {condition: [plt_ms]}, LOAD)
