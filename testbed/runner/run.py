"""Run of an experiment, from its plan to its records: the whole way in one function."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from testbed.base.interrupt import interruptible
from testbed.experiment.plan import choose_trials, positions
from testbed.experiment.stopping import StoppingRule, Unsettled, all_settled, look_points
from testbed.model import Record, Trial
from testbed.results.captures import drop_captures
from testbed.results.folder import ResultsFolder, open_folder
from testbed.results.manifest import KeepCaptures, Manifest, planned_trials
from testbed.results.progress import Display
from testbed.results.tally import Tally, tally
from testbed.runner.local import Perform


def run_experiment(
    results: Path, manifest: Manifest, perform: Perform, display: Display, *,
    list_unsettled: Unsettled = all_settled,
) -> Tally:  # fmt: skip
    """Run what ``manifest`` plans and keep each record in ``results`` as its trial ends.

    Trials with an ``ok`` record there are skipped.
    ``list_unsettled`` is asked at each look of an experiment that samples until it has settled.

    Raises:
        StorageError: results cannot be written; the records so far are intact.
        MissingError: no kernel can be run.
    """
    experiment = manifest.experiment
    trials: tuple[Trial, ...] = ()
    tried: set[str] = set()
    with open_folder(results) as folder, interruptible() as interruption:
        stop = interruption.stop
        rule = StoppingRule(experiment, list_unsettled)
        for repetitions in look_points(experiment, folder.records):
            trials = planned_trials(experiment, manifest.shard, repetitions, manifest.once)
            todo = [t for t in choose_trials(trials, folder.done()) if t.id not in tried]
            tried |= {trial.id for trial in todo}
            with display.showing(todo, _counted(folder, trials)):
                ended = perform(todo, folder, stop, display)
                _keep(ended, positions(trials), folder, manifest.keep_captures, display)
            if stop.is_set() or rule.is_met(repetitions, folder.records):
                break
        folder.put_in_order([trial.id for trial in trials])
        interrupted = interruption.signal is not None
        return tally(trials, folder.records, interrupted=interrupted, unsettled=rule.unsettled)


def _counted(folder: ResultsFolder, trials: Sequence[Trial]) -> list[Record]:
    """Return the records that the folder has already of those of ``trials`` that count."""
    planned = {trial.id for trial in trials if not trial.warm_up}
    return [r for r in folder.records if r.outcome == "ok" and r.trial_id in planned]


def _keep(
    ended: Generator[Record, None, None], place: Mapping[str, int], folder: ResultsFolder,
    captures: KeepCaptures, display: Display,
) -> None:  # fmt: skip
    """Keep each record as its trial ends; trials that run are stopped if that cannot be."""
    with closing(ended) as records:
        for record in records:
            placed = replace(record, position=place.get(record.trial_id))
            kept = folder.append(placed)
            drop_captures(folder.trial(record.trial_id), record, captures)
            display.ended(kept)
