"""Bindings to libbpf, which comes with iproute2: maps, programs, clsact, offsets in this kernel.

Source: libbpf.h, bpf.h and btf.h of libbpf 1.1; its structures begin with their size, so that later
versions read them as well.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from functools import cache

from testbed.base.errors import MissingError

LIBRARY = "libbpf.so.1"
VMLINUX = "/sys/kernel/btf/vmlinux"
ARRAY, PERCPU_ARRAY = 2, 6  # enum bpf_map_type
_SCHED_CLS = 3  # enum bpf_prog_type
_INGRESS = 1  # enum bpf_tc_attach_point
_BOTH_WAYS = 3
_STRUCT = 4  # BTF_KIND_STRUCT
_LOG_BYTES = 1 << 20
_LOG_LINES = 12
_TYPE = struct.Struct("=III")  # struct btf_type: name, kind and number of members, size
_MEMBER = struct.Struct("=III")  # struct btf_member: name, type, offset in bits


class _ProgramOptions(ctypes.Structure):
    """``struct bpf_prog_load_opts``, up to the log."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("numbers", ctypes.c_uint32 * 9),
        ("descriptors", ctypes.c_void_p),
        ("functions", ctypes.c_void_p),
        ("function_counts", ctypes.c_uint32 * 2),
        ("lines", ctypes.c_void_p),
        ("line_counts", ctypes.c_uint32 * 2),
        ("log_level", ctypes.c_uint32),
        ("log_size", ctypes.c_uint32),
        ("log", ctypes.c_void_p),
    )


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
    library.btf__load_vmlinux_btf.restype = ctypes.c_void_p
    library.btf__type_by_id.restype = ctypes.c_void_p
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


def create_map(kind: int, name: str, value_bytes: int) -> int:
    """Return the descriptor of a new map with one entry, for the caller to close.

    Raises:
        OSError: the kernel refuses it: no privilege, or no BPF.
    """
    descriptor = _library().bpf_map_create(kind, name.encode(), 4, value_bytes, 1, None)
    return _check(descriptor, f"BPF map {name}")


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


def load_program(name: str, instructions: bytes) -> int:
    """Return the descriptor of a classifier, for the caller to close.

    Raises:
        OSError: the kernel refuses it; the end of what its verifier says is in the message.
    """
    log = ctypes.create_string_buffer(_LOG_BYTES)
    options = _ProgramOptions(
        size=ctypes.sizeof(_ProgramOptions),
        log_level=1,
        log_size=_LOG_BYTES,
        log=ctypes.addressof(log),
    )
    count = ctypes.c_size_t(len(instructions) // 8)
    loaded: int = _library().bpf_prog_load(
        _SCHED_CLS, name.encode(), b"GPL", instructions, count, ctypes.byref(options)
    )
    if loaded < 0:
        tail = "\n".join(log.value.decode(errors="replace").splitlines()[-_LOG_LINES:])
        raise OSError(-loaded, f"BPF program {name}: {os.strerror(-loaded)}\n{tail}".rstrip())
    return loaded


def attach(device: int, program: int) -> None:
    """Run a program for what comes in by a device of this thread's namespace.

    Raises:
        FileExistsError: the device has an ingress or clsact discipline already.
        OSError: the kernel lacks clsact or cls_bpf.
    """
    hook, entry = _hook_of(device)
    _check(_library().bpf_tc_hook_create(ctypes.byref(hook)), f"clsact on device {device}")
    entry.program = program
    try:
        status = _library().bpf_tc_attach(ctypes.byref(hook), ctypes.byref(entry))
        _check(status, f"BPF program on device {device}")
    except OSError:
        detach(device)
        raise


def detach(device: int) -> None:
    """Remove from a device what ``attach`` made: the program, and clsact itself.

    Raises:
        OSError: it was not there, or is there still.
    """
    hook, entry = _hook_of(device)
    hook.attach_point = _BOTH_WAYS  # of a hook for both, the discipline itself goes
    _check(_library().bpf_tc_hook_destroy(ctypes.byref(hook)), f"clsact on device {device}, undo")
    hook.attach_point = _INGRESS
    if _library().bpf_tc_query(ctypes.byref(hook), ctypes.byref(entry)) == 0:
        raise OSError(errno.EBUSY, f"device {device} still has a BPF program after the undo")


def _hook_of(device: int) -> tuple[_Hook, _Filter]:
    hook = _Hook(size=ctypes.sizeof(_Hook), device=device, attach_point=_INGRESS)
    return hook, _Filter(size=ctypes.sizeof(_Filter), handle=1, priority=1)


def read_offsets(*paths: str) -> dict[str, int]:
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
        return {path: _offset_of(btf, path) for path in paths}
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
