"""Mininet's prompt over the lab: its four hosts as Mininet nodes, for a script or a terminal.

    prompt.py TAG script FILE       performs the lines of FILE, and shows each before what it says
    prompt.py TAG terminal FOLDER   hands a terminal to who comes to the socket FOLDER/terminal
    prompt.py TAG typed FOLDER      the same, over files: no time passes while a line is awaited

TAG begins the names of the lab's network namespaces.  ``xterm HOST`` waits at another socket of
FOLDER, ``terminal-HOST-NUMBER``, for who shows a shell of that host in a window.

A guest in virtual time has no socket that leads out of it, and its clock runs on as fast as it can
while all its programs sleep.  So there the terminal's other end is four files of FOLDER, which its
host shares: ``terminal.in`` (what is typed), ``terminal.out`` (what is shown), ``terminal.waits``
(lines: after how many bytes of the first the prompt waits for more) and ``terminal.size`` (columns
and rows).  At the prompt this program looks for more without ever sleeping or reading a clock,
which takes no virtual time; the host need not let it run meanwhile.

Runs in the system's Python, where Debian's ``mininet`` is (version 2.3), inside of a guest or an
enclosure.
"""

from __future__ import annotations

import codecs
import os
import pty
import re
import readline
import select
import signal
import socket
import sys
import termios
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import mininet.net
from mininet.cli import CLI
from mininet.link import Intf, Link
from mininet.node import Node

HOSTS = {
    "client": {"c0": "10.0.0.2"},
    "near": {"n0": "10.0.0.1", "n1": "10.0.1.1"},
    "far": {"f0": "10.0.1.2", "f1": "10.0.2.1"},
    "server": {"s0": "10.0.2.2"},
}
"""The hosts of the lab in a row, and their devices' addresses; the first is the host's own."""
PREFIX_BITS = 24
LINKS = (("c0", "n0"), ("n1", "f0"), ("f1", "s0"))
"""The links between them, each by the devices at its ends; the emulated one is the second."""
OWN_FOLDER = Path(__file__).resolve().parents[3] / "own"
"""Where a trial has the files of ``command_folder``, which lines name as {folder}."""
WAIT_S = 60.0
READ_BYTES = 65536
TYPED_FILE, SHOWN_FILE, WAITS_FILE = "terminal.in", "terminal.out", "terminal.waits"
SIZE_FILE = "terminal.size"
NO_WINDOWS = """\
xterm: only at a prompt that is typed on the host's kernel (--kernel host): in virtual time the
clock stands still for one prompt. `HOST COMMAND &` runs a command beside the others.
"""
LOOK_S = 0.1
"""Virtual time between two looks for typed keys while a command runs, such as Ctrl-C."""
TAKEN_MOST = 4095
"""Bytes that a terminal keeps until they are read (n_tty)."""
ASKING, PERFORMING = b"?", b"!"


class LabHost(Node):  # type: ignore[misc]  # Mininet has no types
    """A host of the lab: a shell in a network namespace that is there already."""

    def __init__(self, name: str, namespace: str) -> None:
        self.namespace = namespace
        super().__init__(name)

    @classmethod
    def setup(cls) -> None:
        """Check nothing: what this needs is in Debian's package, and ``which`` is not there."""

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 - Mininet's name
        """Start the shell inside; a namespace of its own is not made."""
        self.inNamespace = False
        super().startShell(mnopts)
        self.inNamespace = True

    def become_shell(self) -> None:
        """Go on as the shell of a window."""
        argv = ("ip", "netns", "exec", self.namespace, "bash", "--norc")
        environment = {**os.environ, "TERM": "xterm", "PS1": f"{self.name}:\\w# "}
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - in the system's Python

    def popen(self, *args: Any, **params: Any) -> Any:
        """Start a program in the namespace; mnexec(1) would also change the root, which is ours."""
        return super().popen(*args, mncmd=["ip", "netns", "exec", self.namespace], **params)

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        entered = ["ip", "netns", "exec", self.namespace] if self.shell is None else []
        return super()._popen([*entered, *cmd], **params)


class LabLink(Link):  # type: ignore[misc]  # Mininet has no types
    """A link of the lab, which is there already: `net` and `links` show it."""

    def __init__(self, intf1: Any, intf2: Any) -> None:
        self.intf1, self.intf2 = intf1, intf2
        intf1.link = intf2.link = self


class Keyboard:
    """Standard input as Mininet reads it, without a buffer that would keep what is not its own."""

    def __init__(self) -> None:
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def fileno(self) -> int:
        """Return its descriptor."""
        return sys.stdin.fileno()

    def read(self, most: int) -> str:
        """Return what there is; ``""``: nothing any more, or half a character."""
        return self.decoder.decode(os.read(self.fileno(), most))

    def read_now(self) -> str:
        """Return what has come already."""
        said = ""
        while select.select([self.fileno()], [], [], 0)[0] and (more := self.read(READ_BYTES)):
            said += more
        return said


class Prompt(CLI):  # type: ignore[misc]  # Mininet has no types
    """Mininet's prompt, which shows the lines of a script.

    ``folder`` is where windows are asked for; ``None``: there are none.
    """

    prompt = "lab> "

    def __init__(
        self, network: Any, folder: Path | None = None, stdin: Any = None, script: str | None = None
    ) -> None:
        self.folder = folder
        self.shells: list[int] = []
        self.ahead = ""
        readline.set_pre_input_hook(self.ask)
        try:
            super().__init__(network, stdin or Keyboard(), script)  # performs all lines
        finally:
            for shell in self.shells:
                os.kill(shell, signal.SIGKILL)  # its window may be there still
                os.waitpid(shell, 0)

    def do_xterm(self, line: str, term: str = "xterm") -> None:
        """Open a window with a shell for each host.

        Usage: xterm HOST ...
        """
        if self.folder is None:
            print(NO_WINDOWS, end="")
            return
        if not line.split():
            print(f"usage: {term} node1 node2 ...")
        for name in line.split():
            if name in self.mn:
                self._open_window(self.mn[name], self.folder)
            else:
                print(f"node '{name}' not in network")

    def _open_window(self, host: LabHost, folder: Path) -> None:
        path = folder / f"terminal-{host.name}-{len(self.shells) + 1}"
        try:
            self.shells.append(hand_over(path, host.become_shell))
        except TimeoutError:
            print(f"xterm: nobody came within {WAIT_S:g} s")

    def do_source(self, line: str) -> Any:
        """Perform the lines of a file.

        Usage: source FILE
        """
        try:
            lines = Path(line.strip()).read_text("utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            print(f"source: cannot read {line.strip()!r}: {error}")
            return None
        for each in filter(str.strip, lines):
            print(f"{self.prompt}{each.strip()}", flush=True)
            if self.onecmd(self.precmd(each)):
                return True
        return None

    def precmd(self, line: str) -> Any:
        """Put the place of the user's own files where a line has {folder}."""
        return super().precmd(re.sub(r"(?<![%$\w])\{folder\}", str(OWN_FOLDER), line))

    def onecmd(self, line: str) -> Any:
        """Perform a line; what Mininet does not expect in it does not end the session."""
        if self.isatty():
            self.take_ahead()
        try:
            return super().onecmd(line)
        except Exception as error:
            print(f"*** {type(error).__name__}: {error}")
            return None

    def take_ahead(self) -> None:
        """Take what was typed or pasted behind the line at hand: it is for the prompt.

        What comes while that is performed is for the program that runs.
        """
        *lines, self.ahead = re.split("[\r\n]", self.ahead + self.stdin.read_now())
        self.cmdqueue += lines

    def postcmd(self, stop: Any, line: str) -> Any:
        """Show the next line, if it is there already."""
        if self.cmdqueue and not stop:
            print(f"{self.prompt}{self.cmdqueue[0]}", flush=True)
            readline.add_history(self.cmdqueue[0])
        return super().postcmd(stop, line)

    def ask(self) -> None:
        """Begin a line with what there is of it; called when the prompt awaits one."""
        if self.ahead:
            readline.insert_text(self.ahead)
            readline.redisplay()
            self.ahead = ""


class TypedPrompt(Prompt):
    """The prompt, which says at ``told``, a descriptor, when it asks for a line and has one."""

    def __init__(self, network: Any, told: int) -> None:
        self.told = told
        super().__init__(network)

    def ask(self) -> None:
        """Say that a line is awaited."""
        super().ask()
        os.write(self.told, ASKING)

    def precmd(self, line: str) -> Any:
        """Say that a line has come."""
        os.write(self.told, PERFORMING)
        return super().precmd(line)


def open_network(tag: str) -> Any:
    """Return the lab's hosts as a Mininet network, which has built and configured nothing."""
    mininet.net.fixLimits = lambda: None  # it would rewrite the machine's sysctls
    mininet.net.waitListening = await_listener  # it would use telnet
    network = mininet.net.Mininet(build=False, controller=None)
    for name, devices in HOSTS.items():
        host = LabHost(name, f"{tag}{name}")
        for device, address in devices.items():
            known = Intf(device, node=host, moveIntfFn=lambda *_: None, up=False)
            known.ip, known.prefixLen = address, PREFIX_BITS
        network.hosts.append(host)
        network.nameToNode[name] = host
    devices = {device: host.nameToIntf[device] for host in network.hosts
               for device in HOSTS[host.name]}  # fmt: skip
    network.links += [LabLink(devices[first], devices[second]) for first, second in LINKS]
    return network


def await_listener(client: LabHost, server: str, port: int) -> bool:
    """Wait until ``client`` can send to a port of the address ``server``.

    It sends as much as iperf 2.1 counts as a test, since Mininet awaits its report, too.
    """
    sent = f"(head -c 1000 /dev/zero >/dev/tcp/{server}/{port}) 2>&-; echo $?"
    while client.cmd(sent).strip() != "0":
        time.sleep(0.1)
    return True


def perform_script(network: Any, script: str) -> None:
    """Perform the lines of ``script``; nobody types."""
    silent, _open = os.pipe()  # to read from /dev/null would be to read for ever
    os.dup2(sys.stdout.fileno(), sys.stderr.fileno())  # in the order in which it is said
    Prompt(network, stdin=os.fdopen(silent), script=script)


def serve_terminal(tag: str, folder: Path) -> None:
    """Give the prompt a terminal, and hand that to the first who comes; return at its end."""
    end_as(hand_over(folder / "terminal", lambda: Prompt(open_network(tag), folder)))


def end_as(child: int) -> None:
    """Wait for a prompt and end with its exit status; one that is hung up has come to its end."""
    sys.exit(max(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


def hand_over(path: Path, program: Callable[[], object]) -> int:
    """Hand a terminal to who comes to the socket ``path``; return the process that has it.

    It runs ``program``, and is hung up as soon as nobody has the terminal's other end any more.

    Raises:
        TimeoutError: nobody comes.
    """
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(path))
            path.chmod(0o600)
            door.listen(1)
            door.settimeout(WAIT_S)
            visitor, _ = door.accept()
    finally:
        path.unlink(missing_ok=True)
    with visitor:
        child, terminal = pty.fork()
        if not child:
            visitor.close()
            try:
                program()
                sys.stdout.flush()
                os._exit(0)  # nothing of the process that it comes from is its own to undo
            except Exception:
                traceback.print_exc()  # to the terminal
                os._exit(1)
        with suppress(OSError):  # who came may have gone
            socket.send_fds(visitor, [b"\n"], [terminal])
        os.close(terminal)
    return child


def serve_typed(tag: str, folder: Path) -> None:
    """Give the prompt a terminal, and join that with the files of ``folder`` until it ends."""
    state, told = os.pipe()
    child, terminal = pty.fork()
    if not child:
        os.close(state)
        TypedPrompt(open_network(tag), told)
        sys.exit()
    os.close(told)
    # Runs only when nothing else can: whatever happens at an instant has happened when it looks.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    for descriptor in (state, terminal):
        os.set_blocking(descriptor, False)
    files, asking = TerminalFiles(folder), False
    while (shown := read_now(terminal)) != b"":
        if shown:
            files.show(shown)
        elif marks := read_now(state):
            asking = marks.endswith(ASKING)
        elif keys := files.take():
            if size := files.size():
                termios.tcsetwinsize(terminal, size)
            os.write(terminal, keys)
        elif asking:
            files.wait()
            os.sched_yield()
        else:
            select.select([terminal, state], [], [], LOOK_S)
    os.close(terminal)  # whoever still runs there is hung up
    end_as(child)


class TerminalFiles:
    """The files of a folder, at whose other end somebody types."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.taken = 0
        self.waiting_after = -1

    def show(self, data: bytes) -> None:
        """Show what the terminal says; it reaches the host when the file is closed."""
        with (self.folder / SHOWN_FILE).open("ab") as file:
            file.write(data)

    def take(self) -> bytes:
        """Return keys that were typed and not yet taken, but not more than a terminal takes."""
        try:
            with (self.folder / TYPED_FILE).open("rb", buffering=0) as file:
                file.seek(self.taken)
                keys = file.read(TAKEN_MOST)
        except FileNotFoundError:
            return b""
        self.taken += len(keys)
        return keys

    def size(self) -> tuple[int, int] | None:
        """Return how many rows and columns are seen of the terminal; ``None``: it was not said."""
        with suppress(OSError, ValueError):
            columns, rows = (self.folder / SIZE_FILE).read_text().split()
            return int(rows), int(columns)
        return None

    def wait(self) -> None:
        """Say, once, that there is nothing to do before more is typed."""
        if self.waiting_after != self.taken:
            self.waiting_after = self.taken
            with (self.folder / WAITS_FILE).open("a") as file:
                file.write(f"{self.taken}\n")


def read_now(descriptor: int) -> bytes | None:
    """Return what there is to read; ``b""``: nobody has the other end any more; ``None``: none."""
    try:
        return os.read(descriptor, READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:  # so says a terminal that nobody has open any more (EIO)
        return b""


def main() -> None:
    """Do what the arguments say."""
    tag, how, path = sys.argv[1:]
    if how == "script":
        perform_script(open_network(tag), path)
    elif how == "typed":
        serve_typed(tag, Path(path))
    else:
        serve_terminal(tag, Path(path))


if __name__ == "__main__":
    main()
