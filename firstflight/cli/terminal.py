"""The terminal of the lab's prompt: joins the user's own with the one inside of the trial.

On the host's kernel the trial hands its terminal over through a socket, and windows (xterm) are
opened for the others that it has.  In virtual time over the four files that
``testbed.kinds.command.prompt`` describes; while its prompt waits for a line, the guest is held
(SIGSTOP), so that neither its clock nor this machine's processor runs while nobody types.

    python -m firstflight.cli.terminal SOCKET     joins this terminal with the one behind a socket
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import socket
import stat
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from testbed.base import places, proc

SOCKET_FILE = "terminal"
TYPED_FILE, SHOWN_FILE, WAITS_FILE = "terminal.in", "terminal.out", "terminal.waits"
SIZE_FILE = "terminal.size"
WINDOW = re.compile(r"terminal-(client|near|far|server)-\d+")
WINDOWS_MOST = 16
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
    """Join with the terminal that the prompt hands over, in real time, and open its windows."""
    with ExitStack() as windows:
        opened: set[str] = set()

        def look() -> None:
            for path in sorted(out.glob(f"{SOCKET_FILE}-*")):
                host = WINDOW.fullmatch(path.name)
                if host and path.name not in opened and len(opened) < WINDOWS_MOST:
                    opened.add(path.name)
                    _open_window(host[1], path, windows)

        _join(out / SOCKET_FILE, over, look)


def _open_window(host: str, path: Path, windows: ExitStack) -> None:
    """Show the terminal behind a socket in a window of its own, until ``windows`` are closed."""
    missing = ""
    if not os.environ.get("DISPLAY"):
        missing = "there is no display (DISPLAY is not set; `sudo` and `ssh -X` can hand it on)"
    elif not shutil.which("xterm"):
        missing = "it is not installed; as root: apt-get install xterm"
    if missing:
        os.write(sys.stdout.fileno(), f"xterm: {missing}\r\n".encode())
        with suppress(OSError):
            os.close(_take_terminal(path))  # what waits there ends
        return
    joined = (sys.executable, "-m", "firstflight.cli.terminal", str(path.resolve()))
    window = ("xterm", "-title", f"{host} - firstflight", "-e", *joined)
    windows.enter_context(proc.started(window, cwd=places.ROOT))


def _join(path: Path, over: Event, look: Callable[[], None]) -> None:
    """Join this process's terminal with the one behind the socket ``path`` until either ends.

    ``look`` is called again and again meanwhile.
    """
    while True:
        with suppress(FileNotFoundError, ConnectionRefusedError):
            terminal = _take_terminal(path)
            break
        if over.wait(POLL_S):
            return
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    size = None
    tty.setraw(sys.stdin)
    try:
        while not over.is_set():
            if size != (size := os.get_terminal_size(screen)):
                termios.tcsetwinsize(terminal, (size.lines, size.columns))
            ready, _, _ = select.select([terminal, keys], [], [], POLL_S)
            if terminal in ready:
                os.write(screen, os.read(terminal, READ_BYTES))
            if keys in ready:
                os.write(terminal, os.read(keys, READ_BYTES))
            look()
    except OSError:  # nobody has the terminal open any more (EIO)
        return
    finally:
        os.close(terminal)


def _take_terminal(path: Path) -> int:
    """Return the terminal that is handed over at the socket ``path``.

    Raises:
        OSError: none is.
    """
    with socket.socket(socket.AF_UNIX) as prompt:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:  # by the descriptor: the path of a socket has 107 characters at the most (unix(7))
            prompt.connect(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
        _, descriptors, _, _ = socket.recv_fds(prompt, 1, 1)
    if not descriptors:
        raise ConnectionRefusedError(f"no terminal was handed over at {path}")
    return descriptors[0]


def relay_by_files(out: Path, over: Event) -> None:
    """Pass keys and output through files, and pause the guest while its prompt waits."""
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    with _followed(out / WAITS_FILE) as waits, _followed(out / SHOWN_FILE) as shown:
        while not (answered := waits()):
            if over.is_set():
                return
            time.sleep(POLL_S)
        # Not before: a trial's folder is empty at its start.
        typed = os.open(out / TYPED_FILE, _NEW, 0o644)
        sent, paused, size = 0, False, None
        tty.setraw(sys.stdin)
        try:
            while not over.is_set():
                answered = waits() or answered
                os.write(screen, shown())
                if not paused and int(answered.split()[-1]) == sent:
                    _signal_guests(signal.SIGSTOP)
                    paused = True
                if not select.select([keys], [], [], POLL_S if paused else LOOK_S)[0]:
                    continue
                data = os.read(keys, READ_BYTES)
                if GIVE_UP in data:
                    os.kill(os.getpid(), signal.SIGINT)
                    return
                if size != (size := os.get_terminal_size(screen)):
                    _tell_size(out, size)
                os.write(typed, data)
                sent += len(data)
                _signal_guests(signal.SIGCONT)
                paused = False
            os.write(screen, shown())
        finally:
            _signal_guests(signal.SIGCONT)
            os.close(typed)


def _tell_size(out: Path, size: os.terminal_size) -> None:
    """Tell the prompt the size of its terminal."""
    new_file = out / f"{SIZE_FILE}.new"
    with suppress(FileExistsError):  # a name that the trial took
        descriptor = os.open(new_file, _NEW, 0o644)
        os.write(descriptor, f"{size.columns} {size.lines}\n".encode())
        os.close(descriptor)
        new_file.replace(out / SIZE_FILE)


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
    """Signal all processes of guests: not the jails, which this process has started itself."""
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
        if above == os.getpid() not in {process, parents[process]}:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)


if __name__ == "__main__":
    _join(Path(sys.argv[1]), Event(), lambda: None)  # the window ends with this
