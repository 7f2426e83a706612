"""Visits of a load in its capture: when each one was."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from testbed.capture.packets import Capture
from testbed.model import PageLoad

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
    return max((visit.plt_ms, *(request.end_ms for request in visit.loading)))
