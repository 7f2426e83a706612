"""Visits of a load in its capture: when each one was."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from testbed.model import PageLoad
from testbed.wire.packets import Capture

LATE_MS = 5.0
"""How long a browser may take, in virtual time, from where a visit begins to its first packet."""
SLEWED_NS = 999_000_000
"""A second by a clock that is slewed, in real time (adjtimex(2))."""
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
    load: PageLoad,
    visits: int,
    idle_s: float,
    capture: Capture,
    clients: Collection[bytes],
    *,
    real_time: bool,
) -> Iterator[str]:
    """Yield a sentence for what is wrong with how often, and when, the page was visited.

    ``idle_s`` is for how long the client was to be idle between two visits, at least.
    """
    if len(load.visits) != visits:
        yield f"the page was visited {len(load.visits)} times, asked was {visits}"
        return
    if visits == 1:
        return
    since_ns = None
    for window in split_visits(load):
        idle_ns = None if since_ns is None else window.began_ns - since_ns
        since_ns = window.settled_ns
        if idle_ns is not None and idle_ns < idle_s * SLEWED_NS:
            yield window.say(
                f"idle_s = {idle_s:g}, but it began {idle_ns / 1e9:.3f} s after the last"
            )
        first_ns = window.first_packet_ns(capture, clients)
        late_ms = None if first_ns is None else (first_ns - window.began_ns) / 1e6
        if late_ms is None:
            yield window.say("the client sent nothing")
        elif late_ms > LATE_MS and not real_time:
            yield window.say(f"its first packet left {late_ms:.3f} ms after it began")
