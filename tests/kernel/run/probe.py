"""What a process finds where it runs: all that it may write, see and call.  It changes nothing.

Run alone by a plain interpreter; writes JSON.  What may be written is asked by access(2) only, and
calls are made with arguments that no kernel accepts, in case that one is let through.
"""

import ctypes
import errno
import json
import os
import socket
import sys
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
}  # fmt: skip
CLONE, IOCTL, PERSONALITY, PRLIMIT = 56, 16, 135, 302
CLONE_NEW = {
    "mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000,
    "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000,
}  # fmt: skip
CLONE_THREAD = 0x10000  # without CLONE_SIGHAND it is refused by every kernel: no child is made
NO_FILE = -1
TERMINAL_CALLS = {
    "TIOCSTI": 0x5412,
    "TIOCLINUX": 0x541C,
    "TIOCSCTTY": 0x540E,
    "SIOCGIFCONF": 0x8912,
}
READ_IMPLIES_EXEC = 0x0400000
FAMILIES = (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_VSOCK)

libc = ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: int) -> str:
    """The name of the error that a call ends with; empty: it did not."""
    ctypes.set_errno(0)
    if (
        libc.syscall(ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments))
        != -1
    ):
        return ""
    return errno.errorcode[ctypes.get_errno()]


def list_writable() -> list[str]:
    """Every path that may be written, links aside; read-only trees without devices are left out."""
    writable, waiting = [], ["/"]
    while waiting:
        folder = waiting.pop()
        if os.access(folder, os.W_OK):
            writable.append(folder)
        flags = os.statvfs(folder).f_flag
        if folder == "/usr" and flags & os.ST_RDONLY and flags & os.ST_NODEV:
            continue
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif os.access(entry.path, os.W_OK):
                    writable.append(entry.path)
            except OSError:
                continue
    return sorted(writable)


def list_calls() -> dict[str, str]:
    """How each call ends."""
    ends = {name: call(number, *[NO_FILE] * 6) for name, number in CALLS.items()}
    ends |= {f"clone {n}": call(CLONE, CLONE_THREAD | f, 0, 0, 0, 0) for n, f in CLONE_NEW.items()}
    ends |= {name: call(IOCTL, NO_FILE, number, 0) for name, number in TERMINAL_CALLS.items()}
    ends["personality"] = call(PERSONALITY, READ_IMPLIES_EXEC)
    ends["prlimit64 of another"] = call(PRLIMIT, 1, 0, 0, 0)
    for family in FAMILIES:
        try:
            socket.socket(family, socket.SOCK_RAW).close()
            ends[family.name] = ""
        except OSError as error:
            ends[family.name] = errno.errorcode[error.errno or 0]
    return ends


def read_lines(path: str) -> list[str]:
    """The lines of a file of the kernel's."""
    return Path(path).read_text("utf-8").splitlines()


def list_descriptors() -> dict[str, str]:
    """What this process has open, but for the listing itself."""
    links = list(Path("/proc/self/fd").iterdir())
    return {link.name: str(link.readlink()) for link in links if os.path.lexists(link)}


def main() -> None:
    """Tell all of it."""
    reported = {
        "writable": list_writable(),
        "calls": list_calls(),
        "ids": [*os.getresuid(), *os.getresgid(), *os.getgroups()],
        "status": {
            w[0].rstrip(":"): w[1:] for w in map(str.split, read_lines("/proc/self/status"))
        },
        "processes": sorted(int(path.name) for path in Path("/proc").glob("[0-9]*")),
        "descriptors": list_descriptors(),
        "interfaces": [line.split(":")[0].strip() for line in read_lines("/proc/net/dev")[2:]],
        "sockets": read_lines("/proc/net/unix")[1:],
        "session": os.getsid(0),
        "suid mounts": [
            line for line in read_lines("/proc/self/mountinfo") if "nosuid" not in line.split()[5]
        ],
    }
    sys.stdout.write(json.dumps(reported))


if __name__ == "__main__":
    main()
