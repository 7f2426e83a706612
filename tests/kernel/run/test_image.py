"""Images of guests: left by the first of a seed, gone on from by the others, changed by nobody."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from testbed.kernel.run.image import BOOTS, MOST_IMAGES, GuestImage, GuestImages
from testbed.kernel.run.memory import GuestMemory
from testbed.kernel.run.virtual import WARNINGS, VirtualKernel, command_line
from testbed.model import Condition, Trial
from tests.kernel.guests import Guests

PAGE = mmap.PAGESIZE
SIZE = 64 * PAGE
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


def finish(image: GuestImage) -> None:
    """As a guest's kernel does it."""
    os.pwrite(image.descriptor, b"mine", 5 * PAGE)
    os.pwrite(image.descriptor, b"state", SIZE)
    fcntl.fcntl(image.descriptor, fcntl.F_ADD_SEALS, SEALS)


def begin(images: GuestImages, seed: int) -> GuestImage:
    """The image that the first guest of ``seed`` is to make which does more than boot."""
    for _ in range(BOOTS):
        assert images.take(seed) is None
    image = images.take(seed)
    assert image is not None
    assert not image.whole
    return image


def test_one_guest_of_a_seed_makes_it_and_those_after_it_go_on_from_it() -> None:
    images = GuestImages(SIZE)
    image = begin(images, 3)
    assert images.take(3) is None  # it is being made
    finish(image)
    assert images.take(3) is image
    assert image.whole
    assert begin(images, 4) is not image


def test_its_memory_comes_into_the_guests_and_nothing_of_what_was_there() -> None:
    image = GuestImage(SIZE)
    finish(image)
    assert image.written == ((5 * PAGE, 6 * PAGE),)
    memory = GuestMemory(SIZE)
    os.pwrite(memory.descriptor, b"another's", 9 * PAGE)
    memory.clear()
    memory.fill(image.memory, image.written)
    expected = bytearray(SIZE)
    expected[5 * PAGE : 5 * PAGE + 4] = b"mine"
    assert os.pread(memory.descriptor, SIZE, 0) == expected


def test_one_that_was_not_finished_is_made_again() -> None:
    images = GuestImages(SIZE)
    left = begin(images, 0)
    images.settle(0, left, ended=False)  # a guest that was ended from outside
    again = images.take(0)
    assert again is not None
    assert again is not left


def test_a_kernel_that_makes_none_is_asked_once() -> None:
    images = GuestImages(SIZE)
    left = begin(images, 0)
    images.settle(0, left, ended=True)
    for _ in range(BOOTS + 1):
        assert images.take(0) is None
        assert images.take(1) is None


def test_few_are_kept_and_the_latest() -> None:
    images = GuestImages(SIZE)
    for seed in range(MOST_IMAGES):
        finish(begin(images, seed))
    first = images.take(0)  # used again, so that 1 is the oldest
    assert first is not None
    assert first.whole
    begin(images, MOST_IMAGES)
    assert images.take(0) is first
    made_again = images.take(1)
    assert made_again is not None
    assert not made_again.whole


CLIENT = "c"
PROGRAM = """\
import os, sys, time
Path("/tmp/filled").write_bytes(b"x" * (8 << 20))
leave(
    trial=json.loads(Path("/ff/out/trial.json").read_text())["repetition"],
    random=os.urandom(16).hex(), now=time.time_ns(), pid=os.getpid(), heap=id(object()),
    up=Path("/proc/uptime").read_text(), words=sys.argv[1:], names=sorted(os.listdir("/ff/page")),
    mounts=Path("/proc/mounts").read_text(),
)
"""


@pytest.fixture
def runs(guests: Guests, tmp_path: Path) -> Runs:
    """Runs of one kernel's guests."""
    return Runs(guests.kernel(PROGRAM), tmp_path)


class Runs:
    """Guests of one kernel, in folders of their own."""

    def __init__(self, kernel: VirtualKernel, folder: Path) -> None:
        self.kernel, self._folder = kernel, folder

    def run(self, number: int, seed: int = 0, slot: int = 0, **knobs: Any) -> dict[str, Any]:
        """Run trial ``number``; return what it left."""
        page, out = self._folder / f"page-{number}", self._folder / f"out-{number}"
        page.mkdir()
        out.mkdir()
        (page / f"page-{number}").touch()
        trial = Trial(Condition("p", CLIENT, **knobs), number, seed, "virtual", "7.3", 60.0)
        raw = self.kernel.run(trial, page, out, slot, threading.Event())
        assert raw.observation is not None, raw
        found: dict[str, Any] = json.loads(raw.observation.read_text())
        return found

    def image(self, seed: int) -> GuestImage:
        """What guests of ``seed`` go on from, all of which is there."""
        words = ("linux", *command_line(seed, self.kernel.boot_options), WARNINGS, "--", CLIENT)
        image = self.kernel.images.take(words)
        assert image is not None and image.whole
        return image


@pytest.mark.guest
@pytest.mark.usefixtures("jail")
def test_a_guest_that_goes_on_is_as_one_that_booted_but_for_its_trial(runs: Runs) -> None:
    booted = runs.run(0)
    others = [runs.run(number, slot=number % 2) for number in range(1, BOOTS + 3)]
    image = runs.image(0)
    assert booted["names"] == ["page-0"]
    assert booted["words"] == [CLIENT]
    for number, other in enumerate(others, 1):
        assert other == booted | {"trial": number, "names": [f"page-{number}"]}
    with pytest.raises(PermissionError):
        os.pwrite(image.descriptor, b"x", 0)


@pytest.mark.guest
@pytest.mark.usefixtures("jail")
def test_each_seed_has_its_own(runs: Runs) -> None:
    found: list[set[str]] = [set(), set()]
    for number in range(2 * BOOTS + 4):
        seed = number % 2
        found[seed].add(runs.run(number, seed=seed)["random"])
    assert len(found[0]) == len(found[1]) == 1
    assert found[0] != found[1]
    for seed in (0, 1):
        assert runs.image(seed)


@pytest.mark.guest
@pytest.mark.usefixtures("jail")
def test_clients_that_open_otherwise_have_none_of_each_others(runs: Runs) -> None:
    for number in range(BOOTS + 1):
        runs.run(number)
    assert runs.image(0)
    other = runs.run(BOOTS + 1, key_share="x25519")
    assert other["words"] == [f"{CLIENT},x25519"]
