"""An experiment from its plan to its records: the whole way in one function."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from testbed.errors import MissingError, StorageError, TestbedError
from testbed.interrupt import interruptible
from testbed.kernel.protocol import InterruptedTrial, Kernel, RawResult
from testbed.manifest import Manifest
from testbed.model import Record, Trial
from testbed.plan import plan_trials
from testbed.progress import Display
from testbed.store import Store, open_store
from testbed.tally import Tally, tally

Conclude = Callable[[Trial, RawResult, Path, str, int], Record]
# A signal that comes just before the main thread blocks would not wake it: it must look up.
_POLL_S = 0.2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Means:
    """With what trials are run: a kernel, built pages by name, the judge, and how many at once."""

    kernel: Kernel
    pages: Mapping[str, Path]
    conclude: Conclude
    jobs: int


def run_experiment(
    results: Path, manifest: Manifest, means: Means, display: Display, *, resume: bool = False
) -> Tally:
    """Run what ``manifest`` plans and keep each record in ``results`` as its trial ends.

    With ``resume`` the folder has records already; trials with an ``ok`` record are skipped.

    Raises:
        StorageError: results cannot be written; the records so far are intact.
        MissingError: this machine cannot run the kernel.
    """
    trials = plan_trials(manifest.experiment)
    with (
        open_store(results, None if resume else manifest) as store,
        interruptible() as interruption,
    ):
        done = store.done()
        todo = [trial for trial in trials if trial.id not in done]
        attempt = _attempt(store, means, manifest.environment.id, interruption.stop)
        with (
            display.showing(todo, skipped=len(trials) - len(todo)),
            closing(perform(todo, attempt, means.jobs, interruption.stop)) as records,
        ):
            for record in records:
                store.append(record)
                display.ended(record)
        return tally(trials, store.records, interrupted=interruption.signal is not None)


def perform(
    trials: Sequence[Trial], attempt: Callable[[Trial, int], Record], jobs: int, stop: Event
) -> Generator[Record, None, None]:
    """Yield the record of each trial as it ends, ``jobs`` at a time, each on a slot of its own.

    When ``stop`` is set no trial begins; those that run are stopped and have no record.
    """
    waiting, free = deque(trials), list(reversed(range(jobs)))
    running: dict[Future[Record], int] = {}
    with ThreadPoolExecutor(jobs, thread_name_prefix="trial") as workers:
        try:
            while running or (waiting and not stop.is_set()):
                while waiting and free and not stop.is_set():
                    slot = free.pop()
                    running[workers.submit(attempt, waiting.popleft(), slot)] = slot
                for future in wait(running, _POLL_S, FIRST_COMPLETED).done:
                    free.append(running.pop(future))
                    if not isinstance(future.exception(), InterruptedTrial):
                        yield future.result()
        finally:
            stop.set()  # an error or an early end of the caller: do not wait for whole trials


def _attempt(
    store: Store, means: Means, environment: str, stop: Event
) -> Callable[[Trial, int], Record]:
    def attempt(trial: Trial, slot: int) -> Record:
        number = store.attempts(trial.id) + 1
        out = store.fresh_trial(trial.id)
        page = means.pages[trial.condition.page]
        try:
            raw = means.kernel.run(trial, page, out, slot, stop)
            if stop.is_set() and raw.status != "ended":
                raise InterruptedTrial(f"trial {trial.id} was interrupted")
        except InterruptedTrial:
            store.discard_trial(trial.id)
            raise
        except (MissingError, StorageError):
            raise
        except TestbedError as error:
            raw = RawResult("failed", str(error), "", None, None)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise StorageError(
                f"trial {trial.id}: cannot write to {out}: {error.strerror}; the records so far "
                f"are intact; free space, then go on with --resume {store.directory}"
            ) from error
        return means.conclude(trial, raw, out, environment, number)

    return attempt
