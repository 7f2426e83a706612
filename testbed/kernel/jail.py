"""The jail around a guest: bubblewrap, or a plain stage directory where that cannot be had.

A page's code may break out of the browser and, in seccomp mode, out of the guest's processes into
the guest's kernel, which is an ordinary process of the caller.  The jail is what it then finds: a
read-only /usr, private /tmp and process table, no network, nothing of the caller's files but the
trial's own folder (bwrap(1); docs/security.md).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed import proc
from testbed.errors import MissingError

STAGE = "/stage"
LD_CACHE = Path("/etc/ld.so.cache")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  only asked for its room; UML unlinks its file
MEMORY_FILE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Stage:
    """A prepared place to start a guest: argv prefix, working directory, environment, kernel."""

    prefix: tuple[str, ...]
    directory: Path | None
    environment: dict[str, str]
    kernel: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What a guest is given, as paths of the host."""

    kernel: Path
    bundle: Path
    page: Path
    out: Path


def jail_argv(contents: Contents) -> tuple[str, ...]:
    """The bubblewrap command that a guest's kernel is started with."""
    merged = [("--symlink", f"usr/{name}", f"/{name}") for name in ("bin", "sbin", "lib", "lib64")]
    return (
        *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1"),
        # For root bwrap keeps all capabilities, and /usr could be mounted writable again.
        *("--cap-drop", "ALL", "--clearenv"),
        *("--hostname", "guest", "--ro-bind", "/usr", "/usr"),
        *(word for words in merged for word in words),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--tmpfs", "/tmp", "--setenv", "TMPDIR", "/tmp"),  # noqa: S108  the jail's own
        *("--dir", STAGE, "--dir", f"{STAGE}/etc", "--dir", f"{STAGE}/uml"),
        *("--ro-bind", str(contents.kernel), f"{STAGE}/linux"),
        *("--ro-bind", str(contents.bundle), f"{STAGE}/bundle"),
        *("--ro-bind", str(contents.page), f"{STAGE}/page"),
        *("--bind", str(contents.out), f"{STAGE}/out"),
        *("--ro-bind", str(LD_CACHE), f"{STAGE}/etc/ld.so.cache"),
        # A parent that waits, so that the guest's CPU time is told; not the kernel itself: as
        # process 1 it could not abort, and a panic would hang.
        *("--chdir", STAGE, "--", "/usr/bin/setsid", "--fork", "--wait"),
    )


@contextmanager
def open_stage(contents: Contents, jailed: bool) -> Iterator[Stage]:
    """Prepare the stage; both kinds look the same from inside the guest."""
    if jailed:
        yield Stage(jail_argv(contents), None, {}, f"{STAGE}/linux")
        return
    with TemporaryDirectory(prefix="firstflight-stage-") as name:
        stage = Path(name)
        (stage / "etc").mkdir()
        (stage / "uml").mkdir()
        for link, target in (
            ("bundle", contents.bundle),
            ("page", contents.page),
            ("out", contents.out),
        ):
            (stage / link).symlink_to(target.resolve())
        # A copy: hostfs resolves links on the way to its root, but not those below it.
        shutil.copyfile(LD_CACHE, stage / "etc" / LD_CACHE.name)
        # Ends the guest with this process, as --die-with-parent does in the jail.
        prefix = ("setpriv", "--pdeathsig", "KILL")
        memory = str(memory_directory(stage))
        yield Stage(prefix, stage, {"TMPDIR": memory}, str(contents.kernel.resolve()))


def memory_directory(otherwise: Path) -> Path:
    """Where an unjailed guest's memory file goes: shared memory if it has room and may execute."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return otherwise
    roomy = found.f_bavail * found.f_frsize >= MEMORY_FILE_BYTES
    usable = roomy and not found.f_flag & os.ST_NOEXEC and os.access(SHARED_MEMORY, os.W_OK)
    return SHARED_MEMORY if usable else otherwise


def read_jail_problem() -> str | None:
    """Why guests cannot be jailed on this machine; ``None`` when they can."""
    try:
        done = proc.run(
            (
                *("bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib64"),
                *("/lib64", "--symlink", "usr/lib", "/lib", "--proc", "/proc", "/usr/bin/true"),
            ),
            check=False,
            timeout_s=10,
        )
    except MissingError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip() or f"status {done.returncode}"
