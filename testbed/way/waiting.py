"""Trials that wait for a worker, the longest first, by what their like took so far."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Container, Sequence

from testbed.model import Trial


class TrialQueue:
    """Trials that wait, in groups of equal cost; each is taken from where that is greatest."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._groups: dict[object, deque[Trial]] = defaultdict(deque)
        for trial in sorted(trials, key=lambda each: (each.seed, each.client or "")):
            self._groups[_like(trial)].append(trial)
        self._spent_s: dict[object, float] = defaultdict(float)
        self._ended: Counter[object] = Counter()

    def put_back(self, trials: Sequence[Trial]) -> None:
        """Let trials wait again, before all others of their like."""
        for trial in reversed(trials):
            self._groups[_like(trial)].appendleft(trial)

    def learn(self, trial: Trial, wall_s: float) -> None:
        """Take note of what a trial took."""
        self._spent_s[_like(trial)] += wall_s
        self._ended[_like(trial)] += 1

    def cost_s(self, trial: Trial) -> float | None:
        """Return what a trial will take, as its like did; ``None``: none has ended."""
        like = _like(trial)
        return self._spent_s[like] / self._ended[like] if self._ended[like] else None

    def left_s(self) -> float:
        """Return what all that waits will take on one worker."""
        return sum(
            len(group) * (self.cost_s(group[0]) or 1.0) for group in self._groups.values() if group
        )

    def take(self, seconds: float, done: Container[str]) -> list[Trial]:
        """Return the next trials, which take so long together; of an unknown kind a few.

        Those that are ``done``, by a worker that had been given up, wait no more.
        """
        groups = [group for group in self._groups.values() if group]
        if not groups:
            return []
        # What is not known may be the longest.
        group = max(groups, key=lambda each: self.cost_s(each[0]) or math.inf)
        cost_s = self.cost_s(group[0])
        most = 2 if cost_s is None else max(1, int(seconds / max(cost_s, 0.001)))
        taken: list[Trial] = []
        while group and len(taken) < most:
            trial = group.popleft()
            if trial.id not in done:
                taken.append(trial)
        return taken or self.take(seconds, done)


def _like(trial: Trial) -> object:
    """Return what makes trials cost alike."""
    return trial.kind, trial.page, trial.client, trial.visits
