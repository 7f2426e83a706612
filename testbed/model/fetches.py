"""Fetches of neighbours: segments of a video, and what people on the web ask for, by seed alone.

A video has segments of one size, fetched over one connection: the next when the one before is
there, and not before its turn, as players do whose buffer is full (A. Rao et al., "Network
characteristics of video streaming traffic", CoNEXT 2011: cycles of on and off).

On the web each is one of the "user equivalents" of P. Barford and M. Crovella ("Generating
representative Web workloads", SIGMETRICS 1998): a pause, then a fetch on a connection of its own.
Sizes are lognormal with mu 9.357 and sigma 1.318, behind 133 KB of Pareto's tail with alpha 1.1;
pauses are of Pareto's distribution with k 1 s and alpha 1.5.  Both are cut, so that they end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import cos, exp, log, pi, sqrt

from testbed.base.seeding import uniform
from testbed.model.traffic import FIRST_PORT, PlannedFlow

MOST_FETCHES = 512
"""Of one flow."""
REQUEST_BYTES = 8
_WEB_PORT = 10_000
_MU, _SIGMA, _BODY_BYTES, _TAIL, _MOST_BYTES = 9.357, 1.318, 133_000, 1.1, 1 << 23
_PAUSE_S, _PAUSE_TAIL, _LONGEST_S = 1.0, 1.5, 60.0


@dataclass(frozen=True, slots=True)
class PlannedFetch:
    """One of a flow's fetches: its bytes, the port that asks, and when it does.

    That is ``pause_ns`` after the one before was there, and not before ``due_ns`` after the flow
    began.  ``opens`` says whether a connection is opened for it then.
    """

    size_bytes: int
    port: int
    pause_ns: int
    due_ns: int
    opens: bool


def plan_fetches(flow: PlannedFlow, seed: int) -> Iterator[PlannedFetch]:
    """Yield what ``flow`` fetches, in order; a load ends long before ``MOST_FETCHES`` are over."""
    neighbour = flow.neighbour
    for number in range(MOST_FETCHES):
        if neighbour.kind == "video":
            yield PlannedFetch(
                neighbour.segment_bytes, flow.port, 0, number * neighbour.gap_ns, not number
            )
        else:
            port = _WEB_PORT + (flow.port - FIRST_PORT) * MOST_FETCHES + number
            name = f"web {flow.port} {number}"
            yield PlannedFetch(_draw_size(seed, name), port, _draw_pause(seed, name), 0, opens=True)


def _draw_size(seed: int, name: str) -> int:
    """Return a size in bytes; the normal variate is by G. Box and M. Muller (1958)."""
    radius = sqrt(-2 * log(1 - uniform(seed, f"{name} radius")))
    size = exp(_MU + _SIGMA * radius * cos(2 * pi * uniform(seed, f"{name} angle")))
    if size > _BODY_BYTES:
        size = _BODY_BYTES * (1 - uniform(seed, f"{name} tail")) ** (-1 / _TAIL)
    return max(1, min(_MOST_BYTES, int(size)))


def _draw_pause(seed: int, name: str) -> int:
    pause_s = _PAUSE_S * (1 - uniform(seed, f"{name} pause")) ** (-1 / _PAUSE_TAIL)
    return int(min(pause_s, _LONGEST_S) * 1e9)
