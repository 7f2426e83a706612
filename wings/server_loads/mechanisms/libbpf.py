"""Bindings to libbpf, which comes with iproute2: object files, clsact, offsets in this kernel.

Source: libbpf.h, bpf.h and btf.h of libbpf 1.1; its structures begin with their size, so that later
versions read them as well.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from testbed.base.errors import MissingError

LIBRARY = "libbpf.so.1"
VMLINUX = "/sys/kernel/btf/vmlinux"
_INGRESS = 1  # enum bpf_tc_attach_point
_BOTH_WAYS = 3
_STRUCT = 4  # BTF_KIND_STRUCT
_LOG_BYTES = 1 << 20
_LOG_LINES = 12
_POINTERS = (
    *("bpf_object__open_file", "bpf_object__find_program_by_name"),
    *("bpf_object__find_map_by_name", "btf__load_vmlinux_btf", "btf__type_by_id"),
)
"""Functions that return one."""
_TYPE = struct.Struct("=III")  # struct btf_type: name, kind and number of members, size
_MEMBER = struct.Struct("=III")  # struct btf_member: name, type, offset in bits


class _Hook(ctypes.Structure):
    """``struct bpf_tc_hook``."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("device", ctypes.c_int),
        ("attach_point", ctypes.c_int),
        ("parent", ctypes.c_uint32),
    )


class _Filter(ctypes.Structure):
    """``struct bpf_tc_opts``."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("program", ctypes.c_int),
        ("flags", ctypes.c_uint32),
        ("program_id", ctypes.c_uint32),
        ("handle", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
    )


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(LIBRARY, use_errno=True)
    except OSError as error:
        raise MissingError(f"{LIBRARY}: {error}; install its package: libbpf1") from None
    library.libbpf_set_print(None)  # what it says is in the errors
    for name in _POINTERS:
        getattr(library, name).restype = ctypes.c_void_p
    library.btf__name_by_offset.restype = ctypes.c_char_p
    return library


def _check(result: int, what: str) -> int:
    """Return what libbpf returned, which is negative for an error.

    Raises:
        OSError: it was.
    """
    if result < 0:
        raise OSError(-result, f"{what}: {os.strerror(-result)}")
    return result


def count_processors() -> int:
    """Return how many values a map of a value for each processor has."""
    return _check(_library().libbpf_num_possible_cpus(), "number of processors")


@contextmanager
def loaded(path: Path, name: str, constants: bytes, *maps: str) -> Iterator[tuple[int, ...]]:
    """Load a program of an object file; yield the descriptors of it and of its ``maps``.

    ``constants`` become the section ``.rodata``, which the verifier knows.

    Raises:
        OSError: the kernel refuses it; the end of what its verifier says is in the message.
    """
    library = _library()
    whole = ctypes.c_void_p(library.bpf_object__open_file(bytes(path), None))
    if not whole:
        raise OSError(ctypes.get_errno(), f"{path}: it cannot be read")
    try:
        program = ctypes.c_void_p(library.bpf_object__find_program_by_name(whole, name.encode()))
        log = ctypes.create_string_buffer(_LOG_BYTES)
        library.bpf_program__set_log_buf(program, log, ctypes.c_size_t(_LOG_BYTES))
        known = ctypes.c_void_p(library.bpf_object__find_map_by_name(whole, b".rodata"))
        size = ctypes.c_size_t(len(constants))
        _check(library.bpf_map__set_initial_value(known, constants, size), "constants")
        status = library.bpf_object__load(whole)
        if status < 0:
            tail = "\n".join(log.value.decode(errors="replace").splitlines()[-_LOG_LINES:])
            raise OSError(-status, f"BPF program {name}: {os.strerror(-status)}\n{tail}".rstrip())
        found = (library.bpf_object__find_map_fd_by_name(whole, each.encode()) for each in maps)
        yield library.bpf_program__fd(program), *found
    finally:
        library.bpf_object__close(whole)


def write_map(descriptor: int, value: bytes) -> None:
    """Write the one entry of a map."""
    key = ctypes.c_uint32(0)
    status = _library().bpf_map_update_elem(
        descriptor, ctypes.byref(key), value, ctypes.c_uint64(0)
    )
    _check(status, "BPF map, writing")


def read_map(descriptor: int, value_bytes: int) -> bytes:
    """Read the one entry of a map, ``value_bytes`` long (of all processors)."""
    key, value = ctypes.c_uint32(0), ctypes.create_string_buffer(value_bytes)
    status = _library().bpf_map_lookup_elem(descriptor, ctypes.byref(key), value)
    _check(status, "BPF map, reading")
    return value.raw


def attach(device: int, program: int) -> None:
    """Run a program for what comes in by a device of this thread's namespace.

    Raises:
        FileExistsError: the device has an ingress or clsact discipline already.
        OSError: the kernel lacks clsact or cls_bpf.
    """
    hook = _hook_of(device, _INGRESS)
    entry = _Filter(size=ctypes.sizeof(_Filter), program=program, handle=1, priority=1)
    _check(_library().bpf_tc_hook_create(ctypes.byref(hook)), f"clsact on device {device}")
    try:
        status = _library().bpf_tc_attach(ctypes.byref(hook), ctypes.byref(entry))
        _check(status, f"BPF program on device {device}")
    except OSError:
        detach(device)
        raise


def detach(device: int) -> None:
    """Remove from a device what ``attach`` made: the program, and clsact itself.

    Raises:
        OSError: it was not there.
    """
    hook = _hook_of(device, _BOTH_WAYS)  # of a hook for both, the discipline itself goes
    _check(_library().bpf_tc_hook_destroy(ctypes.byref(hook)), f"clsact on device {device}, undo")


def _hook_of(device: int, attach_point: int) -> _Hook:
    return _Hook(size=ctypes.sizeof(_Hook), device=device, attach_point=attach_point)


def read_offsets(*paths: str) -> list[int]:
    """Return the offsets in bytes of fields of this kernel, such as ``sock.sk_ack_backlog``.

    Each word after the first is a field of the structure, or of a nameless one in it; between dots
    is the field of a field.

    Raises:
        MissingError: the kernel has no type information, or no such field.
    """
    btf = ctypes.c_void_p(_library().btf__load_vmlinux_btf())
    if not btf:
        raise MissingError(
            f"this kernel has no type information ({VMLINUX}): "
            "it has to be built with CONFIG_DEBUG_INFO_BTF"
        )
    try:
        return [_offset_of(btf, path) for path in paths]
    finally:
        _library().btf__free(btf)


def _offset_of(btf: ctypes.c_void_p, path: str) -> int:
    first, *fields = path.split(".")
    kind = _library().btf__find_by_name_kind(btf, first.encode(), _STRUCT)
    bits = 0
    for field in fields:
        member = _find_member(btf, kind, field.encode()) if kind > 0 else None
        if member is None:
            raise MissingError(f"this kernel has no {path}: the BPF program does not fit it")
        kind, position = member
        bits += position
    return bits // 8


def _find_member(btf: ctypes.c_void_p, kind: int, name: bytes) -> tuple[int, int] | None:
    """Type and offset in bits of a member, also of nameless structures and unions within."""
    library = _library()
    address = library.btf__type_by_id(btf, ctypes.c_uint32(kind))
    if not address:
        return None
    _, info, _ = _TYPE.unpack(ctypes.string_at(address, _TYPE.size))
    count = info & 0xFFFF
    bitfields = info >> 31  # then the upper byte of an offset is a width
    members = ctypes.string_at(address + _TYPE.size, count * _MEMBER.size)
    for of_name, of_type, offset in _MEMBER.iter_unpack(members):
        position = offset & 0xFFFFFF if bitfields else offset
        called = library.btf__name_by_offset(btf, ctypes.c_uint32(of_name))
        if called == name:
            return of_type, position
        if not called and (inner := _find_member(btf, of_type, name)) is not None:
            return inner[0], position + inner[1]
    return None
