"""Flow of a neighbour in captures: its packets at both ends, and from when to when they count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from testbed.capture.packets import SYN, Packet, behind
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


def first_byte(sent: Iterable[Packet]) -> int:
    """Return the number of the first byte that who sent this sends, behind its SYN."""
    return next((packet.seq + 1 for packet in sent if packet.flags & SYN), 0)


def list_progress(data: Iterable[Packet], first: int) -> Iterator[tuple[int, int]]:
    """Yield when data came, in ns, and how many bytes from number ``first`` on were there then.

    What is behind a gap is not there before the gap is closed.
    """
    reached, waiting = 0, [(0, 0)]
    for packet in data:
        start = reached + behind(packet.seq, first + reached & 0xFFFFFFFF)
        heappush(waiting, (start, start + packet.payload_bytes))
        while waiting and waiting[0][0] <= reached:
            reached = max(reached, heappop(waiting)[1])
        yield packet.at_ns, reached


def check_algorithm(flow: PlannedFlow, told: Sequence[ToldConnection]) -> Iterator[str]:
    """Yield a sentence if the kernel told of another congestion control, or of no connection."""
    asked = flow.neighbour.algorithm
    has = [each.algorithm for each in told if each.algorithm != asked]
    if has or not told:
        yield (
            f"its congestion control is {has[0] if has else 'no connection at its end'}, "
            f"asked was {asked}"
        )
