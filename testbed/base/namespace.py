"""Network namespaces by name: a command prefix, a way to step inside (ip-netns(8), setns(2))."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNET = 0x40000000
NETNS_DIRECTORY = Path("/run/netns")


@dataclass(frozen=True, slots=True)
class Namespace:
    """A named network namespace that exists under /run/netns."""

    name: str

    @property
    def prefix(self) -> tuple[str, ...]:
        """Argv prefix that runs a command inside; also binds /etc/netns/NAME/* over /etc."""
        return ("ip", "netns", "exec", self.name)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put this thread inside: sockets made here stay here; the undo steps out again."""
        outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            inside = os.open(NETNS_DIRECTORY / self.name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _setns(inside, self.name)
            finally:
                os.close(inside)
            try:
                yield
            finally:
                _setns(outside, "the previous namespace")
        finally:
            os.close(outside)

    def read_sysctl(self, name: str) -> str:
        """Return value of ``net.*`` sysctl ``name`` (dots) inside, with single spaces."""
        with self.entered():
            return " ".join(_sysctl_path(name).read_text().split())

    def write_sysctls(self, values: dict[str, str]) -> None:
        """Set ``net.*`` sysctls inside this namespace only.

        Raises:
            OSError: the kernel has no such sysctl, or refuses the value.
        """
        with self.entered():
            for name, value in values.items():
                try:
                    _sysctl_path(name).write_text(value)
                except OSError as error:
                    what = f"cannot set {name} to {value!r} in namespace {self.name}"
                    raise OSError(error.errno, f"{what}: {error.strerror}") from error


def _sysctl_path(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")


def _setns(descriptor: int, name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot enter network namespace {name}: {os.strerror(error)}")
