"""Trace of a link as arithmetic: at which moments so many bytes may leave, as mahimahi has it.

Each time, in whole ms, is an opportunity: ``room_bytes`` may leave.  What a packet leaves of one
goes to the next packet that waits, and is lost where none does; what does not fit goes on at the
next.  A packet takes opportunities that are later than its own coming (mm-link(1), Netravali et
al., Mahimahi: Accurate Record-and-Replay for HTTP, 2015).
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, takewhile
from math import inf

from testbed.base.seeding import trace_phase_ms
from testbed.model.asked import LinkSpec

PACKET_BYTES = 1500
MS_NS = 1_000_000
WAYS = ("down", "up")
ETHERNET_BYTES = 14
HOP_BUFFER_BYTES = 10_000_000


def trace_of(spec: LinkSpec, way: str) -> str:
    """Return the name of the trace that ``way`` has instead of a rate; empty: it has a rate."""
    return spec.trace_down if way == "down" else spec.trace_up


def traced(spec: LinkSpec) -> dict[str, str]:
    """Return the names of the traces of ``spec`` by direction, and of its last hop."""
    return {way: name for way in WAYS if (name := trace_of(spec, way))} | hops(spec)


def hops(spec: LinkSpec) -> dict[str, str]:
    """Return the traces of the last hop, ``hop_down`` and ``hop_up``, which have no line."""
    both = {"hop_down": spec.hop_down, "hop_up": spec.hop_up}
    return {way: name for way, name in both.items() if name}


def held_bytes(spec: LinkSpec, way: str) -> int:
    """Return what may wait for opportunities; before a last hop no page fills it."""
    return HOP_BUFFER_BYTES if way in hops(spec) else spec.buffer_bytes


def framing_of(spec: LinkSpec, way: str = "down") -> int:
    """Return what a packet costs beyond its IP bytes: on a last hop an Ethernet header."""
    return ETHERNET_BYTES if way in hops(spec) else spec.framing_bytes


def room_bytes(spec: LinkSpec, way: str = "down") -> int:
    """Return what leaves at one opportunity: a packet of 1500 bytes with its framing.

    With a framing of 4 bytes that is mahimahi, which counts those of a TUN device.
    """
    return PACKET_BYTES + framing_of(spec, way)


@dataclass(frozen=True, slots=True)
class Trace:
    """Times of a trace in ms: whole numbers of 32 bits that never fall, the last one above 0."""

    times: array[int]

    @classmethod
    def unpack(cls, data: bytes) -> Trace:
        """Return the inverse of ``packed``, which is what a guest is given."""
        times = array("I")
        times.frombytes(data)
        return cls(times)

    @property
    def packed(self) -> bytes:
        """Its times as the kernel reads them, in the order of this machine's bytes."""
        return self.times.tobytes()

    @property
    def digest(self) -> str:
        """SHA-256 of its times: of the content, whatever the file is called."""
        return hashlib.sha256(self.packed).hexdigest()

    @property
    def crc(self) -> int:
        """CRC-32 of its times, which the kernel tells of what it has."""
        return zlib.crc32(self.packed)

    @property
    def end_ms(self) -> int:
        """When it ends, or begins again: the time of its last opportunity."""
        return self.times[-1]

    @property
    def longest_wait_ms(self) -> int:
        """The longest that a packet waits for an opportunity, while it comes again and again."""
        return max(after - before for before, after in pairwise((0, *self.times)))

    def count_at(self, ms: int, *, once: bool) -> int:
        """Return how many opportunities there are at ``ms``, counted from its beginning."""
        if once:
            return self._count(ms)
        since = ms % self.end_ms
        return self._count(since) + (0 if since else self._count(self.end_ms))

    def _count(self, ms: int) -> int:
        return bisect_right(self.times, ms) - bisect_left(self.times, ms)

    def after(self, since_ns: int, *, once: bool) -> Iterator[int]:
        """Yield the opportunities later than ``since_ns``, both in ns from its beginning."""
        since_ms = since_ns // MS_NS
        lap = 0 if once else since_ms // self.end_ms * self.end_ms
        following = bisect_right(self.times, since_ms - lap)
        while True:
            for index in range(following, len(self.times)):
                yield (lap + self.times[index]) * MS_NS
            if once:
                return
            lap, following = lap + self.end_ms, 0


@dataclass(frozen=True, slots=True)
class RunningTrace:
    """A trace that begins at ``origin_ns`` of CLOCK_REALTIME, comes to its end ``once``, or again.

    One that runs before a load comes again and has its time 0 at that of the clock.
    """

    trace: Trace
    origin_ns: int = 0
    once: bool = False

    def serve(self, packets: Iterable[tuple[int, int]], room: int) -> Iterator[int]:
        """Yield when each of ``packets``, (came at ns, bytes), leaves a FIFO, as long as one does.

        ``room`` are the bytes of an opportunity.
        """
        moments: Iterator[int] = iter(())
        free_ns, left = -inf, 0
        for came_ns, size in packets:
            if came_ns >= free_ns:
                moments, left = self.trace.after(came_ns - self.origin_ns, once=self.once), 0
            owed = size - left
            while owed > 0:
                following = next(moments, None)
                if following is None:
                    return
                free_ns, owed = following + self.origin_ns, owed - room
            left = -owed
            yield int(free_ns)

    def next_ns(self, at_ns: int) -> int | None:
        """Return the first opportunity after ``at_ns``; ``None``: there is none any more."""
        left = next(self.trace.after(at_ns - self.origin_ns, once=self.once), None)
        return None if left is None else left + self.origin_ns

    def before_ns(self, at_ns: int) -> int:
        """Return the last opportunity before ``at_ns``, or when the trace began."""
        since_ns = at_ns - (self.trace.longest_wait_ms + 1) * MS_NS
        moments = self.trace.after(max(0, since_ns - self.origin_ns), once=self.once)
        earlier = takewhile(lambda moment: moment + self.origin_ns < at_ns, moments)
        return self.origin_ns + max(earlier, default=0)


def trace_origins(
    spec: LinkSpec, traces: Mapping[str, Trace], seed: int, load_ns: int
) -> dict[str, int]:
    """Return when the trace of each direction begins, for a load that starts at ``load_ns``.

    Traces of both directions stay side by side: a seed draws one moment within the shorter.
    """
    names = traced(spec)
    phase_ms = 0
    if names and spec.trace_phase == "seed":
        phase_ms = trace_phase_ms(seed, min(traces[name].end_ms for name in names.values()))
    return dict.fromkeys(names, load_ns - phase_ms * MS_NS)
