"""Application of a combination of mechanisms to a server's namespace, with its exact undo.

On the virtual kernel the patched TCP does it, by sysctls of the namespace; on any other kernel the
BPF program, which is attached for every combination, the default too, so that all pay for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testbed.base.errors import LabError, MissingError
from testbed.base.namespace import Namespace
from wings.server_loads.mechanisms import program
from wings.server_loads.mechanisms.mechanism import Management, Queues, settings_of

OVERLOAD = "net.ipv4.tcp_overload"
ACCEPT_LIMIT = "net.ipv4.tcp_accept_limit"


@dataclass(frozen=True, slots=True)
class Applied:
    """A combination at work.

    Attributes:
        backlog: what the server has to give to listen(2).
        by: what does it: the patched kernel or the BPF program.
        attached: the BPF program, which counts what it did.
    """

    backlog: int
    by: Literal["kernel", "bpf"]
    attached: program.Attached | None = None

    def read_counters(self) -> dict[str, int]:
        """What the BPF program counted; nothing where the kernel itself manages."""
        return {} if self.attached is None else self.attached.read_counters()

    def count_withheld(self) -> int:
        """How many packets reached the server's device, and not its IP, by the BPF program."""
        return self.read_counters().get("withheld", 0)


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
    management: Management,
    queues: Queues,
    object_file: Path | None = None,
) -> Iterator[Applied]:
    """Make the server in ``namespace`` manage connections so; start it afterwards.

    Args:
        namespace: the server's.
        device: by which clients' packets come in.
        port: of the server; the patched kernel does it for all ports of the namespace.
        management: the mechanisms.
        queues: of the server's socket; listen(2) needs the backlog of ``Applied``.
        object_file: from ``build_program``; needed unless the kernel is patched.

    Raises:
        MissingError: this kernel cannot do it, with what it lacks.
        LabError: a sysctl did not take its value, or not its old one in the end.
    """
    settings = settings_of(management, queues)
    if is_patched(namespace):
        own = {OVERLOAD: str(int(settings.mode)), ACCEPT_LIMIT: str(settings.limit)}
        with _written(namespace, settings.sysctls | own):
            yield Applied(settings.backlog, "kernel")
        return
    if object_file is None:
        raise MissingError(
            f"this kernel ({os.uname().release}) has no {OVERLOAD}, and there is no BPF program "
            f"for {management.name!r}; only the virtual kernel does without one"
        )
    with (
        _written(namespace, settings.sysctls),
        program.attach(namespace, device, object_file) as attached,
    ):
        attached.configure(settings, port)
        yield Applied(settings.backlog, "bpf", attached)


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
