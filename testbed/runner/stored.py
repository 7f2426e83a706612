"""Trials that a store of results has: taken and judged again, and some of them run as a check."""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from threading import Event

from testbed.base import log
from testbed.base.heartbeat import WRITE_EVERY_S
from testbed.base.scratch import scratch_folder
from testbed.base.units import format_count
from testbed.model import Record, Trial
from testbed.results.agreement import REPEATABLE, DisagreementError, find_difference
from testbed.results.folder import ResultsFolder, fresh_folder
from testbed.results.manifest import Stored
from testbed.results.progress import Display
from testbed.results.store import TrialStore
from testbed.runner.local import Perform
from testbed.runner.verification import Reexamination

_log = log.logger(__name__)
VERIFY_PCT = 2.0


@dataclass(slots=True)
class FromStore:
    """Performs trials by taking them from a store, and has the others performed and kept there.

    Attributes:
        store: where results are.
        own: what judges each that is taken again; its environment is that of all trials.
        perform: what performs those that are not in it.
        verify_pct: how many of those that are in it run again, in percent.
        stored: how many were taken from the store, and ran again.
        unchecked: those that are yet to run again: where all are in the store, nobody waits for it.
    """

    store: TrialStore
    own: Reexamination
    perform: Perform
    verify_pct: float = VERIFY_PCT
    stored: Stored = field(default=Stored(0, 0), init=False)
    unchecked: tuple[Trial, ...] = field(default=(), init=False)

    def __call__(
        self, trials: Sequence[Trial], results: ResultsFolder, stop: Event, display: Display
    ) -> Generator[Record, None, None]:
        """Yield the record of each trial as ``Perform`` says.

        Where some are to be measured, those that run again do so before anything else.

        Raises:
            DisagreementError: one that ran again is not what the store has of it.
            StorageError: the store cannot be read or written.
        """
        known = self.store.list_trials(self.own.environment.id) if trials else frozenset()
        there = [trial for trial in trials if trial.id in known and not trial.warm_up]
        self.unchecked = self._draw(there)
        if len(there) < len(trials):
            self.check(stop)
        taken: set[str] = set()
        for trial in there:
            record = None if stop.is_set() else self._take(trial, results)
            if record is not None:
                taken.add(trial.id)
                yield record
        if there:
            self.stored = replace(self.stored, trials=self.stored.trials + len(taken))
            again = f", {self.stored.again} of them run again: equal" if self.stored.again else ""
            count = f"{len(taken)} of {format_count(len(trials), 'trial')}"
            _log.info("%s from the store %s%s", count, self.store.address, again)
        missing = [trial for trial in trials if trial.id not in taken]
        if missing and not stop.is_set():
            with closing(self.perform(missing, results, stop, display)) as ended:
                for record in ended:
                    if record.outcome == "ok" and not record.trial.warm_up:
                        self.store.write(record, results.trial(record.trial_id))
                    yield record

    def check(self, stop: Event) -> None:
        """Run the trials in ``unchecked`` again, and hold each against the store.

        Raises:
            DisagreementError: one is not equal to the bit; those that run are stopped.
            StorageError: the store cannot be read.
        """
        trials, self.unchecked = self.unchecked, ()
        if not trials or stop.is_set():
            return
        count = format_count(len(trials), "trial")
        _log.info("running %s of the store again, to compare", count)
        next_s = time.monotonic() + WRITE_EVERY_S
        with (
            scratch_folder("determinism") as scratch,
            fresh_folder(scratch / "again") as again,
            closing(self.perform(trials, again, stop, Display())) as ended,
        ):
            for record in ended:
                equal = self.stored.again + self._agrees(record)
                self.stored = replace(self.stored, again=equal)
                again.discard_trial(record.trial_id)
                if time.monotonic() > next_s:
                    _log.info("%d of %s run again: equal so far", equal, count)
                    next_s = time.monotonic() + WRITE_EVERY_S
        if not stop.is_set():
            _log.info("%d of %s run again: equal to the bit", self.stored.again, count)

    def _draw(self, there: Sequence[Trial]) -> tuple[Trial, ...]:
        """Draw those that run again; by chance, so that no entry is safe from it."""
        if not there or not self.verify_pct:
            return ()
        count = min(max(1, round(len(there) * self.verify_pct / 100)), len(there))
        drawn = {trial.id for trial in random.SystemRandom().sample(there, count)}
        return tuple(trial for trial in there if trial.id in drawn)

    def _agrees(self, ours: Record) -> bool:
        """Return whether what ran again could be compared.

        Raises:
            DisagreementError: it is not equal.
        """
        entry = self.store.read(ours.trial_id, self.own.environment.id)
        if entry is None or ours.outcome in REPEATABLE or entry.record.trial != ours.trial:
            return False
        if difference := find_difference(ours, entry.record):
            raise DisagreementError(
                f"trial {ours.trial_id} is not what the store {self.store.address} has of it, "
                f"here and there: {difference}; one of the two machines is not to be trusted, nor "
                f"what this run took from the store: run with --no-store, and remove the wrong one "
                f"(./run.sh store prune --environment {self.own.environment.id})"
            )
        return True

    def _take(self, trial: Trial, results: ResultsFolder) -> Record | None:
        """Return the record that the store has of ``trial``, if its evidence bears all of it.

        Where more or less time was allowed, its evidence is of another trial.
        """
        entry = self.store.read(trial.id, self.own.environment.id)
        if entry is None or entry.record.trial != trial:
            return None
        attempt = results.attempts(trial.id) + 1
        out = results.fresh_trial(trial.id)
        entry.write_files(out)
        wrong = next(self.own.contradictions(entry.record, out), None)
        if wrong is not None:
            address = self.store.address
            _log.warning("left out: trial %s in the store %s: %s", trial.id, address, wrong)
            results.discard_trial(trial.id)
            return None
        return replace(entry.record, attempt=attempt, cost=None)
