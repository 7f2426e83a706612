"""Signals at any moment of a command: status 130, a word, no traceback."""

from __future__ import annotations

import _thread
import os
import shlex
import signal
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from firstflight.cli.exits import run_command
from testbed.base import proc
from testbed.base.interrupt import SIGNALS, SignalInterrupt, holding, interruptible, raising
from testbed.base.places import CONFIGS, ROOT

pytestmark = pytest.mark.usefixtures("not_below_nohup")
POPEN = proc.Process
MOMENTS_S = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)


def starting(before: str) -> tuple[str, ...]:
    """The program as ``run.sh`` starts it, and what a shell says ``before`` it has become it."""
    words = (sys.executable, "-P", "-m", "firstflight", "plan", str(CONFIGS / "quick.toml"))
    program = f"{before}; exec {shlex.join(words)}"
    return ("env", "--block-signal=INT,TERM,HUP", "sh", "-c", program)


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_before_the_first_line_of_the_program(number: signal.Signals) -> None:
    done = proc.run(starting(f"kill -{number:d} $$"), env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_during_the_start(tmp_path: Path, number: signal.Signals) -> None:
    log, started = tmp_path / "stderr", tmp_path / "started"
    for moment_s in MOMENTS_S:
        started.unlink(missing_ok=True)
        with (
            log.open("wb") as stderr,
            proc.started(
                starting(f": >{shlex.quote(str(started))}"), env=ENVIRONMENT, stderr=stderr
            ) as child,
        ):
            deadline = time.monotonic() + 60
            while not started.exists():
                assert time.monotonic() < deadline
            time.sleep(moment_s)  # whichever it is, the end is one of the two
            child.send_signal(number)
            code = child.wait(60)
        reported = log.read_text()
        assert (code, reported.strip()) in ((130, "error: interrupted"), (0, ""))


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_the_middle_of_exec_gives_the_status_too(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "program.py").write_text(
        "import os, sys\n"
        "from testbed.base.interrupt import raising\n"
        "try:\n"
        "    with raising():\n"
        f"        exec('os.kill(os.getpid(), {number:d}); [None for _ in range(1000)]')\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    # As a module, which is how the program starts: then CPython looks at the end.
    done = proc.run((sys.executable, "-P", "-m", "program"), env=environment, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_what_a_library_makes_of_an_interrupt_is_one_all_the_same() -> None:
    def build() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        except KeyboardInterrupt as error:
            raise ValueError("the schema could not be built") from error

    with pytest.raises(SignalInterrupt), raising():
        build()
    with pytest.raises(ValueError, match="another"), raising():
        raise ValueError("another")


def be_interrupted_in_a_callback(number: signal.Signals) -> None:
    """The interpreter swallows what is raised there."""

    class Watched:
        pass

    def callback(_reference: object) -> None:
        os.kill(os.getpid(), number)
        sum(range(100))

    watched = Watched()
    reference = weakref.ref(watched, callback)
    with pytest.raises(SignalInterrupt), raising():
        del watched
        assert reference() is None
        time.sleep(60)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupt_that_the_interpreter_swallows_comes_again(
    capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    be_interrupted_in_a_callback(number)
    assert capsys.readouterr().err == ""


def test_one_that_comes_while_another_is_being_swallowed_comes_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the one that is sent again may come before the hook has returned."""
    sent: list[object] = []
    start = _thread.start_new_thread

    def start_slowly(*asked: Any) -> int:
        sent.append(asked)
        if len(sent) < 3:
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(100))
        return start(*asked)

    monkeypatch.setattr(_thread, "start_new_thread", start_slowly)
    be_interrupted_in_a_callback(signal.SIGINT)
    assert len(sent) == 3
    assert capsys.readouterr().err == ""


def test_what_else_the_interpreter_swallows_is_still_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", printed.append)

    class Watched:
        def __del__(self) -> None:
            raise ValueError("another")

    with raising():
        Watched()
    assert [type(each.exc_value) for each in printed] == [ValueError]


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        for kind in (raising, interruptible):
            with kind():
                assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
                os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_command_through_its_undo(
    capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    undone = []

    @click.command()
    def wait() -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        finally:
            undone.append(number)

    before = [signal.getsignal(each) for each in SIGNALS]
    assert run_command(wait, args=[]) == 130
    assert undone == [number]
    # click ends the line on which a terminal shows ^C.
    assert capsys.readouterr().err == "\nerror: interrupted\n"
    assert [signal.getsignal(each) for each in SIGNALS] == before


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("start", [proc.run, proc.run_attached])
def test_a_signal_while_a_process_starts_leaves_none_behind(
    number: signal.Signals,
    start: Callable[[Sequence[str]], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = []

    def interrupted(*arguments: Any, **named: Any) -> proc.Process:
        child = POPEN(*arguments, **named)
        begun.append(child)
        os.kill(os.getpid(), number)
        return child

    monkeypatch.setattr("subprocess.Popen", interrupted)
    with raising(), pytest.raises(SignalInterrupt):
        start(("sleep", "60"))
    assert [child.poll() for child in begun] == [-signal.SIGTERM]


def test_a_signal_that_interrupts_no_wait_is_heeded_while_a_process_runs(tmp_path: Path) -> None:
    """As one does that comes after Python's last look and before the wait: this goes elsewhere."""
    script, begun, told = (tmp_path / name for name in ("script", "begun", "told"))
    script.write_text(
        f"trap ': >{told}; exit' TERM\n: >{begun}\nfor _ in {{1..600}}; do sleep 0.1; done\n"
    )

    def interrupt() -> None:
        while not begun.exists():
            time.sleep(0.01)
        time.sleep(0.1)  # the main thread waits by then, or soon
        signal.pthread_kill(_thread.get_ident(), signal.SIGTERM)

    with raising():
        _thread.start_new_thread(interrupt, ())
        with pytest.raises(SignalInterrupt):
            proc.run_attached(("bash", str(script)))
    assert told.exists()


def test_what_is_held_back_of_a_signal_comes_once() -> None:
    with raising():
        with holding() as release:
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(SignalInterrupt):
            release()
        with holding() as release:
            pass
        release()
