"""Jail of a guest: the native program ``jail`` around its kernel, and what that is given.

A page's code may break out of the browser and, in seccomp mode, out of the guest's processes into
the guest's kernel, which is an ordinary process.  The jail is what it then finds: no privilege, no
file that can be opened but those of its trial, no sockets, few system calls, bounded memory and
processes, and no process that it could outlive (native/jail.c, landlock(7); docs/security.md).
It takes no program of the machine, no mount and no privilege.
"""

from __future__ import annotations

import ctypes
import errno
import grp
import os
import pwd
import resource
import socket
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.places import cache as cache_folder
from testbed.base.scratch import scratch_folder
from testbed.kernel.run.enclosure import CAPABILITIES, effective_capabilities, open_pipe
from testbed.kernel.run.seccomp import ADDR_NO_RANDOMIZE, filter_program

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  UML unlinks its file
MEMORY_FILE_BYTES = 1 << 30
LIMITS: dict[int, int] = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_DATA: 2 << 30,
    resource.RLIMIT_FSIZE: 2 << 30,
    resource.RLIMIT_MEMLOCK: 0,
    resource.RLIMIT_MSGQUEUE: 0,
    resource.RLIMIT_NPROC: 1024,
    resource.RLIMIT_RTPRIO: 0,
}
"""Bounds of each process in a jail, that of processes for all together (getrlimit(2))."""
NEWEST = 99
PROBE_S = 10.0
END_S = 10.0
UNJAILED = "FIRSTFLIGHT_UNJAILED"
JAIL, SIGNALS, CONTAINER, NONE = "jail", "jail-but-signals", "container", "none"
"""What holds guests: a jail, one that lets signals out, the container around all, or nothing."""
JAIL_REMEDY = (
    "Use Linux 5.13 or newer with Landlock among its security modules (lsm= on its command line), "
    "and in a container a runtime that lets its calls through"
)
BECOMING = ("CAP_SETUID", "CAP_SETGID", "CAP_CHOWN", "CAP_KILL")
# No distribution gives these ids to an account: systemd's "Users, Groups, UIDs and GIDs" has them
# as unused, and containers that know 65536 ids have them, too.
FIRST_ID, LAST_ID = 60_706, 61_183
MOST_CLAIMED = 64
"""How many ids a guest of root looks at for one that no other guest has."""
_ASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Stage:
    """A prepared place to start a guest.

    ``prefix`` begins the command: the kernel's name and arguments follow.  ``descriptors`` are what
    it inherits, ``environment`` is all of the kernel's.
    """

    prefix: tuple[str, ...]
    environment: dict[str, str]
    descriptors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GuestFiles:
    """Files that a guest is given, as paths of the host; without a page its folder is empty.

    ``usr`` is its user land, that of an assembled root.
    ``inherited`` has open files for the guest's kernel: their descriptors, by the variables of its
    environment that tell them.
    """

    kernel: Path
    bundle: Path
    page: Path | None
    out: Path
    usr: Path = field(kw_only=True)
    inherited: Mapping[str, int] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True, slots=True)
class Hold:
    """What a jail holds on this machine.

    Attributes:
        landlock: the version of Landlock; 0: there is none, and files are not held.
        namespaces: whether its processes, network and System V objects are its own.
        shares_user: whether it runs as a user who has other processes.
    """

    landlock: int
    namespaces: bool
    shares_user: bool

    @property
    def signals(self) -> bool:
        """Whether no signal reaches another's process (Landlock does that from version 6)."""
        return self.namespaces or self.landlock >= 6 or not self.shares_user

    def describe(self) -> str:
        """Say it in words."""
        parts = [f"Landlock {self.landlock}" if self.landlock else "no Landlock"]
        parts += ["a system call filter"]
        parts += ["own process table and network"] if self.namespaces else ["no namespaces"]
        parts += [] if self.shares_user else ["a user id of its own"]
        return ", ".join(parts) + ("" if self.signals else "; it can signal this user's processes")


@contextmanager
def open_stage(contents: GuestFiles, slot: int = 0, *, landlock: int = NEWEST) -> Iterator[Stage]:
    """Prepare the stage of a guest of ``slot``, pinned to a core of its own.

    The stage is a folder of links, the same for every guest, to descriptors: so what is behind them
    may lie where the guest's user could not find it.  ``landlock`` is the newest version that is
    used; with 0 all else holds.

    Raises:
        MissingError: root has no id to give to the guest, or the program is not built.
    """
    user = jail_user(slot)
    with ExitStack() as undo:
        core = undo.enter_context(_claimed("core", _cores_from(slot)))
        if user is not None:
            others = (jail_user(slot + more) or user for more in range(MOST_CLAIMED))
            user = undo.enter_context(_claimed("user", others))
        folder = undo.enter_context(scratch_folder("stage"))
        nothing = folder / "none"
        for made in (folder, nothing):
            made.mkdir(exist_ok=True)
            made.chmod(0o755)
        readable = {"usr": contents.usr, "bundle": contents.bundle, "page": contents.page}
        read = {name: _opened(undo, path or nothing) for name, path in readable.items()}
        scratch = _scratch(undo, folder)
        write = {"out": _opened(undo, contents.out), "uml": _opened(undo, scratch),
                 "uml/guest": _opened(undo, scratch / "guest")}  # fmt: skip
        environment = {name: str(number) for name, number in contents.inherited.items()}
        environment["TMPDIR"] = f"/proc/self/fd/{write['uml']}"
        # Kernels 6.1 and 6.12 start themselves again to have it, by a path that may be closed.
        environment["GLIBC_TUNABLES"] = "glibc.pthread.rseq=0"
        for name, descriptor in (*read.items(), *write.items()):
            if "/" not in name:
                # The point, so that it is no link again behind this one (hostfs follows one).
                (folder / name).symlink_to(f"/proc/self/fd/{descriptor}/.")
            if user is not None and name in write:
                os.chown(f"/proc/self/fd/{descriptor}", user, user)
        write["/dev/null"] = _opened(undo, Path(os.devnull))
        kernel = _opened(undo, contents.kernel)
        program = undo.enter_context(TemporaryFile())
        program.write(filter_program())
        program.flush()
        harness, _held = undo.enter_context(open_pipe())
        single = {"filter": program.fileno(), "harness": harness.fileno(),
                  "stage": _opened(undo, folder)}  # fmt: skip
        given: dict[str, Collection[int]] = {
            **{name: (descriptor,) for name, descriptor in single.items()}, "kernel": (kernel,),
            "run": (kernel,), "read": read.values(), "write": write.values(),
            "lent": contents.inherited.values(),
        }  # fmt: skip
        prefix = (
            str(program_file()),
            *(f"{name}={','.join(map(str, some))}" for name, some in given.items() if some),
            *(f"limit={number}:{most}" for number, most in LIMITS.items()),
            *(f"cpu={core}", *(() if user is None else (f"user={user}",))),
            *(f"landlock={landlock}", "--"),
        )
        descriptors = {descriptor for some in given.values() for descriptor in some}
        yield Stage(prefix, environment, tuple(sorted(descriptors)))


@contextmanager
def jailed(stage: Stage, words: Sequence[str], output: IO[bytes]) -> Iterator[proc.Process]:
    """Start a guest's kernel; after the block no process is left inside.

    The process is that of the jail, which ends all others before itself.  If this process is
    killed, so are they (PR_SET_PDEATHSIG; the jail's own pipe says so before that is set).
    """
    starting = proc.started(
        (*stage.prefix, *words),
        env=stage.environment, stdout=output, stderr=output, pass_fds=stage.descriptors,
    )  # fmt: skip
    with starting as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.terminate()
                proc.wait(child, END_S, threading.Event())


def read_hold(*, landlock: int = NEWEST) -> Hold:
    """Make a jail, and return what it holds on this machine.

    Raises:
        MissingError: there can be none: why.
    """
    with ExitStack() as undo:
        scratch = undo.enter_context(scratch_folder("jail"))
        folders = [scratch / part for part in ("bundle", "page", "out")]
        for folder in folders:
            folder.mkdir()
        contents = GuestFiles(program_file(), *folders, usr=scratch)
        stage = undo.enter_context(open_stage(contents, landlock=landlock))
        argv = [word for word in stage.prefix if not word.startswith("kernel=")]
        try:
            completed = proc.run(
                argv, check=False, timeout_s=PROBE_S, env={}, pass_fds=stage.descriptors
            )
        except OSError as error:
            raise MissingError(str(error)) from error
        except proc.CommandError:  # some filters let calls seem to succeed
            raise MissingError(f"the jail did not end within {PROBE_S:g} s") from None
    if completed.returncode != 0:
        raise MissingError(completed.stderr.strip() or f"status {completed.returncode}")
    version, namespaces = completed.stdout.removeprefix("landlock ").strip().split(", ")
    return Hold(int(version), namespaces == "namespaces", jail_user(0) is None)


def program_file() -> Path:
    """Return the native program, which is made with the others before any guest runs."""
    from testbed.kernel.build.native import native_folder  # who only jails compiles nothing

    return native_folder(cache_folder()) / "jail"


def read_instead() -> str | None:
    """Return what the caller has named to hold guests where there is no jail.

    ``container``: the container that all of this runs in; ``none``: nothing holds them, and the
    pages are trusted; ``None``: the caller has named nothing, so no guest may run.
    """
    return {"1": NONE, CONTAINER: CONTAINER}.get(os.environ.get(UNJAILED, ""))


def has_id(id_map: str, number: int) -> bool:
    """Return whether a /proc/PID/uid_map has an id (user_namespaces(7))."""
    lines = (map(int, line.split()) for line in id_map.splitlines())
    return any(first <= number < first + count for first, _, count in lines)


@cache
def has_fixed_addresses() -> bool:
    """Return whether a guest's kernel can be started at the same addresses each time.

    Filters of containers refuse it (personality(2)); without, memory lent has not the size that a
    kernel finds, and no image is of use to another.
    """
    libc = ctypes.CDLL(None)
    usual: int = libc.personality(_ASK)
    if libc.personality(usual | ADDR_NO_RANDOMIZE) < 0:
        return False
    libc.personality(usual)
    return True


def core_of(slot: int) -> int:
    """Return the core that guests of ``slot`` are pinned to: one guest, one core."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[slot % len(cores)]


def _cores_from(slot: int) -> Iterator[int]:
    """Yield every core, that of ``slot`` first."""
    return (core_of(slot + more) for more in range(len(os.sched_getaffinity(0))))


@contextmanager
def _claimed(what: str, numbers: Iterable[int]) -> Iterator[int]:
    """Hold for the block the first of ``numbers`` that no guest of this machine has, or the first.

    Two runs know nothing of each other's slots.  A claim is an abstract name of a socket (unix(7)),
    which ends with the process that holds it.
    """
    first: int | None = None
    for number in numbers:
        first = number if first is None else first
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
            try:
                claim.bind(f"\0firstflight-{what}-{number}")
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    break
                continue
            yield number
            return
    assert first is not None  # noqa: S101  there is a core, and an id
    yield first


def jail_user(slot: int) -> int | None:
    """Return the id that root gives to a guest of ``slot``; ``None``: that of the caller.

    No account of this machine has it, and no other slot.  Root who cannot become another, for want
    of capabilities or of such an id in its user namespace, stays root there: without capabilities.

    Raises:
        MissingError: all such ids have accounts.
    """
    if os.geteuid() != 0 or not may_become_another(Path("/proc/self/status").read_text()):
        return None
    if not all(
        has_id(Path(f"/proc/self/{kind}_map").read_text(), FIRST_ID) for kind in ("uid", "gid")
    ):
        return None
    numbers = (number for number in range(FIRST_ID, LAST_ID + 1) if not _has_account(number))
    free = tuple(islice(numbers, slot + 1))  # no more than needed: to ask takes 0.1 ms each
    if not free:
        raise MissingError(
            f"every user id from {FIRST_ID} to {LAST_ID} has an account here, so root has none "
            "for guests: run as an ordinary user"
        )
    return free[slot % len(free)]


def may_become_another(status: str) -> bool:
    """Return whether /proc/PID/status shows all that root needs to give a guest another id."""
    held = effective_capabilities(status)
    return all(held >> CAPABILITIES[name][0] & 1 for name in BECOMING)


def _has_account(number: int) -> bool:
    with suppress(KeyError):
        pwd.getpwuid(number)
        return True
    with suppress(KeyError):
        grp.getgrgid(number)
        return True
    return False


def _opened(undo: ExitStack, path: Path) -> int:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    undo.callback(os.close, descriptor)
    return descriptor


def _scratch(undo: ExitStack, otherwise: Path) -> Path:
    """Return a new folder for files of a guest's kernel: in shared memory, if that will do.

    Memory that it is not lent is one of them; its ``umid`` has a folder there.
    """
    filesystem = os.statvfs(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None
    if filesystem is not None:
        roomy = filesystem.f_bavail * filesystem.f_frsize >= MEMORY_FILE_BYTES
        runs = not filesystem.f_flag & os.ST_NOEXEC
        if roomy and runs and os.access(SHARED_MEMORY, os.W_OK):
            otherwise = undo.enter_context(scratch_folder("stage", SHARED_MEMORY))
    folder = otherwise / "files"  # which is given to root's guest; what `clean` finds stays root's
    (folder / "guest").mkdir(parents=True)
    return folder
