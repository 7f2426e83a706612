"""Trials on this machine: as many at once as it has cores, or one at a time in real time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

from testbed.base import log
from testbed.base.checksums import damaged_since, read_stamps
from testbed.base.errors import NO_ROOM, MissingError, StorageError, TestbedError
from testbed.kernel.run.interface import InterruptedTrial, Kernel, RawResult
from testbed.model import OBSERVATION_FILE, Record, Trial, in_real_time
from testbed.model.trace import Trace
from testbed.results.environment import Environment
from testbed.results.folder import ResultsFolder
from testbed.results.progress import Display
from testbed.results.records import as_read

_log = log.logger(__name__)
Perform = Callable[[Sequence[Trial], ResultsFolder, Event, Display], Generator[Record, None, None]]
"""From trials to the record of each as it ends, with its files in the results folder.

What is shown learns what begins; when the event is set no trial begins, and those that run are
stopped and have no record."""
Conclude = Callable[[Trial, RawResult, Path, str, int], Record]
# A signal that comes just before the main thread blocks would not wake it: it must look up.
_POLL_S = 0.2
ATTEMPTS = 3
"""How often a trial may run in real time until its link and machine were as asked."""
_PROBE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Setup of a run: a kernel, built pages by name, the judge, and how many at once.

    ``built`` are the folders with checksums that every trial uses, beside its page; ``traces`` are
    those of its links, by name.
    """

    kernel: Kernel
    pages: Mapping[str, Path]
    conclude: Conclude
    jobs: int
    built: tuple[Path, ...] = ()
    traces: Mapping[str, Trace] = field(default_factory=dict)

    def page_of(self, trial: Trial) -> Path | None:
        """Return the folder of the page that ``trial`` loads; ``None`` if it loads none."""
        return None if trial.page is None else self.pages[trial.page]

    def used_by(self, trial: Trial) -> tuple[Path, ...]:
        """Return the folders with checksums that ``trial`` uses."""
        page = self.page_of(trial)
        return self.built if page is None else (*self.built, page)


def on_this_machine(
    setup: RunSetup,
    environment: Environment,
    repeatable: Callable[[Record], bool] = lambda record: True,
) -> Perform:
    """Return what performs trials here, ``setup.jobs`` at once.

    In real time a trial that the machine disturbed is taken again if it is ``repeatable``.
    """
    again = disturbed(ATTEMPTS if in_real_time(setup.kernel.name) else 1, repeatable)

    def here(
        trials: Sequence[Trial], results: ResultsFolder, stop: Event, display: Display
    ) -> Generator[Record, None, None]:
        attempt = _attempt(results, setup, environment, stop)
        return perform(trials, attempt, setup.jobs, stop, again, display)

    return here


def perform(
    trials: Sequence[Trial], attempt: Callable[[Trial, int], Record], jobs: int, stop: Event,
    again: Callable[[Record], bool], display: Display,
) -> Generator[Record, None, None]:  # fmt: skip
    """Yield the record of each trial as it ends, ``jobs`` at a time, each on a slot of its own.

    ``display`` shows what begins, and that time passes.  A trial whose record calls for it runs
    ``again``, before those that wait.  When ``stop`` is set no trial begins; those that run are
    stopped and have no record.
    """
    waiting, free = deque(trials), list(reversed(range(jobs)))
    running: dict[Future[Record], int] = {}
    with ThreadPoolExecutor(jobs, thread_name_prefix="trial") as workers:
        try:
            while running or (waiting and not stop.is_set()):
                while waiting and free and not stop.is_set():
                    slot, trial = free.pop(), waiting.popleft()
                    display.began(trial)
                    running[workers.submit(attempt, trial, slot)] = slot
                ended = wait(running, _POLL_S, FIRST_COMPLETED).done
                if not ended:
                    display.waited()
                for future in ended:
                    free.append(running.pop(future))
                    if not isinstance(future.exception(), InterruptedTrial):
                        record = future.result()
                        yield record  # it is stored before the next attempt asks for its number
                        if not stop.is_set() and again(record):
                            waiting.appendleft(record.trial)
        except BaseException:
            stop.set()  # an error or an early end of the caller: do not wait for whole trials
            raise


def disturbed(attempts: int, repeatable: Callable[[Record], bool]) -> Callable[[Record], bool]:
    """Return a rule: take a trial again, ``attempts`` times at most, that the machine disturbed.

    It counts what it is asked about.  Nothing else is taken again: a failure is a result, and
    a warm-up has done what it is for; nor is what is not ``repeatable``.
    """
    had: Counter[str] = Counter()

    def again(record: Record) -> bool:
        had[record.trial_id] += 1
        mismatch = record.outcome == "lab_mismatch" and not record.trial.warm_up
        wanted = mismatch and had[record.trial_id] < attempts and repeatable(record)
        if wanted:
            _log.info("taking trial %s again: %s", record.trial_id, record.reason)
        return wanted

    return again


def check_room(out: Path) -> None:
    """Check that files can still be written in ``out`` after a trial.

    A guest writes its files there through its page cache and never learns that they do not fit:
    they are short, whatever the trial says of itself.

    Raises:
        OSError: they cannot; the disk is full, or the user's share of it.
    """
    probe = out / ".room"
    try:
        probe.write_bytes(bytes(_PROBE_BYTES))
    finally:
        probe.unlink(missing_ok=True)


def _attempt(
    results: ResultsFolder, setup: RunSetup, environment: Environment, stop: Event
) -> Callable[[Trial, int], Record]:
    folders = (*setup.built, *setup.pages.values())
    stamps = {folder: read_stamps(folder) for folder in folders}

    def attempt(trial: Trial, slot: int) -> Record:
        number = results.attempts(trial.id) + 1
        out = results.fresh_trial(trial.id)
        page = setup.page_of(trial)
        try:
            raw = setup.kernel.run(trial, page, out, slot, stop)
            if stop.is_set() and raw.status != "ended":
                raise InterruptedTrial(f"trial {trial.id} was interrupted")
            check_room(out)
        except InterruptedTrial:
            results.discard_trial(trial.id)
            raise
        except (MissingError, StorageError):
            raise
        except TestbedError as error:
            raw = RawResult("failed", str(error), "", None, None)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            results.discard_trial(trial.id)  # half of a trial is no use, and in the way
            raise StorageError(
                f"trial {trial.id}: cannot write to {out}: {error.strerror}; the records so far "
                f"are intact; free space, then go on with --resume {results.directory}"
            ) from error
        for folder in setup.used_by(trial):
            damaged = damaged_since(folder, stamps[folder])
            if damaged:
                raw = RawResult("failed", _changed(folder, damaged), "", raw.cost, None)
        if raw.observation is None:  # what a trial said that is not judged is none of its results
            (out / OBSERVATION_FILE).unlink(missing_ok=True)
        archive = environment.pages.get(trial.page or "")
        raw = replace(raw, archive=archive, traces=setup.traces, built=page)
        return as_read(setup.conclude(trial, raw, out, environment.id, number))

    return attempt


def _changed(folder: Path, damaged: tuple[str, ...]) -> str:
    return (
        f"{folder}: {', '.join(damaged[:3])} changed while trials used it; "
        "start anew or resume, which builds it again"
    )
