"""Network namespaces by name: made, entered, or as a command prefix (ip-netns(8), setns(2))."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNET = 0x40000000
MS_BIND, MNT_DETACH = 0x1000, 0x2
NETNS_DIRECTORY = Path("/run/netns")


@dataclass(frozen=True, slots=True)
class Namespace:
    """A named network namespace that exists under /run/netns."""

    name: str

    @property
    def path(self) -> Path:
        """The file that stands for it, as ip-netns(8) has it."""
        return NETNS_DIRECTORY / self.name

    @property
    def prefix(self) -> tuple[str, ...]:
        """Argv prefix that runs a command inside; also binds /etc/netns/NAME/* over /etc."""
        return ("ip", "netns", "exec", self.name)

    @contextmanager
    def opened(self) -> Iterator[int]:
        """Yield a descriptor of it, for messages that name it (rtnetlink(7))."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put this thread inside: sockets made here stay here; the undo steps out again."""
        outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            with self.opened() as inside:
                _setns(inside, self.name)
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
        if not values:
            return
        with self.entered():
            for name, value in values.items():
                try:
                    _sysctl_path(name).write_text(value)
                except OSError as error:
                    what = f"cannot set {name} to {value!r} in namespace {self.name}"
                    raise OSError(error.errno, f"{what}: {error.strerror}") from error


@contextmanager
def new_namespace(name: str) -> Iterator[Namespace]:
    """Make a network namespace as ``ip netns add`` does; the undo removes its name.

    It ends, with every device in it, when nothing runs in it and no socket is open there.

    Raises:
        OSError: the name is taken, or this process may not make one.
    """
    namespace = Namespace(name)
    path = namespace.path
    NETNS_DIRECTORY.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0))
    except OSError as error:
        what = f"cannot make network namespace {name}"
        raise OSError(error.errno, f"{what}: {error.strerror}") from error
    try:
        outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _call("unshare", CLONE_NEWNET, of=name)
            try:
                current = b"/proc/thread-self/ns/net"
                _call("mount", current, bytes(path), b"none", MS_BIND, None, of=name)
            finally:
                _setns(outside, "the previous namespace")
        finally:
            os.close(outside)
        yield namespace
    finally:
        with suppress(OSError):
            _call("umount2", bytes(path), MNT_DETACH, of=name)
        path.unlink(missing_ok=True)


def _sysctl_path(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")


def _setns(descriptor: int, name: str) -> None:
    _call("setns", descriptor, CLONE_NEWNET, of=name)


def _call(name: str, *arguments: object, of: str) -> None:
    """Make one system call for namespace ``of``.

    Raises:
        OSError: it failed.
    """
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}(2) for network namespace {of}: {os.strerror(error)}")
