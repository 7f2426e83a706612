"""BPF program that manages connections on a kernel as it is: compiled, filled in, loaded, read.

The object file is for every kernel: external symbols stand for the maps and for the offsets of the
kernel's fields, and are filled in when it is loaded (ELF relocations, elf(5)).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
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
SECTION = "classifier"

OFFSETS = {
    "sk_ack_backlog": "sock.sk_ack_backlog",
    "sk_max_ack_backlog": "sock.sk_max_ack_backlog",
    "accept_queue_qlen": "inet_connection_sock.icsk_accept_queue.qlen",
    "accept_queue_young": "inet_connection_sock.icsk_accept_queue.young",
    "skc_listener": "sock_common.skc_listener",
}
"""External symbols and the fields whose offsets they are; every socket begins with its kinds."""
COUNTERS = (
    *("syns", "syns_again", "syns_refused", "syns_reset"),
    *("acks", "acks_cookie", "acks_refused", "acks_reset"),
    *("fins", "fins_reset", "longest_accept_queue", "longest_syn_queue", "withheld"),
)
"""As the program's own list has them, whose comments say what each is."""
_LARGEST = frozenset({"longest_accept_queue", "longest_syn_queue"})
_CONFIGURATION = struct.Struct("=IIIII")  # mode, port, limit, abort, cookies
_COMPILE_S = 60.0

_ELF = struct.Struct("<40xQ10xHHH")  # section headers: where, size of one, how many, their names
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QII")  # offset, type, symbol
_RELOCATIONS = 9  # sh_type
_LOAD_CONSTANT = 1  # R_BPF_64_64
_INSTRUCTION = struct.Struct("<BBhi")
_MAP = 1  # BPF_PSEUDO_MAP_FD


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
    flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding")
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


def read_object(path: Path) -> tuple[bytes, list[tuple[int, str]]]:
    """Return the instructions of an object file, and where which symbol has to be filled in.

    Raises:
        ValueError: there is something in it that cannot be filled in, such as a function call.
    """
    data = path.read_bytes()
    start, size, count, names_index = _ELF.unpack_from(data)
    headers = [_SECTION.unpack_from(data, start + i * size) for i in range(count)]

    def content(header: tuple[int, ...]) -> bytes:
        return data[header[4] : header[4] + header[5]]

    names = content(headers[names_index])
    code = next(i for i, header in enumerate(headers) if _text(names, header[0]) == SECTION)
    places = []
    for header in headers:
        if header[1] != _RELOCATIONS or header[7] != code:
            continue
        symbols = headers[header[6]]
        texts = content(headers[symbols[6]])
        symbol_entries = list(_SYMBOL.iter_unpack(content(symbols)))
        for offset, kind, symbol in _RELOCATION.iter_unpack(content(header)):
            name = _text(texts, symbol_entries[symbol][0])
            if kind != _LOAD_CONSTANT:
                raise ValueError(f"{path}: {name}: relocation of kind {kind}, a call or a variable")
            places.append((offset, name))
    return content(headers[code]), places


def _text(table: bytes, start: int) -> str:
    return table[start : table.index(b"\0", start)].decode()


def fill_in(
    instructions: bytes,
    places: Iterable[tuple[int, str]],
    maps: Mapping[str, int],
    offsets: Mapping[str, int],
) -> bytes:
    """Return the instructions with descriptors of maps and offsets of fields in their places.

    Raises:
        KeyError: the program asks for what is in neither.
    """
    code = bytearray(instructions)
    for place, name in places:
        operation, registers, jump, _ = _INSTRUCTION.unpack_from(code, place)
        value = maps[name] if name in maps else offsets[name]
        source = _MAP << 4 if name in maps else 0
        _INSTRUCTION.pack_into(code, place, operation, registers & 0xF | source, jump, value)
    return bytes(code)


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
    with ExitStack() as undo:
        try:
            offsets = libbpf.read_offsets(*OFFSETS.values())
            maps = {}
            for name, kind, size in (
                ("configuration", libbpf.ARRAY, _CONFIGURATION.size),
                ("counters", libbpf.PERCPU_ARRAY, 8 * len(COUNTERS)),
            ):
                maps[name] = libbpf.create_map(kind, name, size)
                undo.callback(os.close, maps[name])
            sysctls = settings.sysctls
            aborts, cookies = sysctls[ABORT_ON_OVERFLOW] == "1", sysctls[SYNCOOKIES] != "0"
            libbpf.write_map(
                maps["configuration"],
                _CONFIGURATION.pack(settings.mode, port, settings.limit, aborts, cookies),
            )
            by_symbol = {symbol: offsets[field] for symbol, field in OFFSETS.items()}
            code = fill_in(*read_object(path), maps, by_symbol)
            program = libbpf.load_program(NAME, code)
            undo.callback(os.close, program)
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
        yield partial(_read_counters, maps["counters"])


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
