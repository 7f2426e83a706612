"""Jail of a guest: bubblewrap, or a plain stage directory where that cannot be had.

A page's code may break out of the browser and, in seccomp mode, out of the guest's processes into
the guest's kernel, which is an ordinary process.  The jail is what it then finds: no privilege, a
read-only /usr, private /tmp and process table, no network, few system calls, bounded memory and
processes, nothing of the caller's files but the trial's own folder (bwrap(1), setpriv(1),
prlimit(1); docs/security.md).
"""

from __future__ import annotations

import grp
import os
import pwd
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.scratch import scratch_folder
from testbed.kernel.run.enclosure import CAPABILITIES, effective_capabilities
from testbed.kernel.run.seccomp import filter_program

STAGE = "/stage"
USR = Path("/usr")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  only asked for its room; UML unlinks its file
MEMORY_FILE_BYTES = 1 << 30
# The guest's memory, and what its kernel writes beside it.
TMP_BYTES = MEMORY_FILE_BYTES + (64 << 20)
UML_BYTES = 1 << 20
LIMITS: dict[str, tuple[int, int]] = {
    "core": (resource.RLIMIT_CORE, 0),
    "data": (resource.RLIMIT_DATA, 2 << 30),
    "fsize": (resource.RLIMIT_FSIZE, 2 << 30),
    "memlock": (resource.RLIMIT_MEMLOCK, 0),
    "msgqueue": (resource.RLIMIT_MSGQUEUE, 0),
    "nproc": (resource.RLIMIT_NPROC, 1024),
    "rtprio": (resource.RLIMIT_RTPRIO, 0),
}
"""Bounds of each process in a jail, that of processes for all together (getrlimit(2))."""
PROBE_S = 10.0
UNJAILED = "FIRSTFLIGHT_UNJAILED"
CONTAINER = "container"
JAIL_REMEDY = (
    "Install bubblewrap, and allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
    "another container runtime) or start as root with CAP_SYS_ADMIN"
)
# No distribution gives these ids to an account: systemd's "Users, Groups, UIDs and GIDs" has them
# as unused, and containers that know 65536 ids have them, too.
FIRST_ID, LAST_ID = 60_706, 61_183


@dataclass(frozen=True, slots=True)
class Stage:
    """A prepared place to start a guest.

    ``prefix`` begins the command, ``kernel`` goes on; ``descriptors`` are what it inherits.
    """

    prefix: tuple[str, ...]
    directory: Path | None
    environment: dict[str, str]
    kernel: str
    descriptors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GuestFiles:
    """Files that a guest is given, as paths of the host; without a page its folder is empty.

    ``usr`` is its user land, that of an assembled root.
    ``inherited`` has open files for the kernel of a jailed guest: their descriptors, by the
    variables of its environment that tell them.
    """

    kernel: Path
    bundle: Path
    page: Path | None
    out: Path
    usr: Path = field(kw_only=True)
    inherited: Mapping[str, int] = field(default_factory=dict, kw_only=True)


def jail_argv(contents: GuestFiles, filter_descriptor: int, user: int | None) -> tuple[str, ...]:
    """Return the bubblewrap command that a guest's kernel is started with.

    Args:
        contents: what the guest is given.
        filter_descriptor: where bubblewrap reads the system call filter from.
        user: the id that root gives to what it starts; ``None``: the caller's, in a user namespace.
    """
    merged = [("--symlink", f"usr/{name}", f"/{name}") for name in ("bin", "sbin", "lib", "lib64")]
    return (
        # Root has no user namespace: it would map root to root, and no other id.
        *("bwrap", *(("--unshare-user",) if user is None else ()), "--unshare-pid"),
        *("--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--die-with-parent", "--new-session", "--as-pid-1"),
        *("--cap-drop", "ALL", *_kept_capabilities(user), "--clearenv"),
        *("--hostname", "guest", "--ro-bind", str(contents.usr), "/usr"),
        *(word for words in merged for word in words),
        *("--proc", "/proc", "--dev", "/dev"),
        *_room("/tmp", TMP_BYTES), *("--setenv", "TMPDIR", "/tmp"),  # noqa: S108  the jail's own
        *_inherited(contents.inherited),
        *("--dir", STAGE, *_room(f"{STAGE}/uml", UML_BYTES)),
        *("--ro-bind", str(contents.kernel), f"{STAGE}/linux"),
        *("--ro-bind", str(contents.bundle), f"{STAGE}/bundle"),
        *("--symlink", "/usr", f"{STAGE}/usr"),
        *_page(contents.page),
        *("--bind", str(contents.out), f"{STAGE}/out"),
        # Nothing in there has to write to these, whatever their owner.
        *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"),
        *("--seccomp", str(filter_descriptor), "--chdir", STAGE, "--"),
        # A parent that waits, so that the guest's CPU time is counted; not the kernel itself: as
        # process 1 it could not abort, and a panic would hang.  It is the caller still, because
        # bubblewrap, which has no capability left, could not end another user's process 1.
        *("/usr/bin/setsid", "--fork", "--wait"),
        *_without_privileges(user),
        *("/usr/bin/prlimit", *_limits(), "--"),
    )  # fmt: skip


def _room(path: str, size_bytes: int) -> tuple[str, ...]:
    """Return a tmpfs for whichever user, no larger than this."""
    return ("--perms", "1777", "--size", str(size_bytes), "--tmpfs", path)


def _inherited(descriptors: Mapping[str, int]) -> Iterator[str]:
    for name, descriptor in descriptors.items():
        yield from ("--setenv", name, str(descriptor))


def _page(page: Path | None) -> tuple[str, ...]:
    """Return the folder of the page; an empty one where none is loaded."""
    if page is None:
        return ("--dir", f"{STAGE}/page")
    return ("--ro-bind", str(page), f"{STAGE}/page")


def _limits() -> Iterator[str]:
    for name, (number, limit) in LIMITS.items():
        hard = resource.getrlimit(number)[1]
        # A jail cannot exceed a hard limit of its caller.
        yield f"--{name}={limit if hard == resource.RLIM_INFINITY else min(limit, hard)}"


def _kept_capabilities(user: int | None) -> tuple[str, ...]:
    """Return what it takes to become ``user`` and to give up all else."""
    if user is None:
        return ()
    return ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")


def _without_privileges(user: int | None) -> tuple[str, ...]:
    """Return the command that becomes ``user`` for good."""
    if user is None:
        return ()
    return (
        *("/usr/bin/setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"),
        *("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--"),
    )


def jail_user(slot: int) -> int | None:
    """Return the id that root gives to a guest of ``slot``; ``None``: that of the caller.

    No account of this machine has it, and no other slot.  Root without
    CAP_SYS_ADMIN, as in most containers, needs a user namespace as others do, and stays root there:
    without capabilities, with nothing of root's to write, and behind the same filter.

    Raises:
        MissingError: all such ids have accounts.
    """
    if os.geteuid() != 0 or not may_administer(Path("/proc/self/status").read_text()):
        return None
    numbers = (number for number in range(FIRST_ID, LAST_ID + 1) if not _has_account(number))
    free = tuple(islice(numbers, slot + 1))  # no more than needed: to ask takes 0.1 ms each
    if not free:
        raise MissingError(
            f"every user id from {FIRST_ID} to {LAST_ID} has an account here, so root has none "
            "for guests: run as an ordinary user"
        )
    return free[slot % len(free)]


def may_administer(status: str) -> bool:
    """Return whether /proc/PID/status shows CAP_SYS_ADMIN among the effective capabilities."""
    return bool(effective_capabilities(status) >> CAPABILITIES["CAP_SYS_ADMIN"][0] & 1)


def _has_account(number: int) -> bool:
    with suppress(KeyError):
        pwd.getpwuid(number)
        return True
    with suppress(KeyError):
        grp.getgrgid(number)
        return True
    return False


@contextmanager
def open_stage(contents: GuestFiles, jailed: bool, slot: int = 0) -> Iterator[Stage]:
    """Prepare the stage of a guest of ``slot``; both kinds look the same from inside the guest.

    Raises:
        MissingError: root has no id to give to the guest.
    """
    if jailed:
        user = jail_user(slot)
        with TemporaryFile() as file:
            file.write(filter_program())
            file.seek(0)
            if user is not None:
                os.chown(contents.out, user, user)
            argv = jail_argv(contents, file.fileno(), user)
            descriptors = (file.fileno(), *contents.inherited.values())
            yield Stage(argv, None, {}, f"{STAGE}/linux", descriptors)
        return
    with scratch_folder("stage") as stage:
        (stage / "uml").mkdir()
        for link, target in (
            ("bundle", contents.bundle),
            ("usr", contents.usr),
            ("page", contents.page),
            ("out", contents.out),
        ):
            if target is None:
                (stage / link).mkdir()
            else:
                (stage / link).symlink_to(target.resolve())
        # Ends the guest with this process, as --die-with-parent does in the jail.
        prefix = ("setpriv", "--pdeathsig", "KILL")
        memory = str(memory_directory(stage))
        yield Stage(prefix, stage, {"TMPDIR": memory}, str(contents.kernel.resolve()))


def memory_directory(otherwise: Path) -> Path:
    """Return the folder of an unjailed guest's memory: shared memory, if that will do."""
    try:
        filesystem = os.statvfs(SHARED_MEMORY)
    except OSError:
        return otherwise
    roomy = filesystem.f_bavail * filesystem.f_frsize >= MEMORY_FILE_BYTES
    usable = roomy and not filesystem.f_flag & os.ST_NOEXEC and os.access(SHARED_MEMORY, os.W_OK)
    return SHARED_MEMORY if usable else otherwise


def read_instead() -> str | None:
    """Return what the caller has named to hold guests where there is no jail.

    ``container``: the container that all of this runs in; ``none``: nothing holds them, and the
    pages are trusted; ``None``: the caller has named nothing, so no guest may run.
    """
    return {"1": "none", CONTAINER: CONTAINER}.get(os.environ.get(UNJAILED, ""))


def read_jail_problem() -> str | None:
    """Return why guests cannot be jailed on this machine; ``None`` when they can: one is made."""
    with scratch_folder("jail") as scratch:
        folders = [scratch / part for part in ("bundle", "page", "out")]
        for folder in folders:
            folder.mkdir()
        try:
            with open_stage(
                GuestFiles(Path("/usr/bin/true"), *folders, usr=USR), jailed=True
            ) as stage:
                argv = (*stage.prefix, stage.kernel)
                completed = proc.run(
                    argv, check=False, timeout_s=PROBE_S, pass_fds=stage.descriptors
                )
        except (MissingError, OSError) as error:
            return str(error)
        except proc.CommandError:  # some filters let calls seem to succeed
            return f"bwrap did not end within {PROBE_S:g} s"
    return (
        None
        if completed.returncode == 0
        else completed.stderr.strip() or f"status {completed.returncode}"
    )
