"""Trials on a cluster: batches for workers that come and go, and what they send back held up.

No worker is trusted for its word.  One of another root, kernel or code is refused when it joins.
What a worker sends counts from when one of its trials was run again elsewhere and is equal to the
bit; then a share of all is.  A worker that is gone, that fails or whose clock stands loses its
batch to another; what comes twice is compared, and counts once.

Which worker runs what is decided here, longest trials first (R. L. Graham, SIAM J. Appl. Math. 17
(1969) 416-429) in batches of half a minute; how a batch gets there is the engine's (``Pool``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from threading import Event

from testbed.base import log
from testbed.base.errors import MissingError
from testbed.base.scratch import scratch_folder
from testbed.base.units import format_count
from testbed.model import Record, Trial
from testbed.results.agreement import REPEATABLE
from testbed.results.entry import DamagedEntryError, TrialEntry, unpack_entry
from testbed.results.folder import ResultsFolder, fresh_folder
from testbed.results.manifest import Manifest
from testbed.results.progress import Display, Quiet
from testbed.way.batch import find_decisive, write_request
from testbed.way.local import Perform
from testbed.way.pool import BatchEnd, BatchNews, Pool
from testbed.way.trust import TRIES, Arbiter, WorkerTrust
from testbed.way.waiting import TrialQueue

BATCH_S = 30.0
"""How long a batch takes, by what its like took so far: what is lost with a worker."""
AHEAD = 2
"""Batches of a slot at once: one that runs, and one that waits beside it."""
LEASE_S = 90.0
JOIN_S = 1800.0
"""How long a trial's clock may stand, and a machine set up a kernel, before others get the work."""
PATIENCE_S = 60.0
"""How long a run waits for workers when there are none."""
OVERLAP_PCT = 1.0
LOOK_S = 1.0
"""How often it is looked who is there, and whose clock stands."""
_LEASE_COSTS = 20.0
_POLL_S = 0.2

_log = log.logger(__name__)


@dataclass(slots=True)
class _Batch:
    """A batch that a worker has: trials that are not back yet, and when it last went on."""

    worker: str
    trials: dict[str, Trial]
    lease_s: float
    alive_s: float
    joins: bool = False
    expired: bool = False


@dataclass(slots=True)
class _Worker:
    """A worker: what it may do, and what it did."""

    slots: int = 1
    ready: bool = False
    refused: str = ""
    failures: int = 0
    batches: set[int] = field(default_factory=set)


def on_cluster(
    pool: Pool, manifest: Manifest, here: Perform, overlap_pct: float = OVERLAP_PCT
) -> Perform:
    """Return what performs the trials of a plan on the workers of ``pool``.

    ``overlap_pct`` of them run on two workers; ``here`` decides where these differ.
    """

    def there(
        trials: Sequence[Trial], results: ResultsFolder, stop: Event, display: Display
    ) -> Generator[Record, None, None]:
        def arbiter(trial: Trial) -> Record | None:
            with (
                scratch_folder("determinism") as scratch,
                fresh_folder(scratch / "again") as again,
                closing(here([trial], again, stop, Quiet())) as ended,
            ):
                return next(iter(list(ended)), None)  # one that is left early stops all

        run = ClusterRun(pool, manifest, trials, overlap_pct, arbiter)
        return run.run(results, stop, display)

    return there


class ClusterRun:
    """One call of ``Perform`` on a pool: it ends when every trial has ended, or ``stop`` is set."""

    def __init__(
        self,
        pool: Pool,
        manifest: Manifest,
        trials: Sequence[Trial],
        overlap_pct: float,
        arbiter: Arbiter,
    ) -> None:
        self._pool, self._manifest = pool, manifest
        self._decisive = find_decisive(manifest.experiment.conditions)
        self._environment = manifest.environment.id
        self._trials = {trial.id: trial for trial in trials}
        self._trust = WorkerTrust(self._trials, overlap_pct / 100, arbiter)
        self._queue = TrialQueue(trials)
        self._workers: dict[str, _Worker] = {}
        self._batches: dict[int, _Batch] = {}
        self._number = 0
        self._failed: Counter[str] = Counter()
        self._given_up: dict[str, str] = {}
        self._alone_since_s: float | None = None
        self._look_s, self._changed = -math.inf, True

    def run(
        self, results: ResultsFolder, stop: Event, display: Display
    ) -> Generator[Record, None, None]:
        """Yield the record of each trial as it ends, with its files in ``results``.

        Raises:
            DisagreementError: two workers have other results of one trial.
            MissingError: there is no worker any more.
            StorageError: the engine is gone, or results cannot be written.
        """
        try:
            while not stop.is_set() and not self._is_over():
                if self._pool.now_s() >= self._look_s:
                    self._look_s = self._pool.now_s() + LOOK_S
                    self._meet()
                    self._expire()
                    self._changed = True
                if self._changed:
                    self._hand_out()
                    self._changed = False
                for event in self._pool.wait(_POLL_S):
                    if isinstance(event, BatchNews):
                        self._hear(event, display)
                    else:
                        self._end(event)
                        self._changed = True
                display.waited()
                yield from self._give(results)
        finally:
            for number in list(self._batches):
                self._pool.cancel(number)
        for trial_id, problem in self._given_up.items():
            _log.error("trial %s could not be run by %d workers: %s", trial_id, TRIES, problem)

    def _is_over(self) -> bool:
        ended = len(self._trust.done) + len(self._given_up) == len(self._trials)
        return ended and self._trust.settled and not self._rechecks()

    def _rechecks(self) -> bool:
        """Return whether something runs again whose result is awaited."""
        return any(
            trial_id in self._trust.done and not batch.expired
            for batch in self._batches.values()
            for trial_id in batch.trials
        )

    # Workers

    def _meet(self) -> None:
        """Greet workers that are new, and take back what those had that are gone."""
        there = self._pool.workers()
        for name, slots in there.items():
            if name not in self._workers:
                self._workers[name] = _Worker(slots)
                self._send(name, [], JOIN_S, joins=True)
        for name in [name for name in self._workers if name not in there]:
            worker = self._workers.pop(name)
            _log.warning("worker %s is gone", name)
            for number in list(worker.batches):
                self._take_back(number)
            self._queue.put_back(self._trust.forget(name))
        if any(worker.ready or self._joins(worker) for worker in self._workers.values()):
            self._alone_since_s = None
            return
        if self._alone_since_s is None:
            self._alone_since_s = self._pool.now_s()
        if self._pool.now_s() - self._alone_since_s > PATIENCE_S:
            refused = [
                f"{name}: {worker.refused or 'stands still'}"
                for name, worker in self._workers.items()
            ]
            raise MissingError(
                f"{self._pool.address} has no worker that can run this: "
                f"{'; '.join(refused) or 'none has joined'}; start workers, then go on with "
                "--resume"
            )

    def _joins(self, worker: _Worker) -> bool:
        batches = (self._batches[number] for number in worker.batches)
        return any(batch.joins and not batch.expired for batch in batches)

    def _refuse_all(self) -> None:
        """Refuse workers that are not to be trusted."""
        for name, why in self._trust.refused.items():
            if name in self._workers and not self._workers[name].refused:
                self._refuse(name, why)

    def _refuse(self, name: str, why: str) -> None:
        worker, why = self._workers[name], "; ".join(why.split("\n"))
        worker.refused, worker.ready = why, False
        _log.warning("worker %s is refused: %s", name, why)
        for number in list(worker.batches):
            self._pool.cancel(number)
            self._take_back(number)
        self._queue.put_back(self._trust.forget(name))

    # Batches

    def _hand_out(self) -> None:
        """Give every slot that is free a batch."""
        ready = {name: worker for name, worker in self._workers.items() if worker.ready}
        joining = any(self._joins(worker) for worker in self._workers.values())
        self._trust.compare_here(list(ready), more_join=joining)
        self._refuse_all()
        ready = {name: worker for name, worker in ready.items() if worker.ready}
        batch_s = self._batch_s(sum(worker.slots for worker in ready.values()))
        for name, worker in ready.items():
            doubtful = len(ready) > 1 and self._trust.is_doubtful(name)
            for _ in range(AHEAD * worker.slots - len(worker.batches)):
                again = self._trust.take(name, list(ready))
                trials = [again] if again else []
                if not again and not doubtful:
                    trials = self._queue.take(batch_s, self._trust.done)
                if not trials:
                    break
                costs = [self._queue.cost_s(trial) or 0.0 for trial in trials]
                self._send(name, trials, max(LEASE_S, _LEASE_COSTS * max(costs)))

    def _batch_s(self, slots: int) -> float:
        """Return how long the next batch is to take: less at the end, where all end at once."""
        return min(BATCH_S, max(1.0, self._queue.left_s() / max(1, slots) / (AHEAD + 1)))

    def _send(
        self, name: str, trials: Sequence[Trial], lease_s: float, *, joins: bool = False
    ) -> None:
        self._number += 1
        self._batches[self._number] = _Batch(
            name, {trial.id: trial for trial in trials}, lease_s, self._pool.now_s(), joins
        )
        self._workers[name].batches.add(self._number)
        request = write_request(self._manifest, trials, self._decisive)
        self._pool.submit(self._number, name, request)

    def _take_back(self, number: int) -> None:
        """Let what a batch still has wait again."""
        batch = self._batches.pop(number)
        if batch.worker in self._workers:
            self._workers[batch.worker].batches.discard(number)
        if not batch.expired:
            self._wait_again(batch)

    def _wait_again(self, batch: _Batch) -> None:
        waiting = []
        for trial_id, trial in batch.trials.items():
            if trial_id not in self._trust.done:
                waiting.append(trial)
            elif self._trust.runs_again(trial_id):
                self._trust.put_back(trial_id)
        self._queue.put_back(waiting)

    def _expire(self) -> None:
        """Give others what a worker has whose trials stand still; what it sends is still heard."""
        now_s = self._pool.now_s()
        for name, worker in self._workers.items():
            numbers = sorted(worker.batches)
            running, waiting = numbers[: worker.slots], numbers[worker.slots :]
            for number in waiting:
                self._batches[number].alive_s = now_s
            for batch in (self._batches[number] for number in running):
                standing_s = now_s - batch.alive_s
                if batch.expired or standing_s <= batch.lease_s:
                    continue
                _log.warning("worker %s stands still for %.0f s", name, standing_s)
                self._wait_again(batch)
                batch.expired, worker.ready = True, False
                for number in waiting:
                    self._pool.cancel(number)
                    self._take_back(number)
                waiting = []

    # What comes

    def _hear(self, told: BatchNews, display: Display) -> None:
        batch = self._batches.get(told.number)
        if batch is None:
            return
        batch.alive_s = self._pool.now_s()
        if told.says.get("kind") == "began":
            trial = batch.trials.get(str(told.says.get("trial_id")))
            if trial is not None and trial.id not in self._trust.done:
                display.began(trial)

    def _end(self, ended: BatchEnd) -> None:
        batch = self._batches.pop(ended.number, None)
        if batch is None or batch.worker not in self._workers:
            return
        worker = self._workers[batch.worker]
        worker.batches.discard(ended.number)
        if worker.refused:
            return
        if batch.joins:
            if ended.problem:
                self._refuse(batch.worker, ended.problem)
            worker.ready = not ended.problem
            return
        worker.ready = True  # it may have stood still before
        problem = ended.problem
        for trial_id, data in ended.entries:
            if worker.refused:  # one of those before was wrong
                break
            try:
                entry = unpack_entry(data, trial_id, self._environment)
            except DamagedEntryError as error:
                problem = problem or f"what it sent of trial {trial_id} is damaged: {error}"
                continue
            if trial_id in batch.trials:
                self._receive(batch.worker, entry)
                del batch.trials[trial_id]
        if not problem and batch.trials:
            problem = f"it sent nothing of {format_count(len(batch.trials), 'trial')}"
        worker.failures = worker.failures + 1 if problem else 0
        if problem:
            first = next(iter(batch.trials), "")
            self._failed[first] += bool(first)
            if first and self._failed[first] >= TRIES and first not in self._trust.done:
                self._given_up[first] = problem
                del batch.trials[first]
            _log.warning("worker %s: %s", batch.worker, problem.splitlines()[0])
        if not batch.expired:
            self._wait_again(batch)
        if worker.failures >= TRIES:
            self._refuse(batch.worker, problem)

    def _receive(self, name: str, entry: TrialEntry) -> None:
        """Take what a worker says of a trial: the first word, or another to compare."""
        record = replace(entry.record, trial=self._trials[entry.record.trial_id])
        if record.outcome not in REPEATABLE and entry.cost is not None:
            self._queue.learn(record.trial, entry.cost.wall_s)
        self._given_up.pop(record.trial_id, None)
        self._trust.receive(name, replace(entry, record=record))
        self._refuse_all()

    def _give(self, results: ResultsFolder) -> Generator[Record, None, None]:
        """Yield what counts, with its files in place."""
        counted, self._trust.counted = self._trust.counted, []
        for entry in counted:
            trial_id = entry.record.trial_id
            attempt = results.attempts(trial_id) + 1
            entry.write_files(results.fresh_trial(trial_id))
            yield replace(entry.record, attempt=attempt, cost=entry.cost)
