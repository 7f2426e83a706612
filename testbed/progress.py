"""What a run shows while it goes on, on standard error: live on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from testbed.label import label, varying
from testbed.model import Record, Trial
from testbed.units import format_duration

Clock = Callable[[], float]
Write = Callable[[str], None]


class Display(Protocol):
    """Something that is told what a run does."""

    @contextmanager
    def showing(self, todo: Sequence[Trial], skipped: int) -> Iterator[None]:
        """Show progress over ``todo`` for the time of the block."""
        ...

    def ended(self, record: Record) -> None:
        """A trial has ended and its record is on disk."""
        ...


class Pace:
    """How far a run is and how long the rest takes at the pace so far.

    Trials are counted, and not attempts: one that is taken again counts once.
    """

    def __init__(self, todo: Sequence[Trial], clock: Clock = time.monotonic) -> None:
        self.total = len(todo)
        self._ended: set[str] = set()
        self._names = varying([trial.condition for trial in todo])
        self._seeds = len({trial.seed for trial in todo}) > 1
        self._clock, self._start = clock, clock()

    @property
    def done(self) -> int:
        """How many trials have ended at least once."""
        return len(self._ended)

    def remaining_s(self) -> float | None:
        """Seconds until the end; None before the first trial has ended."""
        if not self.done:
            return None
        return (self._clock() - self._start) / self.done * (self.total - self.done)

    def end(self, record: Record) -> str:
        """Count ``record`` and put it into one line."""
        self._ended.add(record.trial_id)
        words = [record.outcome.ljust(8), label(record.trial, self._names, self._seeds)]
        if record.attempt > 1:
            words.append(f"attempt {record.attempt}")
        if record.load is not None:
            words.append(f"plt {record.load.plt_ms:.1f} ms")
        if record.cost is not None:
            words.append(f"in {format_duration(record.cost.wall_s)}")
        if record.reason:
            words.append(f"- {record.reason.splitlines()[0]}")
        return "  ".join(words)

    def eta(self) -> str:
        """``ETA 1 min 05 s``, or nothing when it is not known or over."""
        left = self.remaining_s()
        return f"ETA {format_duration(left)}" if left is not None and self.done < self.total else ""


class Lines:
    """One line for each trial that ends."""

    def __init__(self, write: Write, clock: Clock = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._pace = Pace((), clock)

    @contextmanager
    def showing(self, todo: Sequence[Trial], skipped: int) -> Iterator[None]:
        """Say what is to be done, then a line for each end."""
        self._pace = Pace(todo, self._clock)
        self._write(_opening(len(todo), skipped))
        yield

    def ended(self, record: Record) -> None:
        """Write the line of ``record``, numbered, with the time to go."""
        line = self._pace.end(record)
        width = len(str(self._pace.total))
        counted = f"[{self._pace.done:>{width}}/{self._pace.total}] {line}"
        self._write("  ".join(part for part in (counted, self._pace.eta()) if part))


class Live:
    """A bar that moves; above it stay the lines of the trials that did not end ``ok``."""

    def __init__(self) -> None:
        # Imported here: a run without a terminal does not pay for it.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[eta]}"),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._pace = Pace(())
        self._task = self._bar.add_task("", eta="", visible=False)

    @contextmanager
    def showing(self, todo: Sequence[Trial], skipped: int) -> Iterator[None]:
        """Show the bar for the time of the block; it leaves nothing behind."""
        self._pace = Pace(todo)
        self._bar.console.print(_opening(len(todo), skipped), markup=False, highlight=False)
        self._bar.update(self._task, total=len(todo), visible=True)
        with self._bar:
            yield

    def ended(self, record: Record) -> None:
        """Move the bar; a trial that did not end well leaves its line."""
        line = self._pace.end(record)
        if record.outcome != "ok":
            self._bar.console.print(line, markup=False, highlight=False)
        self._bar.update(
            self._task, completed=self._pace.done, eta=self._pace.eta(), description=line
        )


def open_display() -> Display:
    """Live on a terminal, plain lines in a file or a pipe."""
    return Live() if sys.stderr.isatty() else Lines(_write_line)


def _write_line(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _opening(count: int, skipped: int) -> str:
    trials = f"{count} trial{'' if count == 1 else 's'} to run"
    return f"{trials}, {skipped} already done" if skipped else trials
