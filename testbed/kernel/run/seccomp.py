"""System call filter of the jail: what a guest's kernel needs of the host's, and nothing else.

A classic BPF program as seccomp(2) takes it.  A call that is not listed does not exist (ENOSYS);
a listed one with arguments that no guest needs is not permitted (EPERM); and what Landlock would
let through, but no trial needs, has no effect.  The list was found by
tracing guests of both kernels (strace(1)): docs/decisions/sandbox.md.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass

ALLOWED: dict[str, int] = {
    # Files: the guest's hostfs.
    "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8,
    "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "pipe": 22,
    "select": 23, "dup": 32, "dup2": 33, "sendfile": 40, "fsync": 74,
    "fdatasync": 75, "ftruncate": 77, "getcwd": 79, "chdir": 80, "fchdir": 81, "rename": 82,
    "unlink": 87, "readlink": 89, "umask": 95, "statfs": 137, "fstatfs": 138, "getdents64": 217,
    "fadvise64": 221, "newfstatat": 262, "unlinkat": 263, "renameat": 264, "readlinkat": 267,
    "faccessat": 269, "pselect6": 270, "ppoll": 271, "fallocate": 285, "dup3": 292, "pipe2": 293,
    "preadv": 295, "renameat2": 316, "memfd_create": 319, "statx": 332, "close_range": 436,
    "faccessat2": 439,
    # Memory: that of the guest is a file, which its processes map.
    "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "mremap": 25, "madvise": 28,
    # Signals, time and waiting.
    "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pause": 34, "nanosleep": 35,
    "alarm": 37, "setitimer": 38, "gettimeofday": 96, "rt_sigpending": 127,
    "rt_sigtimedwait": 128, "rt_sigsuspend": 130, "sigaltstack": 131, "time": 201,
    "futex": 202, "epoll_create": 213, "restart_syscall": 219, "timer_create": 222,
    "timer_settime": 223, "timer_gettime": 224, "timer_getoverrun": 225, "timer_delete": 226,
    "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "epoll_wait": 232,
    "epoll_ctl": 233, "epoll_pwait": 281, "signalfd": 282, "signalfd4": 289, "eventfd2": 290,
    "epoll_create1": 291,
    # Processes: each of the guest's is one of the host's, led by ptrace(2) or a filter of its own.
    "sched_yield": 24, "getpid": 39, "fork": 57, "vfork": 58, "execve": 59, "exit": 60,
    "wait4": 61, "kill": 62, "uname": 63, "ptrace": 101, "getuid": 102, "getgid": 104,
    "geteuid": 107, "getegid": 108, "setpgid": 109, "getppid": 110, "getpgrp": 111,
    "setsid": 112, "getgroups": 115, "getresuid": 118, "getresgid": 120, "getpgid": 121,
    "getsid": 124, "prctl": 157, "arch_prctl": 158, "gettid": 186, "tkill": 200,
    "sched_getaffinity": 204, "set_tid_address": 218, "exit_group": 231, "tgkill": 234,
    "waitid": 247, "set_robust_list": 273, "seccomp": 317, "getrandom": 318, "execveat": 322,
    "rseq": 334, "getrlimit": 97, "getrusage": 98, "sysinfo": 99,
    # Messages to the guest's own processes, over pairs of sockets.
    "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "shutdown": 48,
}  # fmt: skip
"""Calls that may be made with any arguments, and their numbers on x86-64."""


IGNORED: dict[str, int] = {
    "mkdir": 83, "rmdir": 84, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94,
    "utime": 132, "utimes": 235, "fchownat": 260, "futimesat": 261, "fchmodat": 268,
    "utimensat": 280,
}  # fmt: skip
"""Calls that do nothing and say that they did: Landlock does not hold modes, owners and times.

A folder is made only for a kernel's ``umid``, which has one; a trial leaves none."""


@dataclass(frozen=True, slots=True)
class Only:
    """A call each of whose ``arguments`` (from 0; their low 32 bits count) is one of its values."""

    number: int
    arguments: dict[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Without:
    """A call whose argument (from 0; its low 32 bits count) must have no bit of ``mask``."""

    number: int
    argument: int
    mask: int


@dataclass(frozen=True, slots=True)
class FileOpening:
    """A call whose argument (from 0) are the flags of open(2): what is truncated is written to.

    Landlock before version 3 does not see truncation, but that a file is opened for writing.  An
    access mode of 3, which is neither, it sees as nothing at all.
    """

    number: int
    argument: int


CLONE_NEW = 0x7E020000  # every CLONE_NEW* that clone(2) takes
ADDR_NO_RANDOMIZE = 0x0040000
# TCGETS to TCSETSF, TIOCGWINSZ, FIONBIO, FIOCLEX, FIOASYNC: what the kernel asks of its console.
TERMINAL = (0x5401, 0x5402, 0x5403, 0x5404, 0x5413, 0x5421, 0x5451, 0x5452)
# F_DUPFD to F_GETSIG, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS: no leases, no notices.
DESCRIPTOR = (*range(12), 1030, 1033, 1034)
AF_UNIX = 1
# SOCK_STREAM and SOCK_SEQPACKET with SOCK_NONBLOCK and SOCK_CLOEXEC: a datagram has an address.
CONNECTED = tuple(kind | flags for kind in (1, 5) for flags in (0, 0x800, 0x80000, 0x80800))
NARROWED: dict[str, Only | Without | FileOpening] = {
    "open": FileOpening(2, 1),
    "openat": FileOpening(257, 2),
    "clone": Without(56, 0, CLONE_NEW),
    "fcntl": Only(72, {1: DESCRIPTOR}),
    "ioctl": Only(16, {1: TERMINAL}),
    "personality": Only(135, {0: (0, ADDR_NO_RANDOMIZE, 0xFFFFFFFF)}),
    "prlimit64": Only(302, {0: (0,)}),
    "socketpair": Only(53, {0: (AF_UNIX,), 1: CONNECTED}),
}
"""Calls that may be made with some arguments only."""

# include/uapi/linux/{bpf_common,seccomp,audit}.h
_LOAD, _JUMP, _RETURN = 0x20, 0x05, 0x06
_EQUAL, _GREATER, _AT_LEAST, _ANY_BIT = 0x10, 0x20, 0x30, 0x40
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_ARCH_X86_64 = 0xC000003E
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_MISSING = _ERRNO | errno.ENOSYS
_FORBIDDEN = _ERRNO | errno.EPERM
_DONE = _ERRNO  # 0: without effect

_Instruction = tuple[int, int, int, int]


def filter_program() -> bytes:
    """Return the filter as seccomp(2) takes it: ``sock_filter[]``.

    Calls of another architecture do not exist either; those of x32 have numbers beyond all of
    ours.
    """
    program = [(_LOAD, 0, 0, _ARCH), *_unless(_ARCH_X86_64, [(_RETURN, 0, 0, _MISSING)])]
    program.append((_LOAD, 0, 0, _NUMBER))
    for rule in NARROWED.values():
        block = _test(rule)
        program += [(_JUMP | _EQUAL, 0, len(block), rule.number), *block]
    for number in IGNORED.values():
        program += [(_JUMP | _EQUAL, 0, 1, number), (_RETURN, 0, 0, _DONE)]
    program += _ladder(_runs(ALLOWED.values()))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _unless(value: int, otherwise: list[_Instruction]) -> list[_Instruction]:
    return [(_JUMP | _EQUAL, len(otherwise), 0, value), *otherwise]


def _test(rule: Only | Without | FileOpening) -> list[_Instruction]:
    """Judge a call by its arguments."""
    allow, forbid = (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _FORBIDDEN)
    if isinstance(rule, Without):
        return [_argument(rule.argument), (_JUMP | _ANY_BIT, 1, 0, rule.mask), allow, forbid]
    if isinstance(rule, FileOpening):
        return [
            _argument(rule.argument),
            (_JUMP | _ANY_BIT, 0, 1, os.O_WRONLY),
            (_JUMP | _ANY_BIT, 2, 3, os.O_RDWR),  # both: 3
            (_JUMP | _ANY_BIT, 2, 0, os.O_RDWR),
            (_JUMP | _ANY_BIT, 0, 1, os.O_TRUNC),
            forbid, allow,
        ]  # fmt: skip
    program: list[_Instruction] = []
    for argument, values in rule.arguments.items():
        left = range(len(values), 0, -1)
        tests = [(_JUMP | _EQUAL, ahead, 0, v) for ahead, v in zip(left, values, strict=True)]
        program += [_argument(argument), *tests, forbid]
    return [*program, allow]


def _argument(number: int) -> _Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * number)


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the ascending runs of consecutive numbers: the first and the last of each."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _ladder(runs: list[tuple[int, int]]) -> list[_Instruction]:
    """Allow a loaded number that is in one of ``runs``; each step ends or goes on to the next."""
    program: list[_Instruction] = []
    for index, (first, last) in enumerate(runs):
        after = 2 * (len(runs) - index - 1)  # instructions between this step and the two ends
        program.append((_JUMP | _AT_LEAST, 0, after + 1, first))
        program.append((_JUMP | _GREATER, 0, after + 1, last))
    return [*program, (_RETURN, 0, 0, _MISSING), (_RETURN, 0, 0, _ALLOW)]
