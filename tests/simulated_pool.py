"""A pool of workers in simulated time, with whatever faults a test gives them."""

from __future__ import annotations

import heapq
import json
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from testbed.base.errors import StorageError
from testbed.kernel.run.interface import RawResult
from testbed.model import OBSERVATION_FILE, Cost, PageLoad, Trial
from testbed.results.entry import pack_entry
from testbed.results.records import as_read
from testbed.way.pool import BatchEnd, BatchNews
from tests.fake_kernel import conclude, observe

NEVER = float("inf")
PROGRESS_S = 20.0
"""How often a trial that takes longer says that its clock goes on."""


@dataclass(slots=True)
class Worker:
    """A worker: from when to when it is there, and what is wrong with it.

    Attributes:
        hangs_s: when its clock stands, and for how long.
        breaks: whether every trial fails there, as without memory.
        fails: says why a trial cannot be run there, by its id; it ends the batch.
        alters: changes the bytes of an entry before they are sent.
    """

    joins_s: float = 0.0
    dies_s: float = NEVER
    hangs_s: tuple[float, float] = (NEVER, 0.0)
    speed: float = 1.0
    slots: int = 1
    setup_s: float = 1.0
    refusal: str = ""
    lies: bool = False
    breaks: bool = False
    twice: bool = False
    fails: Callable[[str], str] = lambda trial_id: ""
    alters: Callable[[bytes], bytes] = lambda data: data
    queue: deque[tuple[int, bytes]] = field(default_factory=deque)
    running: int = 0
    busy_s: float = 0.0


class SimulatedPool:
    """Workers by name, and a clock that goes from event to event."""

    def __init__(
        self,
        workers: Mapping[str, Worker],
        trials: Sequence[Trial],
        environment: str,
        cost_s: Callable[[Trial], float] = lambda trial: 1.0,
        gone_s: float = NEVER,
    ) -> None:
        self._workers, self._environment = dict(workers), environment
        self._trials = {trial.id: trial for trial in trials}
        self._cost_s, self._gone_s = cost_s, gone_s
        self._events: list[tuple[float, int, str, BatchNews | BatchEnd, bool]] = []
        self._made, self.time_s = 0, 0.0
        self.cancelled: set[int] = set()
        self.ran: list[tuple[str, str]] = []

    @property
    def address(self) -> str:
        return "simulated://pool"

    def now_s(self) -> float:
        return self.time_s

    def workers(self) -> Mapping[str, int]:
        self._require()
        there = self._workers.items()
        return {n: w.slots for n, w in there if w.joins_s <= self.time_s < w.dies_s}

    def submit(self, number: int, worker: str, request: bytes) -> None:
        self._require()
        self._workers[worker].queue.append((number, request))
        self._start(worker)

    def cancel(self, number: int) -> None:
        self.cancelled.add(number)

    def wait(self, seconds: float) -> Sequence[BatchNews | BatchEnd]:
        self._require()
        until = self.time_s + seconds
        while self._events and self._events[0][0] <= until:
            at, _, name, event, ends = heapq.heappop(self._events)
            self.time_s = max(self.time_s, at)
            worker = self._workers[name]
            if at >= worker.dies_s:
                continue
            if ends:
                worker.running -= 1
                self._start(name)
            if event.number not in self.cancelled:
                return [event]
        self.time_s = until
        return []

    def _require(self) -> None:
        if self.time_s >= self._gone_s:
            raise StorageError("the scheduler is gone; go on with --resume")

    def _start(self, name: str) -> None:
        worker = self._workers[name]
        while worker.queue and worker.running < worker.slots:
            number, request = worker.queue.popleft()
            if number in self.cancelled:
                continue
            worker.running += 1
            self._run(name, worker, number, json.loads(request)["manifest"]["trials"])

    def _run(self, name: str, worker: Worker, number: int, ids: Sequence[str]) -> None:
        at, entries, problem = self.time_s, [], worker.refusal
        if not ids:
            at += worker.setup_s
        for trial_id in ids:
            problem = worker.fails(trial_id)
            if problem:
                break
            self._push(at, name, BatchNews(number, {"kind": "began", "trial_id": trial_id}))
            took_s = self._cost_s(self._trials[trial_id]) / worker.speed
            for tick in range(1, int(took_s / PROGRESS_S)):
                self._push(at + tick * PROGRESS_S, name, BatchNews(number, {"kind": "progress"}))
            at += took_s
            worker.busy_s += took_s
            data = self._make_entry(self._trials[trial_id], worker, took_s)
            entries.append((trial_id, worker.alters(data)))
            self.ran.append((name, trial_id))
            self._push(at, name, BatchNews(number, {"kind": "entry", "trial_id": trial_id}))
        self._push(at, name, BatchEnd(number, entries, problem), ends=True)
        if worker.twice:
            self._push(at + 0.1, name, BatchEnd(number, entries, problem))

    def _push(
        self, at: float, name: str, event: BatchNews | BatchEnd, *, ends: bool = False
    ) -> None:
        stands_s, for_s = self._workers[name].hangs_s
        if at >= stands_s:
            at += for_s
        self._made += 1
        if at < NEVER:
            heapq.heappush(self._events, (at, self._made, name, event, ends))

    def _make_entry(self, trial: Trial, worker: Worker, took_s: float) -> bytes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            observation = folder / OBSERVATION_FILE
            seen: dict[str, Any] = observe(trial)
            observation.write_text(json.dumps(seen, sort_keys=True))
            (folder / "console.log").write_text("fake kernel 0, slot 0\n")
            cost = Cost(took_s, took_s, 30.0)
            raw = RawResult("ended", "", "", None, observation)
            if worker.breaks:
                raw = RawResult("failed", "no memory", "", None, None)
            record = as_read(conclude(trial, raw, folder, self._environment, 1))
            load = record.measured_as(PageLoad)
            if worker.lies and load is not None:
                record = replace(record, measured=replace(load, plt_ms=load.plt_ms * 1.01))
            return pack_entry(record, folder, cost)
