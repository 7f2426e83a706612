"""Application of a combination of mechanisms to a server's namespace, with its exact undo.

On the virtual kernel the patched TCP does it, by sysctls of the namespace; on any other kernel the
BPF program, which is attached for every combination, the default too, so that all pay for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import LabError, MissingError
from testbed.base.namespace import Namespace
from wings.server_loads.mechanisms import program
from wings.server_loads.mechanisms.mechanism import OVERLOAD, settings_of
from wings.server_loads.spec import ServerSpec


@dataclass(frozen=True, slots=True)
class Applied:
    """A combination at work.

    Attributes:
        backlog: what the server has to give to listen(2).
        read_counters: what the BPF program counted; nothing where the kernel itself manages.
    """

    backlog: int
    read_counters: Callable[[], dict[str, int]] = dict


def is_patched(namespace: Namespace) -> bool:
    """Whether this kernel's own TCP knows the mechanisms."""
    try:
        namespace.read_sysctl(OVERLOAD)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def apply_management(
    namespace: Namespace,
    device: str,
    port: int,
    server: ServerSpec,
    object_file: Path | None = None,
) -> Iterator[Applied]:
    """Make the kernel manage connections as ``server`` asks; start it afterwards.

    Args:
        namespace: the server's.
        device: by which clients' packets come in.
        port: of the server; the patched kernel does it for all ports of the namespace.
        server: its mechanism and its queues; listen(2) needs the backlog of ``Applied``.
        object_file: from ``build_program``; needed unless the kernel is patched.

    Raises:
        MissingError: this kernel cannot do it, with what it lacks.
        LabError: a sysctl did not take its value, or not its old one in the end.
    """
    settings = settings_of(server)
    if is_patched(namespace):
        with _written(namespace, settings.patched):
            yield Applied(settings.backlog)
        return
    if object_file is None:
        raise MissingError(
            f"this kernel ({os.uname().release}) has no {OVERLOAD}, and there is no BPF program "
            f"for {server.mechanism!r}; only the virtual kernel does without one"
        )
    with (
        _written(namespace, settings.sysctls),
        program.attach(namespace, device, object_file, settings, port) as read_counters,
    ):
        yield Applied(settings.backlog, read_counters)


@contextmanager
def _written(namespace: Namespace, settings: Mapping[str, str]) -> Iterator[None]:
    """Set sysctls for the time of the block, and restore them after it."""
    try:
        before = {name: namespace.read_sysctl(name) for name in settings}
    except OSError as error:
        raise MissingError(f"this kernel lacks a sysctl that is needed: {error}") from error
    try:
        _write(namespace, settings)
        yield
    finally:
        _write(namespace, before)


def _write(namespace: Namespace, values: Mapping[str, str]) -> None:
    try:
        namespace.write_sysctls(dict(values))
    except OSError as error:
        raise LabError(str(error)) from error
    for name, value in values.items():
        current = namespace.read_sysctl(name)
        if current != value:
            raise LabError(f"{name} is {current!r} in {namespace.name}, asked was {value!r}")
