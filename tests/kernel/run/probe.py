"""What a process finds where it runs: all that it may write, see, call and reach.

Run alone by a plain interpreter; writes JSON.  ``PROBE_ASKED`` is a file of JSON: paths to open,
the processes and sockets of others.  What is attempted changes nothing but the trial's own
folders, unless the jail lets it; and calls are made with arguments that no kernel accepts, in case
that one is let through.
"""
# Each of these is one system call, by its name.
# ruff: noqa: PTH101, PTH102, PTH106, PTH108, PTH112, PTH115, PTH116, PTH104, PTH120, PTH208

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

# Calls of which each is a way out, or to more of the host's kernel than anybody needs.
CALLS = {
    "process_vm_readv": 310, "process_vm_writev": 311, "mount": 165, "umount2": 166,
    "pivot_root": 155, "chroot": 161, "mknod": 133, "mknodat": 259, "unshare": 272, "setns": 308,
    "clone3": 435, "keyctl": 250, "add_key": 248, "request_key": 249, "bpf": 321,
    "perf_event_open": 298, "userfaultfd": 323, "kexec_load": 246, "kexec_file_load": 320,
    "init_module": 175, "finit_module": 313, "delete_module": 176, "open_by_handle_at": 304,
    "name_to_handle_at": 303, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "pidfd_open": 434, "pidfd_getfd": 438, "pidfd_send_signal": 424,
    "fsopen": 430, "fsmount": 432, "open_tree": 428, "move_mount": 429, "mount_setattr": 442,
    "syslog": 103, "quotactl": 179, "acct": 163, "swapon": 167, "sethostname": 170,
    "iopl": 172, "ioperm": 173, "modify_ldt": 154, "kcmp": 312, "fanotify_init": 300,
    "clock_settime": 227, "settimeofday": 164, "adjtimex": 159, "setdomainname": 171,
    "migrate_pages": 256, "move_pages": 279, "mbind": 237, "vmsplice": 278, "msgget": 68,
    "semget": 64, "shmget": 29, "mq_open": 240, "x32 read": 0x40000000, "no such call": 2000,
    # Of an older jail, which mounted what it gave: files, and names for sockets and links.
    "socket": 41, "connect": 42, "accept": 43, "bind": 49, "listen": 50, "accept4": 288,
    "getsockopt": 55, "setsockopt": 54, "getsockname": 51, "sendmmsg": 307, "truncate": 76,
    "link": 86, "linkat": 265, "symlink": 88, "symlinkat": 266, "mkdirat": 258, "creat": 85,
    "openat2": 437, "setxattr": 188, "fsetxattr": 190, "flock": 73, "setuid": 105,
    "sched_setaffinity": 203, "setpriority": 141, "ioprio_set": 251, "inotify_init1": 294,
    "capset": 126, "landlock_create_ruleset": 444,
}  # fmt: skip
CLONE, IOCTL, PERSONALITY, PRLIMIT, OPEN, FCNTL = 56, 16, 135, 302, 2, 72
CLONE_NEW = {
    "mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000,
    "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000,
}  # fmt: skip
CLONE_THREAD = 0x10000  # without CLONE_SIGHAND it is refused by every kernel: no child is made
NO_FILE = -1
TERMINAL_CALLS = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "TIOCSCTTY": 0x540E,
                  "SIOCGIFCONF": 0x8912}  # fmt: skip
READ_IMPLIES_EXEC = 0x0400000
F_SETLEASE, F_NOTIFY = 1024, 1026
PTRACE_SEIZE = 0x4206
DEADLINE_S = 60.0

libc = ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: int) -> str:
    """The name of the error that a call ends with; empty: it did not."""
    ctypes.set_errno(0)
    if libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) != -1:
        return ""
    return errno.errorcode[ctypes.get_errno()]


def end_of(act: Callable[[], object]) -> str:
    """The name of the error that ``act`` ends with; empty: it did not."""
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return ""


def opens(path: str, flags: int) -> bool:
    """Whether a path can be opened so."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, flags | os.O_NOCTTY | os.O_NONBLOCK))
        return True
    return False


def is_writable(path: str) -> bool:
    """Whether something can be written there: into a file, or as one in a folder."""
    if not os.path.isdir(path):
        return opens(path, os.O_WRONLY) or opens(path, os.O_RDWR)
    name = f"{path}/made-by-{os.getpid()}"
    made = opens(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    if made:
        os.unlink(name)
    return made or opens(path, os.O_TMPFILE | os.O_WRONLY)


def list_calls() -> dict[str, str]:
    """How each call ends."""
    ends = {name: call(number, *[NO_FILE] * 6) for name, number in CALLS.items()}
    ends |= {f"clone {n}": call(CLONE, CLONE_THREAD | f, 0, 0, 0, 0) for n, f in CLONE_NEW.items()}
    ends |= {name: call(IOCTL, NO_FILE, number, 0) for name, number in TERMINAL_CALLS.items()}
    ends["personality"] = call(PERSONALITY, READ_IMPLIES_EXEC)
    ends["prlimit64 of another"] = call(PRLIMIT, 1, 0, 0, 0)
    ends["F_SETLEASE"] = call(FCNTL, NO_FILE, F_SETLEASE, 0)
    ends["F_NOTIFY"] = call(FCNTL, NO_FILE, F_NOTIFY, 0)
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        ends[f"pair of {kind.name}"] = end_of(partial(socket.socketpair, socket.AF_UNIX, kind))
    return ends


def list_descriptors() -> dict[str, str]:
    """What this process has open."""
    found = {}
    for number in range(256):
        with contextlib.suppress(OSError):
            fcntl.fcntl(number, fcntl.F_GETFD)
            found[str(number)] = os.readlink(f"/proc/self/fd/{number}")
    return found


def change(path: str) -> dict[str, str]:
    """How attempts to change a file that this user owns end; the caller looks at the file."""
    into = "out/taken"
    return {
        "chmod": end_of(lambda: os.chmod(path, 0o777)),  # noqa: S103  it is refused
        "chown": end_of(lambda: os.chown(path, -1, os.getgid())),
        "utime": end_of(lambda: os.utime(path, (1, 1))),
        "truncate": end_of(lambda: os.truncate(path, 0)),
        "open to truncate": end_of(lambda: os.close(os.open(path, os.O_RDONLY | os.O_TRUNC))),
        "open for neither": end_of(lambda: os.close(os.open(path, 3 | os.O_TRUNC))),
        "rename": end_of(lambda: os.rename(path, into)),
        "link": end_of(lambda: os.link(path, into)),
        "unlink": end_of(lambda: os.unlink(path)),
        "mkdir": end_of(lambda: os.mkdir(f"{path}-folder")),
        "rmdir": end_of(lambda: os.rmdir(os.path.dirname(path))),
    }


def reach(process: int) -> dict[str, str]:
    """How attempts to reach another's process end; signal 0 asks only."""
    return {"signal": end_of(lambda: os.kill(process, 0)),
            "trace": call(101, PTRACE_SEIZE, process, 0, 0),
            "memory": end_of(lambda: os.open(f"/proc/{process}/mem", os.O_RDONLY)),
            "files": end_of(lambda: os.listdir(f"/proc/{process}/fd")),
            "folder": end_of(lambda: os.stat(f"/proc/{process}/cwd/."))}  # fmt: skip


def await_looks() -> None:
    """Say that this process is there, and wait until it has been looked at."""
    Path("out/ready").write_text("")  # touch() would ask utime(2), which says that it did
    deadline = time.monotonic() + DEADLINE_S
    while not Path("out/seen").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def main() -> None:
    """Tell all of it."""
    asked = json.loads(Path(os.environ["PROBE_ASKED"]).read_text("utf-8"))
    one, other = socket.socketpair()
    reported = {
        "writable": sorted(path for path in asked["written"] if is_writable(path)),
        "readable": sorted(path for path in asked["read"] if opens(path, os.O_RDONLY)),
        "executable": end_of(lambda: os.execv("/usr/bin/true", ["true"])),  # noqa: S606  it is refused
        "calls": list_calls(),
        "ids": [*os.getresuid(), *os.getresgid(), *os.getgroups()],
        "descriptors": list_descriptors(),
        "environment": sorted(os.environ),
        "changes": {path: change(path) for path in asked["owned"]},
        "processes": {str(process): reach(process) for process in asked["processes"]},
        "sent by an address": end_of(lambda: one.sendto(b"x", asked["socket"])),
        "session": os.getsid(0) == os.getpid(),
        "affinity": len(os.sched_getaffinity(0)),
    }
    other.close()
    await_looks()
    sys.stdout.write(json.dumps(reported))


if __name__ == "__main__":
    main()
