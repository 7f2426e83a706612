"""Enclosure of a trial on the host's kernel, which goes when its first process ends.

Mounts, process table, network, names and System V objects are the enclosure's own, so namespaces,
links, routes, sysctls, policy files and scratch files live and die with the processes inside, even
if those and the runner are killed with SIGKILL: nothing has to be cleaned afterwards, and two runs
cannot meet.  What a page's code finds is no more than in a guest's jail (bwrap(1), unshare(1),
docs/security.md).  Root inside is root of the host, with fewer capabilities; the client is not.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

from testbed.base import proc
from testbed.base.errors import MissingError

CAPABILITIES: dict[str, tuple[int, str]] = {
    "CAP_SYS_ADMIN": (21, "to make namespaces and mounts"),
    "CAP_NET_ADMIN": (12, "to make links and set routes and sysctls in them"),
    "CAP_NET_RAW": (13, "to capture packets"),
    "CAP_NET_BIND_SERVICE": (10, "to serve on ports 53, 80 and 443"),
    "CAP_SETUID": (7, "to run the client as another user"),
    "CAP_SETGID": (6, "to run the client as another group"),
    "CAP_CHOWN": (0, "to give the client its files"),
    "CAP_DAC_OVERRIDE": (1, "to read what the client left"),
    "CAP_FOWNER": (3, "to remove what the client left"),
    "CAP_KILL": (5, "to end the client"),
}
"""What root must be able to do (capabilities(7)): number and reason of each."""
WISHED = {"CAP_SYS_NICE": (23, "to give the link a real-time priority")}
TUN = Path("/dev/net/tun")
SEALED = tuple(
    f"/proc/{name}"
    for name in (
        *("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "asound", "driver", "scsi", "tty"),
        *("mtrr", "dynamic_debug", "latency_stats", "pressure", "timer_list", "sched_debug"),
    )
)
"""What root of an enclosure could change the machine with, and does not need to write."""
OWN_SYSCTLS = "/proc/sys/net"
"""Sysctls of the network namespace of the process that opens them."""
BPF_FACTS = ("/sys/kernel/btf", "/sys/devices/system/cpu/possible")
"""What the loader of a BPF program reads: the layout of the kernel's types, how many processors."""
FOLDERS = ("/sys", "/root", "/etc", "/etc/netns", "/ff")
PATH = "/usr/sbin:/usr/bin"
END_S = 10.0
ORPHANED = 137
"""Exit status of a command whose harness was gone before it began."""
_UNLESS_ORPHANED = (
    f'read -t 0 -u "$0" && exit {ORPHANED}; harness=$0; exec {{harness}}<&-; '
    'exec env --unset=SHLVL "$@"'  # bash(1) exports it
)
"""Of an open pipe without data ``read -t 0`` says no, at the end of one yes (bash(1))."""


@dataclass(frozen=True, slots=True)
class EnclosureFiles:
    """Files put into an enclosure, as paths of the host.

    ``usr`` is the user land, that of a root; ``browser`` is a folder outside of it, ``management``
    the BPF program for a server's connections.
    """

    bundle: Path
    usr: Path
    page: Path | None = None
    out: Path | None = None
    browser: Path | None = None
    management: Path | None = None


def enclosure_argv(files: EnclosureFiles, environment: dict[str, str]) -> tuple[str, ...]:
    """Return the command that runs the words after it inside, with ``environment`` only."""
    capabilities = (("--cap-add", name) for name in (*CAPABILITIES, *WISHED))
    merged = (("--symlink", f"usr/{name}", f"/{name}") for name in ("bin", "sbin", "lib", "lib64"))
    variables = (("--setenv", name, value) for name, value in environment.items())
    # Each parent is named, because bubblewrap makes others so that only root may enter.
    above = () if files.browser is None else reversed(files.browser.parents)
    return (
        *("bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--die-with-parent", "--new-session", "--as-pid-1"),
        *("--cap-drop", "ALL", *chain.from_iterable(capabilities)),
        *("--clearenv", *chain.from_iterable(variables), "--hostname", "guest"),
        *("--ro-bind", str(files.usr), "/usr", *chain.from_iterable(merged)),
        *("--proc", "/proc", "--dev", "/dev"),
        *chain.from_iterable(("--ro-bind-try", path, path) for path in SEALED),
        *("--bind", OWN_SYSCTLS, OWN_SYSCTLS),
        *("--dev-bind-try", str(TUN), str(TUN)),
        *chain.from_iterable(("--ro-bind-try", path, path) for path in BPF_FACTS),
        *chain.from_iterable(("--dir", folder) for folder in FOLDERS),
        *("--perms", "1777", "--tmpfs", "/tmp"),  # noqa: S108  the enclosure's own
        *("--tmpfs", "/run", "--dir", "/run/netns"),
        *("--tmpfs", "/var", "--dir", "/var/log", "--dir", "/var/lib"),
        *("--ro-bind", str(files.bundle / "etc" / "fonts"), "/etc/fonts"),
        *("--ro-bind", str(files.bundle), "/ff/bundle"),
        *_bind("--ro-bind", files.page, "/ff/page"),
        *_bind("--bind", files.out, "/ff/out"),
        *_bind("--ro-bind", files.management, "/ff/management.bpf.o"),
        *chain.from_iterable(("--dir", str(folder)) for folder in above if folder.name),
        *_bind("--ro-bind", files.browser, str(files.browser)),
        # What follows is process 1: as it ends so do all others, and their CPU time is counted with
        # its own.
        *("--chdir", "/", "--"),
    )


@contextmanager
def confined(
    argv: Sequence[str], output: IO[bytes], *, env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> Iterator[proc.Process]:  # fmt: skip
    """Start a command whose first word is ``bwrap``; after the block no process is left inside.

    Ending bubblewrap would end the processes inside a moment too late.  The first process inside
    is ended instead: it waits for all others (pid_namespaces(7)), and bubblewrap for it.

    If this process is killed, so are bubblewrap and the processes inside, each by
    PR_SET_PDEATHSIG.  That does nothing before it is set; so the inner process then checks that
    this process still holds the other end of a pipe.
    """
    with open_pipe() as (info, info_writer), open_pipe() as (alive, _held), ExitStack() as undo:
        command = confined_argv(argv, info_writer.fileno(), alive.fileno())
        passed = (info_writer.fileno(), alive.fileno(), *pass_fds)
        with info_writer:
            starting = proc.started(command, env=env, stdout=output, stderr=output, pass_fds=passed)
            child = undo.enter_context(starting)
        try:
            yield child
        finally:
            _end_inside(child, info)


def confined_argv(argv: Sequence[str], info_fd: int, alive_fd: int) -> tuple[str, ...]:
    """Return ``argv``, a bubblewrap command, with these two descriptors in their places.

    Args:
        argv: the command; its first ``--`` ends the options.
        info_fd: where bubblewrap writes which process is the first one inside.
        alive_fd: one end of a pipe; the words after ``--`` start only while the other end is open.
    """
    end = argv.index("--") + 1
    return (
        *(argv[0], "--info-fd", str(info_fd), *argv[1:end]),
        *("/usr/bin/bash", "-c", _UNLESS_ORPHANED, str(alive_fd), *argv[end:]),
    )


@contextmanager
def open_pipe() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Yield both ends of a pipe; the second is closed when this process ends, however it does."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "wb") as written:
        yield read, written


def _end_inside(child: proc.Process, info: IO[bytes]) -> None:
    if child.poll() is not None:
        return
    text = info.read()
    if text:  # else it did not come to a first process
        with suppress(ProcessLookupError):
            os.kill(json.loads(text)["child-pid"], signal.SIGKILL)
        proc.wait(child, END_S, threading.Event())


def effective_capabilities(status: str) -> int:
    """Return the mask of effective capabilities in a /proc/PID/status (capabilities(7))."""
    (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return int(mask, 16)


def parse_capabilities(status: str) -> tuple[str, ...]:
    """Return needed capabilities, with reasons, that /proc/PID/status shows to be missing."""
    effective = effective_capabilities(status)
    return tuple(
        f"{name} ({reason})"
        for name, (bit, reason) in CAPABILITIES.items()
        if not effective >> bit & 1
    )


def require_privileges(user: int, status: str) -> None:
    """Refuse a caller who may not make an enclosure.

    Args:
        user: the effective user id.
        status: the caller's /proc/self/status.

    Raises:
        MissingError: with what is missing and what to do instead.
    """
    lacking = parse_capabilities(status)
    problems = [f"user {user} is not root"] if user != 0 else []
    problems += [f"no {capability}" for capability in lacking] if user == 0 else []
    if problems:
        raise MissingError(
            f"the host kernel needs privileges that are missing: {'; '.join(problems)}; "
            "run with sudo (in a container: with these capabilities), "
            "or use the virtual kernel, which needs none: --kernel virtual"
        )


def _bind(option: str, source: Path | None, target: str) -> tuple[str, ...]:
    return () if source is None else (option, str(source), target)
