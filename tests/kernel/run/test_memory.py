"""Memory lent to guests: zeroes for each of them, and a file that none can spoil for the next."""

from __future__ import annotations

import fcntl
import mmap
import os

import pytest

from testbed.kernel.run.memory import GuestMemories, GuestMemory, list_written

PAGE = mmap.PAGESIZE
SIZE = 4096 * PAGE


def test_memory_that_was_written_is_zeroes_again() -> None:
    memories = GuestMemories(SIZE)
    memory = memories.lend()
    for place in (0, 7 * PAGE, 8 * PAGE, SIZE - PAGE):
        os.pwrite(memory.descriptor, b"secret", place + 17)
    memories.give_back(memory)
    again = memories.lend()
    assert again is memory
    assert os.pread(again.descriptor, SIZE, 0) == bytes(SIZE)


def test_its_pages_stay_where_they_are() -> None:
    memory = GuestMemory(SIZE)
    os.pwrite(memory.descriptor, b"x", 5 * PAGE)
    os.pwrite(memory.descriptor, b"x" * (PAGE + 1), 9 * PAGE)
    memory.clear()
    written = list(list_written(memory.descriptor))
    assert written == [(5 * PAGE, 6 * PAGE), (9 * PAGE, 11 * PAGE)]


@pytest.mark.parametrize(
    ("but", "kept"),
    [((), ()), (((2, 3),), (2,)), (((0, 4),), (2, 3)), (((1, 3), (3, 8), (9, 10)), (2, 3, 7)),
     (((4, 6),), ()), (((3, 14),), (3, 7, 8, 12)), (((0, 1), (8, 9), (12, 13)), (8, 12))],
)  # fmt: skip
def test_what_the_caller_fills_is_left_to_it(
    but: tuple[tuple[int, int], ...], kept: tuple[int, ...]
) -> None:
    memory = GuestMemory(SIZE)
    written = (2, 3, 7, 8, 12)
    for page in written:
        os.pwrite(memory.descriptor, b"x" * PAGE, page * PAGE)
    memory.clear([(start * PAGE, end * PAGE) for start, end in but])
    found = [page for page in written if os.pread(memory.descriptor, 1, page * PAGE) == b"x"]
    assert found == list(kept)
    for page in kept:
        assert os.pread(memory.descriptor, PAGE, page * PAGE) == b"x" * PAGE


def test_each_guest_at_a_time_has_its_own() -> None:
    memories = GuestMemories(SIZE)
    first, second = memories.lend(), memories.lend()
    os.pwrite(first.descriptor, b"x", 0)
    assert os.pread(second.descriptor, 1, 0) == b"\0"


def test_what_is_not_given_back_is_not_lent_again_and_closed() -> None:
    memories = GuestMemories(SIZE)
    memory = memories.lend()
    descriptor = memory.descriptor
    del memory
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    assert os.pread(memories.lend().descriptor, 1, 0) == b"\0"


@pytest.mark.parametrize("size", [0, SIZE - PAGE, SIZE + PAGE])
def test_a_guest_cannot_change_its_size(size: int) -> None:
    memory = GuestMemory(SIZE)
    with pytest.raises(PermissionError):
        os.ftruncate(memory.descriptor, size)


def test_a_guest_cannot_seal_it() -> None:
    memory = GuestMemory(SIZE)
    with pytest.raises(PermissionError):
        fcntl.fcntl(memory.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)


def test_flags_that_a_guest_has_set_are_gone() -> None:
    memories = GuestMemories(SIZE)
    memory = memories.lend()
    fcntl.fcntl(memory.descriptor, fcntl.F_SETFL, os.O_APPEND)
    memories.give_back(memory)
    assert not fcntl.fcntl(memories.lend().descriptor, fcntl.F_GETFL) & os.O_APPEND
