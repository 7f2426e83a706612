"""Measurement of a page load: when two of them are the same, and what a neighbour's is."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.model import RESOLUTION_MS, PageLoad, Replay, ServedConnection


@dataclass(frozen=True, slots=True)
class SecondLoad:
    """What a neighbour's client saw that loaded the page, too, and what its server answered."""

    load: PageLoad
    replay: Replay
    connections: tuple[ServedConnection, ...]


def loads_differ(load: PageLoad, other: PageLoad) -> bool:
    """Return whether ``load`` took another time than ``other``, in all or in a single request."""
    times, others = _times_ms(load), _times_ms(other)
    return len(times) != len(others) or any(
        abs(a - b) > RESOLUTION_MS for a, b in zip(times, others, strict=True)
    )


def _times_ms(load: PageLoad) -> list[float]:
    return [
        time_ms
        for visit in load.visits
        for time_ms in (
            visit.plt_ms,
            *(time_ms for each in visit.requests for time_ms in (each.start_ms, each.end_ms)),
        )
    ]
