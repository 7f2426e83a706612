"""Launch of a run: a results folder, a kernel and a manifest for each lane, then its trials."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from testbed.base import log
from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.interrupt import interruptible
from testbed.base.units import format_count
from testbed.client import tcp_alone
from testbed.experiment.lanes import name_lanes, read_lanes, write_lanes
from testbed.experiment.shards import Shard
from testbed.experiment.stopping import Unsettled
from testbed.model import Experiment, Record, in_real_time
from testbed.results.environment import Environment, differences
from testbed.results.folder import TRACES_FOLDER, new_results, refuse_explicit
from testbed.results.lazy import read_lazy_records
from testbed.results.manifest import (
    KeepCaptures,
    Manifest,
    Stored,
    load_manifest,
    make_manifest,
    write_manifest,
)
from testbed.results.progress import Display, open_display
from testbed.results.records import read_records
from testbed.results.seal import is_judged_here, write_seal
from testbed.results.store import TrialStore
from testbed.results.tally import Tally
from testbed.runner.local import RunSetup, on_this_machine
from testbed.runner.run import run_experiment
from testbed.runner.stored import VERIFY_PCT, FromStore
from testbed.runner.verification import Reexamination
from testbed.traces.catalogue import is_own

_log = log.logger(__name__)

Prepare = Callable[[Experiment, int], tuple[RunSetup, Environment]]
"""From an experiment and the number of jobs to all that its trials need, and what they run in."""
DrawTable = Callable[[Experiment, Sequence[Record]], str]
"""From an experiment and its records so far to the lines of their table."""


@dataclass(frozen=True, slots=True)
class RunLane:
    """One results folder, which has its manifest, and all that its trials need.

    ``name`` is what the lanes of a run differ in, and empty where there is one.
    """

    folder: Path
    manifest: Manifest
    setup: RunSetup
    name: str = ""


def find_lanes(folder: Path) -> dict[Path, Manifest]:
    """Return the results folders that a run in ``folder`` goes on with, itself or its lanes.

    Raises:
        StorageError: one has no manifest that can be read.
    """
    folders = [folder / name for name in read_lanes(folder)] or [folder]
    return {lane: load_manifest(lane) for lane in folders}


def open_lanes(
    prepare: Prepare, experiments: Sequence[Experiment], jobs: int, results: Path,
    output: Path | None, now: Callable[[], datetime], *, shard: Shard | None = None,
    keep_captures: KeepCaptures = "all", copies: bool = True,
) -> tuple[Path, tuple[RunLane, ...]]:  # fmt: skip
    """Make a run's folder, and in it a lane for each of ``experiments``; one is the folder itself.

    Every kernel is at hand before any folder is made: ``output``, or a new one in ``results``.
    Each lane is for its ``shard`` of the plan, and for the whole without one.  Without ``copies``
    a condition that draws nothing is loaded once by a client that shows TCP alone.

    Raises:
        TestbedError: a part of the run cannot be had, or a folder cannot be made.
    """
    if output is not None:
        refuse_explicit(results, output)
    prepared = [_prepare(prepare, experiment, jobs) for experiment in experiments]
    began, words = now().astimezone(UTC), tuple(sys.argv[1:])
    manifests = [
        make_manifest(
            *(experiment, environment, began, words, tcp_alone(experiment.clients)),
            *(shard, keep_captures, () if copies else tcp_alone(experiment.clients)),
        )
        for experiment, (_, environment) in zip(experiments, prepared, strict=True)
    ]
    alone = len(experiments) == 1
    with new_results(results, experiments[0].name, began, output) as folder:
        named = zip(name_lanes(experiments), manifests, prepared, strict=True)
        lanes = tuple(
            RunLane(folder / name, manifest, setup, name) for name, manifest, (setup, _) in named
        )
        for lane in lanes:
            try:
                lane.folder.mkdir(exist_ok=alone)
            except OSError as error:
                raise StorageError(f"cannot make {lane.folder}: {error.strerror}") from error
            write_manifest(lane.folder, lane.manifest)
        _keep_traces(folder, lanes)
        if not alone:
            write_lanes(folder, [lane.name for lane in lanes])
    return folder, lanes


def _keep_traces(folder: Path, lanes: Sequence[RunLane]) -> None:
    """Keep the user's own traces beside the results, one time a line, as they were imported."""
    own = {
        name: trace for lane in lanes for name, trace in lane.setup.traces.items() if is_own(name)
    }
    for name, trace in own.items():
        path = folder / TRACES_FOLDER / name
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{ms}\n" for ms in trace.times))
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error


def resume_lanes(
    prepare: Prepare, old: Mapping[Path, Manifest], experiments: Sequence[Experiment], jobs: int,
    now: Callable[[], datetime],
) -> tuple[RunLane, ...]:  # fmt: skip
    """Return the lanes of ``old`` to go on with, planned as ``experiments``.

    Raises:
        ConfigurationError: this environment is another than that of a lane.
        TestbedError: a part of the run cannot be had.
    """
    lanes: list[RunLane] = []
    problems: list[str] = []
    for (folder, before), experiment in zip(old.items(), experiments, strict=True):
        setup, environment = _prepare(prepare, experiment, jobs)
        problems += _other_environment(folder, before, differences(environment, before.environment))
        manifest = make_manifest(
            *(experiment, environment, now(), tuple(sys.argv[1:]), tcp_alone(experiment.clients)),
            *(before.shard, before.keep_captures, before.once),
        )
        name = folder.name if len(old) > 1 else ""
        lanes.append(RunLane(folder, manifest, setup, name))
    if problems:
        raise ConfigurationError(problems)
    return tuple(lanes)


def run_lanes(
    lanes: Sequence[RunLane], list_unsettled: Unsettled, draw_table: DrawTable,
    store: TrialStore | None = None, verify_pct: float = VERIFY_PCT,
    show: Callable[[RunLane], None] = lambda lane: None,
) -> list[Tally]:  # fmt: skip
    """Run one lane after the other; there is no tally of those behind an interrupted one.

    ``draw_table`` is asked for the table so far where there is a terminal to show it.
    Trials that ``store`` has are taken from it, and ``verify_pct`` of them run again.  Where it has
    all, ``show`` is called before these run again.

    Raises:
        StorageError: results cannot be written; the records so far are intact.
        MissingError: this machine cannot run a kernel.
        DisagreementError: a trial that ran again is not what the store has of it.
    """
    tallies: list[Tally] = []
    for lane in lanes:
        if lane.name:
            _log.info("%s", _describe(lane.manifest.experiment))
        earlier = len(read_records(lane.folder))
        sealed = not earlier or is_judged_here(lane.folder)
        perform = on_this_machine(lane.setup, lane.manifest.environment)
        source = None
        if store is not None and not in_real_time(lane.manifest.experiment.kernel):
            own = Reexamination(lane.manifest.environment, lane.setup.conclude, lane.setup.traces)
            source = FromStore(store, own, perform, verify_pct)
        tallies.append(
            run_experiment(lane.folder, lane.manifest, source or perform,
                           open_display(partial(draw_table, lane.manifest.experiment)),
                           list_unsettled=list_unsettled)
        )  # fmt: skip
        if source is not None and source.stored.trials:
            before = load_manifest(lane.folder).stored or Stored(0, 0)
            _note_stored(lane.folder, before, source.stored)
            _seal(lane.folder, 0 if sealed else earlier)
            if source.unchecked and not tallies[-1].interrupted:
                show(lane)
                with interruptible() as interruption:
                    source.check(interruption.stop)
                interrupted = interruption.signal is not None
                tallies[-1] = replace(tallies[-1], interrupted=interrupted)
                _note_stored(lane.folder, before, source.stored)
        _seal(lane.folder, 0 if sealed else earlier)
        if tallies[-1].interrupted:
            break
    return tallies


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


def _seal(folder: Path, unjudged: int) -> None:
    """Say that the records in ``folder`` were judged here, but for so many of an earlier run."""
    records = read_lazy_records(folder)
    write_seal(folder, records, len(records) - unjudged)


def _note_stored(folder: Path, before: Stored, stored: Stored) -> None:
    """Say in the manifest what was taken from a store, by this run and those ``before`` it."""
    both = Stored(before.trials + stored.trials, before.again + stored.again)
    write_manifest(folder, replace(load_manifest(folder), stored=both))


def _prepare(prepare: Prepare, experiment: Experiment, jobs: int) -> tuple[RunSetup, Environment]:
    pages = len(experiment.pages)
    needed = [format_count(pages, "page")] if pages else []
    needed.append(_describe(experiment))
    _log.info("preparing %s", " and ".join(needed))
    return prepare(experiment, jobs)


def _describe(experiment: Experiment) -> str:
    return f"kernel {experiment.kernel} {experiment.kernel_version} on root {experiment.root}"


def _other_environment(folder: Path, old: Manifest, differing: list[str]) -> list[str]:
    if not differing:
        return []
    return [
        f"--resume {folder}: this environment is another than that of the results "
        f"({old.environment.id}); results are never mixed: make it the same, or start anew",
        *(f"differs: {difference}" for difference in differing),
    ]
