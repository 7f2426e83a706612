"""Flow of a neighbour in captures: its packets at both ends, and from when to when they count."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from testbed.capture.packets import Packet
from testbed.model.traffic import Neighbour, PlannedFlow, ToldConnection

SLACK_S = 0.005
"""By how much a flow, a fetch or a datagram may begin beside its time."""
IDLE_S = 0.1
"""For how long a connection that has data to send or to get may have none under way."""


@dataclass(frozen=True, slots=True)
class LoadWindow:
    """From when to when a page was loaded or a command ran, in ns.

    Neighbours expected that for ``zero_ns``; a command is started then, and begins after it.
    """

    start_ns: int
    end_ns: int
    zero_ns: int

    def since_s(self, at_ns: int) -> float:
        """Return a time in seconds, from when neighbours expected the start on."""
        return (at_ns - self.zero_ns) / 1e9

    def begin_of(self, neighbour: Neighbour) -> int:
        """Return when ``neighbour`` is to begin."""
        return self.zero_ns + round(neighbour.from_s * 1e9)

    def end_of(self, neighbour: Neighbour) -> int:
        """Return until when ``neighbour`` has to go on: to its end, or that of the load."""
        if neighbour.to_s is None:
            return self.end_ns
        return min(self.end_ns, self.zero_ns + round(neighbour.to_s * 1e9))


@dataclass(slots=True)
class SeenFlow:
    """Packets of a flow: out of the neighbour and back to it, and what its remote end has."""

    out: list[Packet] = field(default_factory=list)
    back: list[Packet] = field(default_factory=list)
    arrived: list[Packet] = field(default_factory=list)
    left: list[Packet] = field(default_factory=list)


def check_began(neighbour: Neighbour, at_ns: int, window: LoadWindow) -> Iterator[str]:
    """Yield a sentence if ``neighbour`` began at another time than it was to."""
    asked, began = neighbour.from_s, window.since_s(at_ns)
    if abs(began - asked) > SLACK_S:
        yield f"it began at {began:.3f} s, asked was {asked:g} s"


def rate_kbit(payload_bytes: int, window: LoadWindow) -> float:
    """Return the rate of what arrived during the load."""
    return payload_bytes * 8e6 / max(1, window.end_ns - window.start_ns)


@dataclass(frozen=True, slots=True)
class Progress:
    """When data came, in ns, and how many bytes were there then."""

    steps: list[tuple[int, int]] = field(default_factory=list)

    def reached(self, at_ns: int) -> int:
        """Return how many bytes were there at a time."""
        behind_it = bisect_right(self.steps, at_ns, key=itemgetter(0))
        return self.steps[behind_it - 1][1] if behind_it else 0

    def complete_ns(self, count: int) -> int | None:
        """Return when so many bytes were there."""
        first = bisect_left(self.steps, count, key=itemgetter(1))
        return self.steps[first][0] if first < len(self.steps) else None


def check_algorithm(flow: PlannedFlow, told: Sequence[ToldConnection]) -> Iterator[str]:
    """Yield a sentence if the kernel told of another congestion control, or of no connection."""
    asked = flow.neighbour.algorithm
    has = [each.algorithm for each in told if each.algorithm != asked]
    if has or not told:
        yield (
            f"its congestion control is {has[0] if has else 'no connection at its end'}, "
            f"asked was {asked}"
        )
