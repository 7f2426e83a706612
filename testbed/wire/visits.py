"""Visits of a load in its capture: when each one was."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from testbed.model import Condition, PageLoad
from testbed.wire.packets import Capture

LATE_MS = 5.0
"""How long a browser may take, in virtual time, until the first packet of its first request."""
FOREVER_NS = 1 << 63


@dataclass(frozen=True, slots=True)
class VisitWindow:
    """One visit: its ``load``, and when it was, up to before ``ended_ns`` (CLOCK_REALTIME).

    At ``settled_ns`` its last request had ended, by what the client tells.
    ``name`` is its place among several, such as ``visit 1 of 2``, else empty.
    """

    load: PageLoad
    began_ns: int = 0
    ended_ns: int = FOREVER_NS
    settled_ns: int = FOREVER_NS
    name: str = ""

    def holds(self, at_ns: int) -> bool:
        """Return whether it is of this visit what happened then."""
        return self.began_ns <= at_ns < self.ended_ns

    def is_under_way(self, at_ns: int) -> bool:
        """Return whether the page was loading then, and the browser not idle."""
        return self.began_ns <= at_ns <= self.settled_ns

    def first_packet_ns(self, capture: Capture, clients: Collection[bytes]) -> int | None:
        """Return when the client sent its first packet, which may be a look-up's."""
        return next(
            (p.at_ns for p in capture.packets if p.source in clients and self.holds(p.at_ns)), None
        )

    def zero_ns(self, capture: Capture, clients: Collection[bytes]) -> int | None:
        """Return when the load began, by the first packet of its first request.

        That comes later where a cache answers for the page itself.
        """
        first_ns = self.first_packet_ns(capture, clients)
        if first_ns is None or not self.name:
            return first_ns
        return first_ns - round(min((r.start_ms for r in self.load.requests), default=0) * 1e6)

    def say(self, problem: str) -> str:
        """Return a problem of the visit, which it names where there are others."""
        return f"{self.name}: {problem}" if self.name else problem


def split_visits(load: PageLoad) -> tuple[VisitWindow, ...]:
    """Return the windows of the visits of ``load``, in their order.

    Each lasts until the next one begins; an only one is all of its capture.
    """
    visits = load.visits
    if len(visits) == 1:
        return (VisitWindow(load),)
    begins = [visit.began_ns or 0 for visit in visits]
    ends = [*begins[1:], FOREVER_NS]
    return tuple(
        VisitWindow(
            *(visit, began_ns, ended_ns, began_ns + round(_last_ms(visit) * 1e6)),
            f"visit {number} of {len(visits)}",
        )
        for number, (visit, began_ns, ended_ns) in enumerate(
            zip(visits, begins, ends, strict=True), 1
        )
    )


def _last_ms(visit: PageLoad) -> float:
    return max((visit.plt_ms, *(request.end_ms for request in visit.requests)))


def check_visits(
    windows: Sequence[VisitWindow],
    asked: Condition,
    capture: Capture,
    clients: Collection[bytes],
    *,
    real_time: bool,
) -> Iterator[str]:
    """Yield a sentence for what is wrong with how often, and when, the page was visited."""
    if len(windows) != asked.visits:
        yield f"the page was visited {len(windows)} times, asked was {asked.visits}"
        return
    if asked.visits == 1:
        return
    for before, window in pairwise(windows):
        idle_s = (window.began_ns - before.settled_ns) / 1e9
        # In real time one of two clocks may be slewed (adjtimex(2)).
        if idle_s < asked.idle_s * (0.999 if real_time else 1.0):
            yield window.say(f"it began after {idle_s:.3f} s of rest, asked was {asked.idle_s:g} s")
    for window in windows:
        zero_ns = window.zero_ns(capture, clients)
        late_ms = None if zero_ns is None else (zero_ns - window.began_ns) / 1e6
        if late_ms is None:
            yield window.say("the client sent nothing")
        elif late_ms > LATE_MS and not real_time:
            yield window.say(f"its first packet left {late_ms:.3f} ms after it began")
