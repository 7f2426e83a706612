"""Progress of a run on standard error: a live bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from testbed.base.heartbeat import WRITE_EVERY_S, Write
from testbed.base.units import format_count, format_duration
from testbed.experiment.label import label, varying
from testbed.kinds import KINDS
from testbed.model import Record, Trial

_MOST_CELLS = 4
Clock = Callable[[], float]
Draw = Callable[[Sequence[Record]], str]
"""From the records so far to the lines of their table."""


class Display:
    """Display of what a run does; this one, where nobody looks, shows nothing."""

    @contextmanager
    def showing(self, todo: Sequence[Trial], done: Sequence[Record]) -> Iterator[None]:
        """Show progress over ``todo`` for the time of the block; ``done`` need not run again."""
        yield

    def began(self, trial: Trial) -> None:
        """Show that a trial begins."""

    def waited(self) -> None:
        """Take note that time has passed; called several times a second while trials run."""

    def ended(self, record: Record) -> None:
        """Show how a trial ended; its record is on disk."""


class Pace:
    """Pace of a run: how far it is, and how long the rest takes at the pace so far.

    Trials are counted, and not attempts: one that is taken again counts once.
    """

    def __init__(self, todo: Sequence[Trial], clock: Clock = time.monotonic) -> None:
        self.total = len(todo)
        self._ended: set[str] = set()
        self._names = varying([trial.condition for trial in todo])
        self._left = Counter(trial.seed for trial in todo if not trial.warm_up)
        self._seeds = len(self._left)
        self._clock, self._start = clock, clock()
        self._running: dict[str, str] = {}

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    @property
    def done(self) -> int:
        """How many trials have ended at least once."""
        return len(self._ended)

    def remaining_s(self) -> float | None:
        """Return the seconds until the end; None before the first trial has ended."""
        if not self.done:
            return None
        return self.elapsed_s / self.done * (self.total - self.done)

    def begin(self, trial: Trial) -> None:
        """Count ``trial`` among those that run."""
        self._running[trial.id] = label(trial, self._names, self._seeds > 1)

    def seeds(self) -> str:
        """Return ``2 of 5 seeds``: those of which every cell has ended; empty of a single one."""
        if self._seeds < 2:
            return ""
        return f"{self._seeds - len(+self._left)} of {self._seeds} seeds"

    def running(self) -> str:
        """Return the cells that run now, the first of many."""
        cells = list(self._running.values())
        more = [f"and {len(cells) - _MOST_CELLS} more"] if len(cells) > _MOST_CELLS else []
        return "; ".join([*cells[:_MOST_CELLS], *more])

    def end(self, record: Record) -> bool:
        """Count ``record``; return whether every cell now has the load of its seed."""
        self._running.pop(record.trial_id, None)
        if record.trial_id in self._ended or record.trial.warm_up:
            self._ended.add(record.trial_id)
            return False
        self._ended.add(record.trial_id)
        self._left[record.trial.seed] -= 1
        return not self._left[record.trial.seed]

    def describe(self, record: Record) -> str:
        """Put ``record`` into one line."""
        words = [record.outcome.ljust(8), label(record.trial, self._names, self._seeds > 1)]
        if record.attempt > 1:
            words.append(f"attempt {record.attempt}")
        if record.measured is not None:
            words += filter(None, [KINDS[record.trial.kind].words(record.measured)])
        if record.cost is not None:
            words.append(f"in {format_duration(record.cost.wall_s)}")
        if record.reason:
            words.append(f"- {record.reason.splitlines()[0]}")
        return "  ".join(words)

    def eta(self) -> str:
        """Return ``ETA 1 min 05 s``, or nothing when it is not known or over."""
        left = self.remaining_s()
        return f"ETA {format_duration(left)}" if left is not None and self.done < self.total else ""


class ProgressLines(Display):
    """One line for each trial that ends, and one where none has ended for long."""

    def __init__(self, write: Write, clock: Clock = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._pace = Pace((), clock)
        self._next_s = 0.0

    @contextmanager
    def showing(self, todo: Sequence[Trial], done: Sequence[Record]) -> Iterator[None]:
        """Say what is to be done, then a line for each end."""
        self._pace = Pace(todo, self._clock)
        self._write(_opening(len(todo), len(done)))
        self._next_s = 0.0
        yield

    def began(self, trial: Trial) -> None:
        """Remember it for the next line."""
        self._pace.begin(trial)

    def waited(self) -> None:
        """Say what runs, at first and whenever nothing was said for ``WRITE_EVERY_S``."""
        elapsed_s = self._pace.elapsed_s
        if elapsed_s >= self._next_s:
            so_far = format_duration(elapsed_s)
            self._write_line(f"running    {self._pace.running()}  {so_far} so far")

    def ended(self, record: Record) -> None:
        """Write the line of ``record``, numbered, with the time to go; then of a seed that ends."""
        whole = self._pace.end(record)
        if record.outcome == "ok" and record.cost is None:
            return  # it did not run here, and whoever knows where it is from says so
        self._write_line(self._pace.describe(record))
        if whole and self._pace.seeds():
            self._write(f"{self._pace.seeds()} done")

    def _write_line(self, line: str) -> None:
        width = len(str(self._pace.total))
        counted = f"[{self._pace.done:>{width}}/{self._pace.total}] {line}"
        self._write("  ".join(part for part in (counted, self._pace.eta()) if part))
        self._next_s = self._pace.elapsed_s + WRITE_EVERY_S


class ProgressBar(Display):
    """A bar, what runs, and for how long, and below it the table of the seeds that are done.

    Lines of trials that did not end ``ok`` stay above.
    """

    def __init__(self, draw: Draw) -> None:
        # Imported here: a run without a terminal does not pay for it.
        from rich.console import Console
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.table import Column

        self._bar = Progress(
            BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[seeds]}"), TextColumn("{task.fields[eta]}"),
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        )  # fmt: skip
        self._live = Live(self._bar, console=Console(stderr=True), transient=True)
        self._draw, self._records = draw, list[Record]()
        self._pace = Pace(())
        self._task = self._bar.add_task("", eta="", seeds="", visible=False)

    @contextmanager
    def showing(self, todo: Sequence[Trial], done: Sequence[Record]) -> Iterator[None]:
        """Show the bar for the time of the block; it leaves nothing behind."""
        self._pace, self._records = Pace(todo), list(done)
        self._print(_opening(len(todo), len(done)))
        self._bar.reset(self._task, total=len(todo), visible=True, eta="", seeds=self._pace.seeds())
        with self._live:
            yield

    def began(self, trial: Trial) -> None:
        """Show it among what runs."""
        self._pace.begin(trial)
        self._bar.update(self._task, description=self._pace.running())

    def ended(self, record: Record) -> None:
        """Move the bar; a trial that did not end well leaves its line, a seed moves the table."""
        whole = self._pace.end(record)
        self._records.append(record)
        if record.outcome != "ok":
            self._print(self._pace.describe(record))
        self._bar.update(self._task, completed=self._pace.done, eta=self._pace.eta(),
                         seeds=self._pace.seeds(), description=self._pace.running())  # fmt: skip
        if whole and self._pace.seeds() and self._pace.done < self._pace.total:
            self._show_table()

    def _show_table(self) -> None:
        from rich.console import Group
        from rich.text import Text

        table = Text(self._draw(self._records), no_wrap=True, overflow="crop")
        self._live.update(Group(self._bar, table), refresh=True)

    def _print(self, line: str) -> None:
        self._live.console.print(line, markup=False, highlight=False)


def open_display(draw: Draw) -> Display:
    """Return a bar on a terminal, with the table that ``draw`` gives; plain lines elsewhere."""
    return ProgressBar(draw) if sys.stderr.isatty() else ProgressLines(_write_line)


def _write_line(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _opening(count: int, skipped: int) -> str:
    trials = f"{format_count(count, 'trial')} to run"
    return f"{trials}, {skipped} already done" if skipped else trials
