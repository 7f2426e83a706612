"""Schedule of an open loop: when its connections start, which follows from rate and seed alone.

As ``native/schedule.h`` has it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import count, takewhile

from testbed.capture.flows import Flow
from wings.server_loads.spec import ArrivalSpec

SECOND_NS = 1_000_000_000
_FRACTION_BITS = 16
_64 = 1 << 64


def schedule_ns(arrivals: ArrivalSpec, seed: int) -> Iterator[int]:
    """Yield when each connection is to start, in ns from the beginning."""
    until_ns = arrivals.lasts_s * SECOND_NS
    rate = arrivals.rate_per_s
    fixed = (number * SECOND_NS // rate for number in count())
    starts = fixed if arrivals.spacing == "fixed" else _poisson_ns(rate, _draws(seed))
    if arrivals.burst_s:
        starts = _stretch_ns(starts, arrivals)
    return takewhile(lambda at_ns: at_ns < until_ns, starts)


def _stretch_ns(starts: Iterator[int], arrivals: ArrivalSpec) -> Iterator[int]:
    """Yield when what would start at ``starts`` does, if the rate holds in bursts alone."""
    rate, base = arrivals.rate_per_s, arrivals.base_rate_per_s
    burst_ns, every_ns = (round(s * 1000) * 10**6 for s in (arrivals.burst_s, arrivals.every_s))
    rest_ns = (every_ns - burst_ns) * base // rate
    for at_ns in starts:
        periods, within_ns = divmod(at_ns, burst_ns + rest_ns)
        if within_ns >= burst_ns:
            within_ns = burst_ns + (within_ns - burst_ns) * rate // base
        yield periods * every_ns + within_ns


def _poisson_ns(rate_per_s: int, draws: Iterator[int]) -> Iterator[int]:
    at = 0
    while True:
        at += _exponential(draws, (SECOND_NS << _FRACTION_BITS) // rate_per_s)
        yield at >> _FRACTION_BITS


def _draws(state: int) -> Iterator[int]:
    """Yield 64 random bits each time, as ``native/random.h`` does."""
    while True:
        z = state = (state + 0x9E3779B97F4A7C15) % _64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % _64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % _64
        yield z ^ z >> 31


def _exponential(draws: Iterator[int], mean: int) -> int:
    whole = 0
    while True:
        first = last = next(draws)
        falling = 1
        while (following := next(draws)) < last:
            last, falling = following, falling + 1
        if falling % 2:
            return whole + (first * mean >> 64)
        whole += mean


def split_retries(
    flows: Sequence[Flow], due_ns: Sequence[int], late_ns: int
) -> tuple[list[Flow], list[Flow]]:
    """Return the connections that started when one was due, and the others, in their order."""
    first, others = [], []
    began_ns = flows[0].syn.at_ns - due_ns[0] if flows and due_ns else 0
    taken = 0
    for flow in flows:
        at_ns = flow.syn.at_ns - began_ns
        # One that never left is not waited for.
        taken += bisect_left(due_ns[taken:], at_ns - late_ns)
        if taken < len(due_ns) and due_ns[taken] <= at_ns + late_ns:
            first.append(flow)
            taken += 1
        else:
            others.append(flow)
    return first, others
