"""BPF program that manages connections on a kernel as it is: compiled, loaded, read.

The object file is for every kernel: the offsets of the kernel's fields are written into it when it
is loaded.
"""

from __future__ import annotations

import hashlib
import shutil
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.namespace import Namespace
from wings.server_loads.mechanisms import libbpf
from wings.server_loads.mechanisms.mechanism import ABORT_ON_OVERFLOW, SYNCOOKIES, Settings

SOURCE = Path(__file__).with_name("overload.bpf.c")
COMPILER, PACKAGE = "bpf-gcc", "gcc-bpf"
INCLUDES = ("/usr/include/x86_64-linux-gnu", "/usr/include")
NAME = "manage"

OFFSETS = {
    "sk_ack_backlog": "sock.sk_ack_backlog",
    "sk_max_ack_backlog": "sock.sk_max_ack_backlog",
    "accept_queue_qlen": "inet_connection_sock.icsk_accept_queue.qlen",
    "accept_queue_young": "inet_connection_sock.icsk_accept_queue.young",
    "skc_listener": "sock_common.skc_listener",
}
"""What the program calls the fields whose offsets it needs; every socket begins with its kinds."""
COUNTERS = (
    *("syns", "syns_again", "syns_refused", "syns_reset"),
    *("acks", "acks_cookie", "acks_refused", "acks_reset"),
    *("fins", "fins_reset", "longest_accept_queue", "longest_syn_queue", "withheld"),
)
"""As the program's own list has them, whose comments say what each is."""
_LARGEST = frozenset({"longest_accept_queue", "longest_syn_queue"})
_OFFSETS = struct.Struct(f"={len(OFFSETS)}I")
_CONFIGURATION = struct.Struct("=IIIII")  # mode, port, limit, abort, cookies
_COMPILE_S = 60.0


def build_program(cache: Path) -> Path:
    """Compile the program, or find what it was compiled to in ``cache``; return the object file.

    Its name in the cache is that of the source, the compiler and how it is called.

    Raises:
        MissingError: the compiler is not installed.
        OSError: the cache cannot be written.
    """
    if shutil.which(COMPILER) is None:
        raise MissingError(
            f"there is no {COMPILER} to compile the BPF program of the mechanisms with; "
            f"install its package: apt-get install --no-install-recommends {PACKAGE}"
        )
    flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-gbtf")
    argv = (COMPILER, *flags, *(word for path in INCLUDES for word in ("-I", path)))
    identity = hashlib.sha256(SOURCE.read_bytes())
    identity.update(proc.run((COMPILER, "--version")).stdout.encode())
    identity.update("\0".join(argv).encode())
    target = cache / f"overload-{identity.hexdigest()[:16]}.bpf.o"
    if not target.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as folder:
            compiled = Path(folder) / target.name
            proc.run((*argv, "-c", str(SOURCE), "-o", str(compiled)), timeout_s=_COMPILE_S)
            compiled.rename(target)
    return target


@contextmanager
def attach(
    namespace: Namespace, device: str, path: Path, settings: Settings, port: int
) -> Iterator[Callable[[], dict[str, int]]]:
    """Attach the object file ``path`` to what comes in by a device; the undo removes all of it.

    It does what ``settings`` say for one port of the server.  What is yielded returns each of
    ``COUNTERS``, over all processors.

    Raises:
        MissingError: the kernel lacks what it needs, or this process the privilege.
    """
    sysctls = settings.sysctls
    aborts, cookies = sysctls[ABORT_ON_OVERFLOW] == "1", sysctls[SYNCOOKIES] != "0"
    asked = _CONFIGURATION.pack(settings.mode, port, settings.limit, aborts, cookies)
    with ExitStack() as undo:
        try:
            offsets = _OFFSETS.pack(*libbpf.read_offsets(*OFFSETS.values()))
            program, configuration, counters = undo.enter_context(
                libbpf.loaded(path, NAME, offsets, "configuration", "counters")
            )
            libbpf.write_map(configuration, asked)
            with namespace.entered():
                index = socket.if_nametoindex(device)
                libbpf.attach(index, program)
            undo.callback(_detach, namespace, index)
        except OSError as error:
            raise MissingError(
                f"cannot attach the BPF program of the mechanisms to {device} in {namespace.name}: "
                f"{error}; it needs root, CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS, "
                "CONFIG_NET_CLS_BPF, CONFIG_NET_SCH_INGRESS and CONFIG_DEBUG_INFO_BTF"
            ) from error
        yield partial(_read_counters, counters)


def _read_counters(descriptor: int) -> dict[str, int]:
    size = 8 * len(COUNTERS)
    data = libbpf.read_map(descriptor, size * libbpf.count_processors())
    rows = struct.iter_unpack(f"={len(COUNTERS)}Q", data)
    return {
        name: max(values) if name in _LARGEST else sum(values)
        for name, values in zip(COUNTERS, zip(*rows, strict=True), strict=True)
    }


def _detach(namespace: Namespace, device: int) -> None:
    with namespace.entered():
        libbpf.detach(device)
