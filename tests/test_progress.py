from __future__ import annotations

import io
import sys
from dataclasses import replace

import pytest

from testbed import log
from testbed.model import Cost, Record, Trial
from testbed.progress import Display, Lines, Live, open_display


def record(trial: Trial, reason: str | None = None) -> Record:
    outcome = "failed" if reason else "ok"
    cost = Cost(1.0, 2.0, 30.0)
    return Record(trial.id, trial, outcome, "e", reason, cost=cost)  # type: ignore[arg-type]


def test_plain_lines_count_and_estimate(trials: tuple[Trial, ...]) -> None:
    clock = iter([0.0, 0.0, 10.0, 10.0, 10.0])
    lines: list[str] = []
    display = Lines(lines.append, lambda: next(clock))
    with display.showing(trials[:3], skipped=5):
        display.ended(record(trials[0]))
        display.ended(record(trials[1], "first line\nsecond line"))
        display.ended(record(trials[2]))
    assert lines == [
        "3 trials to run, 5 already done",
        "[1/3] ok        page=amazon rtt_ms=20 tfo=false  in 2.0 s  ETA 20.0 s",
        "[2/3] failed    page=amazon rtt_ms=20 tfo=true  in 2.0 s  - first line  ETA 5.0 s",
        "[3/3] ok        page=amazon rtt_ms=100 tfo=false  in 2.0 s",
    ]


def test_what_is_taken_again_counts_once(trials: tuple[Trial, ...]) -> None:
    lines: list[str] = []
    display = Lines(lines.append)
    with display.showing(trials[:2], skipped=0):
        display.ended(record(trials[0], "the machine was busy"))
        display.ended(replace(record(trials[0]), attempt=2))
        display.ended(record(trials[1]))
    assert [line.split()[0] for line in lines[1:]] == ["[1/2]", "[1/2]", "[2/2]"]
    assert ["attempt 2" in line for line in lines[1:]] == [False, True, False]
    assert "ETA" not in lines[-1]


def test_the_display_fits_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(open_display(), Lines)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(open_display(), Live)


def test_a_terminal_keeps_the_lines_of_bad_trials_only(
    trials: tuple[Trial, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    display: Display = Live()
    with display.showing(trials[:2], skipped=0):
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
