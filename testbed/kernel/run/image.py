"""Images of guests: memory and state of a guest that is ready, saved for others to go on from.

A guest boots, imports what trials need, lays the lab's wires and starts a browser before it learns
which trial is its own.  What it is by then depends on its kernel's words alone.  So the third
such guest leaves an image, and those after it go on from there instead of booting: with the same
packets, at less cost (patch 0015 of the kernel; docs/decisions/guest-memory.md).
"""

from __future__ import annotations

import fcntl
import mmap
import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable
from functools import cached_property

from testbed.kernel.run.memory import Part, list_written, open_zeroes

SAVE_VARIABLE, RESUME_VARIABLE = "UML_SAVE_FD", "UML_RESUME_FD"
"""Tell a patched kernel the descriptor of the image to make, or of the one to go on from."""
STATE_BYTES = 16 << 20
"""More than the kernel's process has of its own, which lies behind the guest's memory."""
BOOTS = 2
"""How many alike boot before one makes an image: many plans ask for no more."""
MOST_IMAGES = 4
"""A run goes from seed to seed.  One with a browser in it takes some 220 MB, others 50."""

Like = Hashable
"""What an image depends on: its kernel's words, which have seed, price of computing and client."""


class GuestImage:
    """One guest's image: an open file, which the guest's kernel seals when all of it is there.

    No page's code has run by then, and nobody can change it any more (fcntl(2), F_SEAL_WRITE).

    Attributes:
        descriptor: of the file; it is closed with this object.
    """

    def __init__(self, memory_bytes: int) -> None:
        self.descriptor = open_zeroes(self, "guest-image", memory_bytes + STATE_BYTES)
        self._memory_bytes = memory_bytes

    @property
    def whole(self) -> bool:
        """Whether all of it is there."""
        return bool(fcntl.fcntl(self.descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE)

    @cached_property
    def memory(self) -> mmap.mmap:
        """The guest's memory, of a whole image."""
        return mmap.mmap(self.descriptor, self._memory_bytes, prot=mmap.PROT_READ)

    @cached_property
    def written(self) -> tuple[Part, ...]:
        """The parts of its memory that are not zeroes."""
        end = self._memory_bytes
        parts = list_written(self.descriptor)
        return tuple((first, min(behind, end)) for first, behind in parts if first < end)


class GuestImages:
    """Images of one kernel's guests with one bundle; the oldest goes first."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._images: OrderedDict[Like, GuestImage] = OrderedDict()
        self._guests: Counter[Like] = Counter()
        self._lock = threading.Lock()
        self._made = True

    def take(self, like: Like) -> GuestImage | None:
        """Return the image of such guests: a whole one, or one for the caller's guest to fill.

        ``None``: this guest boots, and leaves none.  Another one fills it, or there were few such
        guests so far, or this kernel makes none.
        """
        with self._lock:
            self._guests[like] += 1
            image = self._images.get(like)
            if image is None and self._made and self._guests[like] > BOOTS:
                image = self._images[like] = GuestImage(self._memory_bytes)
                if len(self._images) > MOST_IMAGES:
                    self._images.popitem(last=False)
                return image
            if image is None or not image.whole:
                return None
            self._images.move_to_end(like)
            return image

    def settle(self, like: Like, image: GuestImage, *, ended: bool) -> None:
        """Forget an image that the caller's guest has left empty.

        ``ended`` says that the guest came to its own end: then its kernel makes none at all.
        """
        with self._lock:
            if image.whole:
                return
            self._made = self._made and not ended
            if self._images.get(like) is image:
                del self._images[like]
