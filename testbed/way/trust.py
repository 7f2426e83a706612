"""Trust in workers of a cluster: what they sent, held against others and against this machine.

Nothing of a worker counts before one of its trials ran again, on a worker that is trusted or on
this machine, and was equal to the bit.  After that a share of its trials runs again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from testbed.base import log
from testbed.model import Record, Trial
from testbed.results.agreement import REPEATABLE, DisagreementError, find_difference
from testbed.results.entry import TrialEntry, digest_record

_log = log.logger(__name__)

Arbiter = Callable[[Trial], Record | None]
"""Runs a trial on this machine; ``None``: the run was stopped meanwhile."""
TRIES = 3
"""How many trials may fail on a worker alone, or batches in a row, before it is refused."""


@dataclass(slots=True)
class _Standing:
    """Standing of one worker: what of it is held back, and how many of its trials are owed."""

    trusted: bool = False
    held: list[TrialEntry] = field(default_factory=list)
    owed: float = 1.0
    failed: int = 0


class WorkerTrust:
    """What the workers of a run have sent, and who of them is believed.

    Attributes:
        done: the trials that have a result, by id: who sent it first, and its digest.
        counted: entries that count, for the caller to take.
        refused: workers that are not to get anything any more, and why.
    """

    def __init__(self, trials: Mapping[str, Trial], overlap: float, arbiter: Arbiter) -> None:
        """Have ``overlap``, a share, of what each worker does of ``trials`` run again."""
        self._trials, self._overlap, self._arbiter = trials, overlap, arbiter
        self._standing: dict[str, _Standing] = defaultdict(_Standing)
        self._again: list[tuple[str, str]] = []
        """Trials to run again, and the worker that has run them."""
        self._first: dict[str, Record] = {}
        """Records of trials that run again, for whoever compares."""
        self._failed: dict[str, str] = {}
        """Trials that failed on a worker, and have no result yet."""
        self._elsewhere: list[str] = []
        """Those of them that wait for another worker."""
        self.done: dict[str, tuple[str, str]] = {}
        self.counted: list[TrialEntry] = []
        self.refused: dict[str, str] = {}

    @property
    def settled(self) -> bool:
        """Whether nothing waits to run again, and nothing is held back."""
        held = any(standing.held for standing in self._standing.values())
        return not (self._again or self.counted or held)

    def receive(self, name: str, entry: TrialEntry) -> None:
        """Take what a worker says of a trial: the first word, or another to compare.

        Raises:
            DisagreementError: a worker that was trusted is wrong, or nobody can tell who is.
        """
        trial_id, record = entry.record.trial_id, entry.record
        if trial_id not in self.done:
            self._hear_first(name, entry)
            return
        (by, known), first = self.done[trial_id], self._first.pop(trial_id, None)
        if record.outcome in REPEATABLE or (first is not None and first.outcome in REPEATABLE):
            self._believe(by)
        elif known == entry.digest:
            self._believe(by)
            self._believe(name)
        else:
            self._judge(trial_id, {by: known, name: entry.digest})

    def runs_again(self, trial_id: str) -> bool:
        """Return whether a trial that is done runs again, and its result is awaited."""
        return trial_id in self._first

    def put_back(self, trial_id: str) -> None:
        """Let a trial that was to run again wait for another worker."""
        self._again.append((trial_id, self.done[trial_id][0]))

    def take(self, name: str, workers: Sequence[str]) -> Trial | None:
        """Return a trial of another worker for ``name``, who is one of ``workers``, to run again.

        One that failed goes to the same worker only where there is no other.  Of the others, one
        of the two workers is trusted.
        """
        for place, trial_id in enumerate(self._elsewhere):
            if self._failed.get(trial_id) != name or len(workers) == 1:
                del self._elsewhere[place]
                return self._trials[trial_id]
        for place, (trial_id, by) in enumerate(self._again):
            if by != name and (self._is_trusted(by) or self._is_trusted(name)):
                del self._again[place]
                return self._trials[trial_id]
        return None

    def compare_here(self, workers: Sequence[str], *, more_join: bool) -> None:
        """Run here again what no other of ``workers`` can: none is trusted, or there is one alone.

        Raises:
            DisagreementError: as ``receive``.
        """
        count = len(self._again) if len(workers) == 1 and not more_join else 0
        if not any(map(self._is_trusted, workers)):
            count = max(count, 1)
        again, self._again = self._again[:count], self._again[count:]
        for trial_id, by in again:
            theirs = self._first.pop(trial_id, None)
            ours = self._arbiter(self._trials[trial_id])
            if ours is None or theirs is None:
                continue
            if ours.outcome in REPEATABLE:
                _log.warning(
                    "trial %s could not be run here (%s): worker %s is believed for its word",
                    *(trial_id, ours.reason, by),
                )
                self._believe(by)
            elif difference := find_difference(ours, theirs):
                self._convict(by, trial_id, difference)
            else:
                self._believe(by)

    def is_doubtful(self, name: str) -> bool:
        """Return whether so much has failed on a worker that it gets nothing but others' trials."""
        return sum(by == name for by in self._failed.values()) >= TRIES

    def forget(self, name: str) -> list[Trial]:
        """Return the trials of a worker, gone or refused, that have not counted and run again."""
        if self._is_trusted(name):
            return []
        held = self._standing.pop(name, _Standing()).held
        back = {entry.record.trial_id for entry in held}
        for trial_id in back:
            self.done.pop(trial_id, None)
            self._first.pop(trial_id, None)
        self._again = [each for each in self._again if each[0] not in back]
        return [self._trials[trial_id] for trial_id in back]

    def _is_trusted(self, name: str) -> bool:
        return name in self._standing and self._standing[name].trusted

    def _hear_first(self, name: str, entry: TrialEntry) -> None:
        """Take the first word on a trial; a failure counts where two workers have it.

        If one of them is not trusted, this machine has to have it, too.
        """
        trial_id, failed = entry.record.trial_id, entry.record.outcome in REPEATABLE
        by = self._failed.pop(trial_id, None)
        sure = by is not None and self._is_trusted(by) and self._is_trusted(name)
        if failed and not sure and (by is None or self._succeeds_here(trial_id)):
            self._failed[trial_id] = name
            self._elsewhere.append(trial_id)
        if by is not None and not (failed and trial_id not in self._failed):
            for each in {by, name} if failed else {by} - {name}:
                self._blame(each, trial_id)
        if trial_id in self._failed:
            return
        self.done[trial_id] = (name, entry.digest)
        self._hold(name, entry)

    def _succeeds_here(self, trial_id: str) -> bool:
        ours = self._arbiter(self._trials[trial_id])
        return ours is not None and ours.outcome not in REPEATABLE

    def _blame(self, name: str, trial_id: str) -> None:
        """Take note that a trial failed on a worker, and not elsewhere."""
        self._standing[name].failed += 1
        if self._standing[name].failed >= TRIES:
            self.refused[name] = f"trial {trial_id} and others failed there, and not elsewhere"

    def _hold(self, name: str, entry: TrialEntry) -> None:
        """Keep what a worker sent until it is trusted, and choose what runs again."""
        standing = self._standing[name]
        standing.trusted = standing.trusted or not self._overlap
        standing.owed += self._overlap
        if self._overlap and standing.owed >= 1.0:
            standing.owed -= 1.0
            self._first[entry.record.trial_id] = entry.record
            place = len(self._again) if standing.trusted else 0
            self._again.insert(place, (entry.record.trial_id, name))
        (self.counted if standing.trusted else standing.held).append(entry)

    def _believe(self, name: str) -> None:
        if name in self._standing and name not in self.refused:
            standing = self._standing[name]
            standing.trusted = True
            self.counted += standing.held
            standing.held = []

    def _judge(self, trial_id: str, said: Mapping[str, str]) -> None:
        """Run a trial here on which two workers differ."""
        ours = self._arbiter(self._trials[trial_id])
        if ours is None:
            return
        if ours.outcome in REPEATABLE:
            raise DisagreementError(
                f"trial {trial_id} is not equal on the workers {' and '.join(said)}, and could "
                "not be run here: nobody knows which of them is right"
            )
        right = digest_record(ours)
        for name, digest in said.items():
            if digest == right:
                self._believe(name)
            else:
                self._convict(name, trial_id, "it is another than here")

    def _convict(self, name: str, trial_id: str, difference: str) -> None:
        """Refuse a worker that sent a wrong result; if more of it has counted, end the run.

        Raises:
            DisagreementError: it was trusted.
        """
        if self._is_trusted(name):
            raise DisagreementError(
                f"worker {name} sent another result of trial {trial_id} than this machine has: "
                f"{difference}; others of it were kept already: start anew without that worker"
            )
        self.refused[name] = f"its result of trial {trial_id} is not this machine's: {difference}"
