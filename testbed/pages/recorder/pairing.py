"""Which request of the browser's protocol is which one of its network log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.pages.recorder.seen import Asked
from testbed.pages.recorder.transfer import Transfer

# The log has whole milliseconds.
SAME_S = 0.0025


@dataclass(frozen=True, slots=True)
class Pairing:
    """``pairs`` in the order of ``transfers``; ``alone`` are requests that reached no network."""

    pairs: tuple[tuple[Transfer, Asked | None], ...]
    alone: tuple[Asked, ...]


def pair(transfers: Sequence[Transfer], asked: Sequence[Asked]) -> Pairing:
    """Pair by method and URL, and among equal ones by the time at which the network took them.

    A request without a response has no such time; it gets what is left, in order.
    """
    found: dict[int, Asked] = {}
    rest: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, transfer in enumerate(transfers):
        rest[transfer.method, transfer.url].append(place)
    late, alone = [], []
    for one in asked:
        if one.source in ("memory cache", "service worker"):
            alone.append(one)
        elif one.started_s is None:
            late.append(one)
        else:
            index = _nearest(transfers, rest[one.method, one.url], one.started_s)
            if index is None:
                late.append(one)
            else:
                found[index] = one
    for one in late:
        index = _first(transfers, rest[one.method, one.url], one.sent_s)
        if index is None:
            alone.append(one)
        else:
            found[index] = one
    pairs = tuple((transfer, found.get(index)) for index, transfer in enumerate(transfers))
    return Pairing(pairs, tuple(alone))


def _nearest(transfers: Sequence[Transfer], open_: list[int], started_s: float) -> int | None:
    """Take the one that started at this time, if there is one."""

    def distance(index: int) -> tuple[float, bool]:
        # What a cache answered may have started in the same millisecond.
        return abs(transfers[index].start_s - started_s), transfers[index].position is None

    near = [index for index in open_ if distance(index)[0] <= SAME_S]
    if not near:
        return None
    best = min(near, key=distance)
    open_.remove(best)
    return best


def _first(transfers: Sequence[Transfer], open_: list[int], sent_s: float) -> int | None:
    """Take the first one that started later, rather one that left the browser."""
    later = [index for index in open_ if transfers[index].start_s >= sent_s - SAME_S]
    if not later:
        return None
    best = min(later, key=lambda index: (transfers[index].position is None, index))
    open_.remove(best)
    return best
