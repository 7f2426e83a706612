"""Programs of a root that run where they lie, by its loader and libraries (elf(5), ld.so(8)).

A program names its loader and, if it wants, folders of libraries.  Both are written into a copy of
it, so that it runs on any machine as any user, whatever libc is there, and so do those that it
starts; no wrapper, name space or variable is needed.

Standard library only: a root is assembled before there is a Python environment.
"""

from __future__ import annotations

import os
import shutil
import struct
from dataclasses import astuple, dataclass, replace
from pathlib import Path, PurePosixPath

from testbed.base.errors import StorageError
from testbed.root.assembly import place_of
from testbed.root.interpreter import LIBRARIES, LOADER

FORMAT = 1
"""Raise it when programs are to be relocated anew."""

_ELF = b"\x7fELF\x02\x01"  # of 64 bits, the least significant byte first
_HEADER = struct.Struct("<IIQQQQQQ")
_TAG = struct.Struct("<QQ")
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_WRITABLE = 2
_END, _STRINGS, _SONAME, _FOLDERS, _LATER_FOLDERS = 0, 5, 14, 15, 29
_PAGE = 4096


def relocate(usr: Path, folder: Path, seen: Path | None = None) -> None:
    """Make ``folder``, which is not there, what ``usr`` is, with programs that run from ``folder``.

    Other files are the same ones, by hard links.  Where they run, ``folder`` may be ``seen`` at
    another place.

    Raises:
        StorageError: a program cannot be made so.
        OSError: it cannot be written.
    """
    for place, _, _ in os.walk(usr):
        target = folder / Path(place).relative_to(usr)
        target.mkdir(parents=True)
        for file in Path(place).iterdir():
            if file.is_symlink():
                (target / file.name).symlink_to(_target(file.readlink(), target, folder))
            elif file.is_file():
                _bring(file, target / file.name, seen or folder)


def _target(link: Path, beside: Path, folder: Path) -> Path:
    """Return where a link in ``beside`` leads, so that one into ``/usr`` stays in ``folder``."""
    place = place_of(str(link).lstrip("/")) if link.is_absolute() else None
    if place is None:
        return link
    return Path(os.path.relpath(folder / PurePosixPath(place).relative_to("usr"), beside))


def _bring(file: Path, target: Path, seen: Path) -> None:
    program = _read_program(file)
    if program is None:
        os.link(file, target)
        return
    try:
        moved = relocated(program, seen / LOADER, seen / LIBRARIES)
    except (ValueError, struct.error) as error:
        raise StorageError(f"{file} cannot be made to run elsewhere: {error}") from None
    target.write_bytes(moved)
    shutil.copystat(file, target)


def _read_program(file: Path) -> bytes | None:
    """Return the program in ``file`` if a loader starts it; ``None``: it is none, or a library."""
    if not file.stat().st_mode & 0o111:
        return None
    with file.open("rb") as stream:
        data = stream.read(len(_ELF))
        if data != _ELF:
            return None
        data += stream.read()
    starts = any(header.kind == _INTERPRETER for header in _headers(data))
    return data if starts and _SONAME not in _read_tags(data)[0] else None


def relocated(program: bytes, loader: Path, libraries: Path) -> bytes:
    """Return ``program`` with another loader, which looks for libraries in ``libraries`` first.

    The loader's name goes to the end of the file.  That of the folder goes behind a segment, where
    the page that holds its end is empty, and one of the tags that the linker has left empty says
    where that is.

    Raises:
        ValueError: there is no room in it.
    """
    data = bytearray(program)
    tags, spare = _read_tags(data)
    taken = [tags[tag][0] for tag in (_FOLDERS, _LATER_FOLDERS) if tag in tags] or spare[:-1]
    if not taken:
        raise ValueError("it has no empty tag")
    address = _append_to_segment(data, os.fsencode(libraries) + b"\0")
    _TAG.pack_into(data, taken[0], _FOLDERS, address - tags[_STRINGS][1])
    name = os.fsencode(loader) + b"\0"
    for header in _headers(data):
        if header.kind == _INTERPRETER:
            # What is mapped at its address stays: there the loader reads what it is called.
            _write(data, replace(header, offset=len(data), in_file=len(name)))
    return bytes(data) + name


def _append_to_segment(data: bytearray, text: bytes) -> int:
    """Make a segment that is only read longer by ``text``, and return the address of that."""
    for header in _headers(data):
        end = header.offset + header.in_file
        behind = data[end : end + -end % _PAGE]
        fits = header.kind == _LOAD and not header.flags & _WRITABLE and len(behind) >= len(text)
        if fits and not any(behind):
            data[end : end + len(text)] = text
            longer = header.in_file + len(text)
            _write(data, replace(header, in_file=longer, in_memory=longer))
            return header.address + header.in_file
    raise ValueError(f"it has no room for {len(text)} bytes")


@dataclass(frozen=True, slots=True)
class _Header:
    """Program header, and where it is in the file."""

    at: int
    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    in_file: int
    in_memory: int
    align: int


def _headers(data: bytes | bytearray) -> list[_Header]:
    (first,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    places = range(first, first + size * count, size)
    return [_Header(at, *_HEADER.unpack_from(data, at)) for at in places]


def _write(data: bytearray, header: _Header) -> None:
    at, *fields = astuple(header)
    _HEADER.pack_into(data, at, *fields)


def _read_tags(data: bytes | bytearray) -> tuple[dict[int, tuple[int, int]], list[int]]:
    """Return where each dynamic tag is, with its value, and where empty ones are."""
    tags: dict[int, tuple[int, int]] = {}
    spare: list[int] = []
    for header in _headers(data):
        if header.kind == _DYNAMIC:
            for at in range(header.offset, header.offset + header.in_file, _TAG.size):
                tag, value = _TAG.unpack_from(data, at)
                if tag == _END:
                    spare.append(at)
                else:
                    tags[tag] = (at, value)
    return tags, spare
