"""Verb ``shell``: the lab of an experiment under Mininet's prompt, for a script or a terminal."""

from __future__ import annotations

import os
import select
import shutil
import socket
import sys
import termios
import time
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import click

from firstflight.cli.choice import Choice, lab_options
from firstflight.cli.doors import Doors, pass_doors
from firstflight.cli.in_lab import plan_command, read_text
from testbed.base import log, places
from testbed.base.errors import (
    EXIT_OK,
    EXIT_OUT_OF_TOLERANCE,
    ConfigurationError,
    MissingError,
)
from testbed.experiment.plan import plan_trials
from testbed.kinds.command.performance import ERROR_FILE, OUTPUT_FILE
from testbed.launch import open_lanes
from testbed.model import Record, Trial, in_real_time
from testbed.results.records import read_records
from testbed.run import run_experiment

MININET = Path("/usr/lib/python3/dist-packages/mininet")
PROMPT = "/ff/bundle/testbed/kinds/command/prompt.py"
TERMINAL = "terminal"
LONGEST_S = 86_400
POLL_S = 0.05
READ_BYTES = 65536
_log = log.logger(__name__)


@click.command()
@lab_options
@click.option("--script", type=click.Path(path_type=Path), metavar="FILE",
              help="Perform the lines of FILE instead of what is typed.")  # fmt: skip
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new results folder; default: results/<UTC>-lab-<experiment>.")  # fmt: skip
@pass_doors
def shell(doors: Doors, /, script: Path | None, output: Path | None, **chosen: Any) -> int:
    """Open Mininet's prompt in the lab of one condition of CONFIG: client, near, far, server.

    On the host kernel you type; in virtual time all lines are read first, from FILE or standard
    input, and then performed (docs/shell.md).
    """
    require_mininet()
    catalogue, choice = doors.catalogue(), Choice(**chosen)
    live = not script and sys.stdin.isatty()
    with TemporaryDirectory(prefix="firstflight-shell-") as folder:
        words = f"mnexec /usr/bin/python3 {PROMPT} {{tag}}"
        experiment = plan_command(
            choice, catalogue, f"{words} script {{folder}}/script", "shell",
            at="lab", command_folder=folder,
        )  # fmt: skip
        live = live and in_real_time(experiment.kernel)
        if live:
            command = f"{words} {TERMINAL} /ff/out/{TERMINAL}"
            experiment = plan_command(choice, catalogue, command, "shell", at="lab")
            experiment = replace(experiment, timeout_s=LONGEST_S)
        else:
            Path(folder, "script").write_text(_read_script(script), "utf-8")
        with places.using_cache(doors.cache()):
            results, (lane,) = open_lanes(
                doors.prepare, (experiment,), 1, doors.results, output, doors.now
            )
            trial = plan_trials(experiment)[0]
            with terminal_of(results / "trials" / trial.id) if live else nullcontext():
                # Once: whoever has typed it all does not want to do so again.
                tally = run_experiment(results, lane.manifest, lane.setup, Quiet(), attempts=1)
    if tally.interrupted:
        _log.error("interrupted; what there is of it is in %s", results)
        return tally.exit_code
    return _show(results, read_records(results)[-1], tally.exit_code)


def require_mininet() -> None:
    """Refuse a machine without Mininet.

    Raises:
        MissingError: with the remedy.
    """
    if not (MININET.is_dir() and shutil.which("mnexec", path="/usr/bin")):
        raise MissingError(
            "the prompt is Mininet's, which is not installed; as root: apt-get install "
            "--no-install-recommends mininet (for one command without it: ./run.sh exec)"
        )


class Quiet:
    """Display of a run that leaves the terminal to whoever types."""

    @contextmanager
    def showing(self, todo: Sequence[Trial], done: Sequence[Record]) -> Iterator[None]:
        """Show nothing."""
        yield

    def began(self, trial: Trial) -> None:
        """Show nothing."""

    def waited(self) -> None:
        """Show nothing."""

    def ended(self, record: Record) -> None:
        """Show nothing."""


@contextmanager
def terminal_of(out: Path) -> Iterator[None]:
    """Join this process's terminal with the prompt in the trial's folder ``out``, once it is there.

    The undo gives the terminal back as it was.
    """
    over = Event()
    relay = Thread(target=_relay, args=(out, over), daemon=True)
    before = termios.tcgetattr(sys.stdin)
    relay.start()
    try:
        yield
    finally:
        over.set()
        relay.join()
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _relay(out: Path, over: Event) -> None:
    with socket.socket(socket.AF_UNIX) as prompt:
        if not _connect(prompt, out, over):
            return
        tty.setraw(sys.stdin)
        keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
        while not over.is_set():
            ready, _, _ = select.select([prompt, keys], [], [], POLL_S)
            if prompt in ready:
                said = prompt.recv(READ_BYTES)
                if not said:
                    return
                os.write(screen, said)
            if keys in ready:
                prompt.sendall(os.read(keys, READ_BYTES))


def _connect(prompt: socket.socket, out: Path, over: Event) -> bool:
    """Connect as soon as the prompt waits; return whether it came to that."""
    while not over.is_set():
        try:
            folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            time.sleep(POLL_S)
            continue
        try:  # by the descriptor: the path of a socket has 107 characters at the most (unix(7))
            prompt.connect(f"/proc/self/fd/{folder}/{TERMINAL}")
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(POLL_S)
        else:
            return True
        finally:
            os.close(folder)
    return False


def _read_script(script: Path | None) -> str:
    if script is None:
        if sys.stdin.isatty():
            _log.info(
                "in virtual time all lines are performed at once: type them, then Ctrl-D; such as "
                "`client ping -c 3 server`"
            )
        return sys.stdin.read()
    try:
        return script.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError([f"cannot read {script}: {why}"]) from None


def _show(results: Path, record: Record, code: int) -> int:
    """Print what a script came to, and return the exit code of the verb."""
    trial = results / "trials" / record.trial_id
    click.echo(read_text(trial / OUTPUT_FILE), nl=False)
    click.echo(read_text(trial / ERROR_FILE), nl=False, err=True)
    if record.reason is not None:
        _log.error("%s: %s", record.outcome, record.reason)
    _log.info("output and capture: %s", trial)
    failed = record.executed is not None and record.executed.exit_status
    return EXIT_OUT_OF_TOLERANCE if code == EXIT_OK and failed else code
