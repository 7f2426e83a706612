from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from testbed.base import log
from testbed.model import Cost, Record, Trial
from testbed.results.progress import Display, ProgressBar, ProgressLines, open_display


class Terminal(io.StringIO):
    """A terminal that keeps what it was sent."""

    def isatty(self) -> bool:
        return True


def record(trial: Trial, reason: str | None = None) -> Record:
    outcome = "failed" if reason else "ok"
    cost = Cost(1.0, 2.0, 30.0)
    return Record(trial.id, trial, outcome, "e", reason, cost=cost)  # type: ignore[arg-type]


def no_table(_: Sequence[Record]) -> str:
    raise AssertionError("one seed is shown by the table at the end")


def test_plain_lines_count_and_estimate(trials: tuple[Trial, ...]) -> None:
    now = 0.0
    lines: list[str] = []
    display = ProgressLines(lines.append, lambda: now)
    with display.showing(trials[:3], done=[record(trial) for trial in trials[3:]]):
        now = 10.0
        display.ended(record(trials[0]))
        display.ended(record(trials[1], "first line\nsecond line"))
        display.ended(record(trials[2]))
    assert lines == [
        "3 trials to run, 5 already done",
        "[1/3] ok        page=amazon rtt_ms=20 tfo=false  in 2.0 s  ETA 20.0 s",
        "[2/3] failed    page=amazon rtt_ms=20 tfo=true  in 2.0 s  - first line  ETA 5.0 s",
        "[3/3] ok        page=amazon rtt_ms=100 tfo=false  in 2.0 s",
    ]


def test_what_runs_is_said_at_first_and_when_nothing_else_is(trials: tuple[Trial, ...]) -> None:
    now = 0.0
    lines: list[str] = []
    display = ProgressLines(lines.append, lambda: now)
    with display.showing(trials, done=[]):
        display.began(trials[0])
        display.began(trials[1])
        for later in (0.2, 0.4, 15.1, 15.3, 20.0):
            now = later
            display.waited()
        display.ended(record(trials[0]))
        for later in (34.9, 35.0):
            now = later
            display.waited()
        for trial in trials[2:]:
            display.began(trial)
        now = 50.0
        display.waited()
    first, second = "page=amazon rtt_ms=20 tfo=false", "page=amazon rtt_ms=20 tfo=true"
    total = len(trials)
    assert lines[1:-1] == [
        f"[0/{total}] running    {first}; {second}  0.2 s so far",
        f"[0/{total}] running    {first}; {second}  15.3 s so far",
        f"[1/{total}] ok        {first}  in 2.0 s  ETA 2 min 20 s",
        f"[1/{total}] running    {second}  35.0 s so far  ETA 4 min 05 s",
    ]
    assert f"; and {total - 5} more  50.0 s so far" in lines[-1]


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a wide terminal."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_a_terminal_shows_the_time_and_what_runs(
    trials: tuple[Trial, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal(monkeypatch)
    display = open_display(no_table)
    with display.showing(trials, done=[]):
        display.began(trials[3])
        display.began(trials[4])
    shown = terminal.getvalue()
    assert "0:00:0" in shown
    assert "page=amazon rtt_ms=100 tfo=true; page=wsj rtt_ms=20 tfo=false" in shown


def seeds_of(trials: tuple[Trial, ...], count: int) -> list[Trial]:
    return [replace(trial, seed=seed) for seed in range(count) for trial in trials[:2]]


def test_lines_say_how_many_seeds_are_done(trials: tuple[Trial, ...]) -> None:
    lines: list[str] = []
    display = ProgressLines(lines.append)
    first, second, third, fourth = seeds_of(trials, 2)
    with display.showing([first, second, third, fourth], done=[]):
        for trial in (first, third, second, second, fourth):
            display.ended(record(trial))
    assert [(place, line) for place, line in enumerate(lines) if line.endswith("done")] == [
        (4, "1 of 2 seeds done"),
        (7, "2 of 2 seeds done"),
    ]


def test_a_terminal_shows_the_table_as_it_settles(
    trials: tuple[Trial, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal(monkeypatch)
    asked: list[list[str]] = []

    def draw(records: Sequence[Record]) -> str:
        asked.append([one.trial_id for one in records])
        return f"a table [of] {len(records)} loads"

    before, *todo = seeds_of(trials, 2)
    display = ProgressBar(draw)
    with display.showing(todo, done=[record(before)]):
        for trial in todo:
            display.ended(record(trial))
    assert asked == [[before.id, todo[0].id]]
    shown = terminal.getvalue()
    assert "1 of 2 seeds" in shown
    assert "a table [of] 2 loads" in shown


def test_what_is_taken_again_counts_once(trials: tuple[Trial, ...]) -> None:
    lines: list[str] = []
    display = ProgressLines(lines.append)
    with display.showing(trials[:2], done=[]):
        display.ended(record(trials[0], "the machine was busy"))
        display.ended(replace(record(trials[0]), attempt=2))
        display.ended(record(trials[1]))
    assert [line.split()[0] for line in lines[1:]] == ["[1/2]", "[1/2]", "[2/2]"]
    assert ["attempt 2" in line for line in lines[1:]] == [False, True, False]
    assert "ETA" not in lines[-1]


def test_the_display_fits_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(open_display(no_table), ProgressLines)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(open_display(no_table), ProgressBar)


def test_a_terminal_keeps_the_lines_of_bad_trials_only(
    trials: tuple[Trial, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    display: Display = ProgressBar(no_table)
    with display.showing(trials[:2], done=[]):
        display.ended(record(trials[0]))
        display.ended(record(trials[1], "[no] such thing"))
    kept = stream.getvalue().splitlines()
    assert kept[0] == "2 trials to run"
    assert "failed" in kept[1]
    assert "[no] such thing" in stream.getvalue()
    assert not [line for line in kept if line.startswith("ok")]


def test_messages_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure()
    logger = log.logger("testbed.anything")
    logger.debug("hidden")
    logger.info("a fact")
    logger.warning("a doubt")
    logger.error("a fault")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "a fact\nwarning: a doubt\nerror: a fault\n")
    log.configure(verbose=True)
    logger.debug("shown")
    assert capsys.readouterr().err == "debug: shown\n"
