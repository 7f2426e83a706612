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
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from threading import Event

from testbed.base import log
from testbed.base.errors import MissingError
from testbed.base.scratch import scratch_folder
from testbed.base.units import format_count
from testbed.model import Record, Trial
from testbed.results.agreement import REPEATABLE, DisagreementError, find_difference
from testbed.results.entry import DamagedEntryError, TrialEntry, digest_record, unpack_entry
from testbed.results.folder import ResultsFolder, fresh_folder
from testbed.results.manifest import Manifest
from testbed.results.progress import Display, Quiet
from testbed.way.batch import find_decisive, write_request
from testbed.way.local import Perform
from testbed.way.pool import BatchEnd, BatchNews, Pool
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
TRIES = 3
"""How many workers may fail at a trial, or trials in a row at a worker."""
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
    trusted: bool = False
    refused: str = ""
    failures: int = 0
    batches: set[int] = field(default_factory=set)
    held: list[TrialEntry] = field(default_factory=list)
    owed: float = 1.0
    """Trials of it that are to run again elsewhere."""


Arbiter = Callable[[Trial], Record | None]
"""Runs a trial on this machine; ``None``: the run was stopped meanwhile."""


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
        self._pool, self._manifest, self._arbiter = pool, manifest, arbiter
        self._decisive = find_decisive(manifest.experiment.conditions)
        self._environment = manifest.environment.id
        self._overlap = overlap_pct / 100
        self._trials = {trial.id: trial for trial in trials}
        self._queue = TrialQueue(trials)
        self._workers: dict[str, _Worker] = {}
        self._batches: dict[int, _Batch] = {}
        self._number = 0
        self._done: dict[str, tuple[str, str]] = {}
        """Who ended a trial first, and the digest of its result."""
        self._again: list[tuple[str, str]] = []
        """Trials to run again, and the worker that has run them."""
        self._entries: dict[str, Record] = {}
        """Records of trials that are to run again, for whoever compares."""
        self._failed: Counter[str] = Counter()
        self._given_up: dict[str, str] = {}
        self._ready: list[TrialEntry] = []
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
        settled = len(self._done) + len(self._given_up) == len(self._trials)
        if not settled or self._again or self._ready or self._rechecks():
            return False
        return not any(worker.held for worker in self._workers.values())

    def _rechecks(self) -> bool:
        """Return whether something runs again whose result is awaited."""
        return any(
            trial_id in self._done and not batch.expired
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
            self._forget_held(worker)
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

    def _refuse(self, name: str, why: str) -> None:
        worker, why = self._workers[name], "; ".join(why.split("\n"))
        worker.refused, worker.ready = why, False
        _log.warning("worker %s is refused: %s", name, why)
        for number in list(worker.batches):
            self._pool.cancel(number)
            self._take_back(number)
        self._forget_held(worker)

    def _forget_held(self, worker: _Worker) -> None:
        """Have what an untrusted worker did run again: none of it has counted."""
        back = [entry.record.trial_id for entry in worker.held]
        worker.held = []
        for trial_id in back:
            self._done.pop(trial_id, None)
            self._entries.pop(trial_id, None)
        self._again = [each for each in self._again if each[0] not in back]
        self._queue.put_back([self._trials[trial_id] for trial_id in back])

    # Batches

    def _hand_out(self) -> None:
        """Give every slot that is free a batch."""
        ready = {name: worker for name, worker in self._workers.items() if worker.ready}
        if not any(worker.trusted for worker in ready.values()):
            self._compare_here(1)
        elif len(ready) == 1 and not self._joining():
            self._compare_here(len(self._again))
        ready = {name: worker for name, worker in ready.items() if worker.ready}
        batch_s = self._batch_s(sum(worker.slots for worker in ready.values()))
        for name, worker in ready.items():
            for _ in range(AHEAD * worker.slots - len(worker.batches)):
                again = self._take_again(name)
                trials = again or self._queue.take(batch_s, self._done)
                if not trials:
                    break
                costs = [self._queue.cost_s(trial) or 0.0 for trial in trials]
                self._send(name, trials, max(LEASE_S, _LEASE_COSTS * max(costs)))

    def _batch_s(self, slots: int) -> float:
        """Return how long the next batch is to take: less at the end, where all end at once."""
        return min(BATCH_S, max(1.0, self._queue.left_s() / max(1, slots) / (AHEAD + 1)))

    def _joining(self) -> bool:
        return any(self._joins(worker) for worker in self._workers.values())

    def _compare_here(self, count: int) -> None:
        """Run here again what no other worker can: nobody is trusted yet, or there is one alone."""
        again, self._again = self._again[:count], self._again[count:]
        for trial_id, by in again:
            ours = self._arbiter(self._trials[trial_id])
            theirs = self._entries.pop(trial_id, None)
            if ours is None or theirs is None or ours.outcome in REPEATABLE:
                self._trust(by)
            elif difference := find_difference(ours, theirs):
                self._convict(by, trial_id, difference)
            else:
                self._trust(by)

    def _take_again(self, name: str) -> list[Trial]:
        """Return a trial of another worker to run again; one of the two is trusted."""
        for place, (trial_id, by) in enumerate(self._again):
            first = self._workers.get(by)
            trusted = first is None or first.trusted or self._workers[name].trusted
            if by != name and trusted:
                del self._again[place]
                return [self._trials[trial_id]]
        return []

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
            if trial_id not in self._done:
                waiting.append(trial)
            elif trial_id in self._entries:
                self._again.append((trial_id, self._done[trial_id][0]))
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
            if trial is not None and trial.id not in self._done:
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
            if first and self._failed[first] >= TRIES and first not in self._done:
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
        entry = replace(entry, record=record)
        if record.outcome not in REPEATABLE and entry.cost is not None:
            self._queue.learn(record.trial, entry.cost.wall_s)
        digest = entry.digest
        before = self._done.get(record.trial_id)
        if before is None:
            self._given_up.pop(record.trial_id, None)
            self._done[record.trial_id] = (name, digest)
            self._hold(name, entry)
            return
        first = self._entries.pop(record.trial_id, None)
        by, known = before
        if record.outcome in REPEATABLE or (first is not None and first.outcome in REPEATABLE):
            self._trust(by)
            return
        if known != digest:
            self._judge(record.trial_id, {by: known, name: digest})
            return
        self._trust(by)
        if name != by:
            self._trust(name)

    def _judge(self, trial_id: str, said: Mapping[str, str]) -> None:
        """Run a trial here on which two workers differ, and refuse who is wrong."""
        ours = self._arbiter(self._trials[trial_id])
        if ours is None or ours.outcome in REPEATABLE:
            raise DisagreementError(
                f"trial {trial_id} is not equal on the workers {' and '.join(said)}, and could "
                "not be run here: nobody knows which of them is right"
            )
        right = digest_record(ours)
        for name, digest in said.items():
            if digest == right:
                self._trust(name)
            else:
                self._convict(name, trial_id, "it is another than here")

    def _convict(self, name: str, trial_id: str, difference: str) -> None:
        """Refuse a worker that sent a wrong result; if more of it has counted, end the run.

        Raises:
            DisagreementError: it was trusted.
        """
        worker = self._workers.get(name)
        if worker is None or worker.trusted:
            raise DisagreementError(
                f"worker {name} sent another result of trial {trial_id} than this machine has: "
                f"{difference}; others of it were kept already: start anew without that worker"
            )
        self._refuse(name, f"its result of trial {trial_id} is not this machine's: {difference}")

    def _hold(self, name: str, entry: TrialEntry) -> None:
        """Keep what a worker sent until it is trusted, and choose what runs again."""
        worker = self._workers[name]
        if self._overlap:
            worker.owed += self._overlap
            if worker.owed >= 1.0:
                worker.owed -= 1.0
                self._entries[entry.record.trial_id] = entry.record
                self._again.append((entry.record.trial_id, name))
                if not worker.trusted:
                    self._again.insert(0, self._again.pop())
        else:
            worker.trusted = True
        (self._ready if worker.trusted else worker.held).append(entry)

    def _trust(self, name: str) -> None:
        worker = self._workers.get(name)
        if worker is not None and not worker.refused:
            worker.trusted = True
            self._ready += worker.held
            worker.held = []

    def _give(self, results: ResultsFolder) -> Generator[Record, None, None]:
        """Yield what counts, with its files in place."""
        ready, self._ready = self._ready, []
        for entry in ready:
            trial_id = entry.record.trial_id
            attempt = results.attempts(trial_id) + 1
            entry.write_files(results.fresh_trial(trial_id))
            yield replace(entry.record, attempt=attempt, cost=entry.cost)
