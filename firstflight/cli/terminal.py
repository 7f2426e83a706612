"""Terminals of a prompt: joins this process's own with the one that runs inside of a trial.

On the host's kernel over a socket.  In virtual time over the three files that
``testbed.kinds.command.prompt`` describes; while its prompt waits for a line, the guest is held
(SIGSTOP), so that neither its clock nor this machine's processor runs while nobody types.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

TYPED_FILE, SHOWN_FILE, WAITS_FILE = "terminal.in", "terminal.out", "terminal.waits"
GIVE_UP = b"\x1c"  # Ctrl-\
POLL_S = 0.05
LOOK_S = 0.005
READ_BYTES = 65536
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_FOREIGN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Relay = Callable[[Path, Event], None]


@contextmanager
def terminal_of(out: Path, relay: Relay) -> Iterator[None]:
    """Join this process's terminal by ``relay`` with the prompt of the trial in folder ``out``.

    The undo gives the terminal back as it was.
    """
    over = Event()
    thread = Thread(target=relay, args=(out, over), daemon=True)
    before = termios.tcgetattr(sys.stdin)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def relay_by_socket(out: Path, over: Event) -> None:
    """Pass keys and what is shown through the socket where the prompt waits, in real time."""
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
            prompt.connect(f"/proc/self/fd/{folder}/terminal")
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(POLL_S)
        else:
            return True
        finally:
            os.close(folder)
    return False


def relay_by_files(out: Path, over: Event) -> None:
    """Pass keys and what is shown through files, and hold the guest while its prompt waits."""
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    with _followed(out / WAITS_FILE) as waits, _followed(out / SHOWN_FILE) as shown:
        while not (answered := waits()):
            if over.is_set():
                return
            time.sleep(POLL_S)
        # Not before: a trial's folder is empty at its start.
        typed = os.open(out / TYPED_FILE, _NEW, 0o644)
        sent, held = 0, False
        tty.setraw(sys.stdin)
        try:
            while not over.is_set():
                answered = waits() or answered
                os.write(screen, shown())
                if not held and int(answered.split()[-1]) == sent:
                    _signal_guests(signal.SIGSTOP)
                    held = True
                if not select.select([keys], [], [], POLL_S if held else LOOK_S)[0]:
                    continue
                data = os.read(keys, READ_BYTES)
                if GIVE_UP in data:
                    os.kill(os.getpid(), signal.SIGINT)
                    return
                os.write(typed, data)
                sent += len(data)
                _signal_guests(signal.SIGCONT)
                held = False
            os.write(screen, shown())
        finally:
            _signal_guests(signal.SIGCONT)
            os.close(typed)


@contextmanager
def _followed(path: Path) -> Iterator[Callable[[], bytes]]:
    """Yield what returns the bytes that a file got since the last time, from when it is there.

    A trial made the file: nothing but a regular file is read, and no link followed.
    """
    descriptor = -1

    def read() -> bytes:
        nonlocal descriptor
        if descriptor < 0:
            with suppress(OSError):
                descriptor = os.open(path, _FOREIGN)
        if descriptor < 0 or not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        return os.read(descriptor, READ_BYTES)

    try:
        yield read
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _signal_guests(number: signal.Signals) -> None:
    """Signal all processes that this one started, and those that they started."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            # The name, in parentheses, may hold anything (proc_pid_stat(5)).
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
    for process in parents:
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() != process:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)
