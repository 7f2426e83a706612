"""Memory of guests: files that the runner lends to one guest after the other.

Each page that a guest touches in new memory is a fault of the host that allocates it; a page that
is there already is mapped with fifteen others by one, and costs less to fill than to be made.  The
next guest finds zeroes, as in a new file, or the memory in the image that it goes on from, and
nothing of the guest before (memfd_create(2), lseek(2); docs/decisions/guest-memory.md).
"""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress

MEMORY_VARIABLE = "UML_MEMORY_FD"
"""Tells a patched kernel its memory's descriptor; others make a file of their own."""
_SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_ZEROES = memoryview(bytes(1 << 20))

Part = tuple[int, int]
"""Of a file: the first byte, and the one behind the last."""


class GuestMemory:
    """One guest's memory: an open file that nobody can make larger or smaller.

    Attributes:
        descriptor: of the file; it is closed with this object.
    """

    def __init__(self, size_bytes: int) -> None:
        self.descriptor = open_zeroes(self, "guest-memory", size_bytes)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
        self._view = mmap.mmap(self.descriptor, size_bytes)

    def fill(self, other: mmap.mmap, parts: Iterable[Part]) -> None:
        """Copy these parts of another guest's memory."""
        with memoryview(self._view) as view, memoryview(other) as saved:
            for start, end in parts:
                view[start:end] = saved[start:end]

    def clear(self, but: Iterable[Part] = ()) -> None:
        """Write zeroes over all that has been written, and make the open file as it was.

        The parts in ``but`` are left to the caller, who fills them.
        """
        fcntl.fcntl(self.descriptor, fcntl.F_SETFL, 0)  # O_APPEND would be the next guest's, too
        with memoryview(self._view) as view:
            for start, end in list(_without(list_written(self.descriptor), but)):
                for at in range(start, end, len(_ZEROES)):
                    until = min(at + len(_ZEROES), end)
                    view[at:until] = _ZEROES[: until - at]


class GuestMemories:
    """Memory of a kernel's guests, as many as run at once."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._free: list[GuestMemory] = []

    def lend(self, but: Iterable[Part] = ()) -> GuestMemory:
        """Return memory of zeroes; what is not given back is freed with the last reference.

        The parts in ``but`` may hold anything: the caller fills them.
        """
        try:
            memory = self._free.pop()
        except IndexError:
            return GuestMemory(self._size_bytes)
        memory.clear(but)
        return memory

    def give_back(self, memory: GuestMemory) -> None:
        """Keep it for the next guest: no process is left that could write to it."""
        self._free.append(memory)


def open_zeroes(owner: object, name: str, size_bytes: int) -> int:
    """Open a new file of zeroes in memory, which can be sealed; it is closed with ``owner``."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    weakref.finalize(owner, os.close, descriptor)
    os.ftruncate(descriptor, size_bytes)
    return descriptor


def list_written(descriptor: int) -> Iterator[Part]:
    """Yield each part of a file that is no hole."""
    end = 0
    # There is no such part where lseek(2) fails (ENXIO).
    with suppress(OSError):
        while True:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
            yield start, end


def _without(parts: Iterable[Part], others: Iterable[Part]) -> Iterator[Part]:
    """Yield what of ``parts`` is not in ``others``; both are in order and do not overlap."""
    left = deque(others)
    for start, end in parts:
        at = start
        while left and left[0][0] < end:
            first, behind = left[0]
            if at < first:
                yield at, first
            at = max(at, behind)
            if behind > end:
                break
            left.popleft()
        if at < end:
            yield at, end
