"""Saturation of a server: rates as its multiples, and the search for it by bisection.

A server is saturated at the greatest rate that it keeps up with.  A file gives rates as multiples
of ``saturation_per_s``, which stands in the file as a number: so a plan is the same wherever and
whenever it is made, and only the search needs a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.model import ServedLoad

RELATIVE_RATE, RATE = "rate_of_saturation", "rate_per_s"
HIGHEST = 1_000_000
KEPT_UP_PCT = 98.0
"""Replies, as a share of the connections that came: less is not kept up with.  In a few seconds
the two differ by a percent anyway, for replies are counted when they come."""
RESOLUTION = 1.01
"""A search ends where the rate that is too much is so many times one that is kept up with."""
Where = Callable[[tuple[str, ...]], str]


def multiply_rate(multiple: float, saturation_per_s: int) -> int:
    """Return the rate that is ``multiple`` times the saturation, in whole connections a second."""
    return round(multiple * saturation_per_s)


def set_absolute_rates(values: Mapping[str, Any], where: Where) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a file with ``rate_per_s`` in the place of its multiples of saturation.

    Beside them is a sentence for each problem; with one, the values are those of the file.
    """
    tables = {name: values.get(name, {}) for name in ("sweep", "arrivals")}
    sweep, arrivals = tables.values()
    given = [
        ((name, RELATIVE_RATE), table[RELATIVE_RATE])
        for name, table in tables.items()
        if RELATIVE_RATE in table
    ]
    if not given:
        return dict(values), []
    (key, multiples), *others = given
    place = f"{where(key)}: {'.'.join(key)}"
    saturation = values.get("saturation_per_s")
    problems = []
    if values.get("kind") != "server_load":
        problems.append(f'{place}: needs kind = "server_load"; a page load has no rate')
    if others:
        problems.append(f"{place}: also in [arrivals]; keep one of the two")
    if RATE in sweep or RATE in arrivals:
        problems.append(f"{place}: there is {RATE} as well; keep one of the two")
    if saturation is None:
        problems.append(
            f"{place}: a multiple of saturation_per_s, which is not set; "
            "./run.sh saturation FILE finds it, then set it at the top of the file"
        )
    if problems or saturation is None:
        return dict(values), problems
    rates = [
        multiply_rate(one, saturation)
        for one in (multiples if isinstance(multiples, list) else [multiples])
    ]
    if min(rates) < 1 or max(rates) > HIGHEST or len(set(rates)) < len(rates):
        return dict(values), [
            f"{place}: times {saturation:,} this is {', '.join(map(str, rates))} a second; "
            f"allowed: different whole numbers from 1 to {HIGHEST}"
        ]
    made = {
        **values,
        "arrivals": {name: value for name, value in arrivals.items() if name != RELATIVE_RATE},
        # An axis keeps its place: trials run in the order of the axes.
        "sweep": {
            (RATE if name == RELATIVE_RATE else name): (rates if name == RELATIVE_RATE else value)
            for name, value in sweep.items()
        },
    }
    if key[0] == "arrivals":
        made["arrivals"][RATE] = rates[0]
    return made, []


def keeps_up(load: ServedLoad) -> bool:
    """Return whether the server answered as fast as connections came."""
    return load.replies_per_s * load.seconds >= load.started * KEPT_UP_PCT / 100


@dataclass(frozen=True, slots=True)
class Bracket:
    """Bounds of a saturation: a rate that the server keeps up with, and one that it does not."""

    kept: int
    lost: int


def bisect(begin: int, holds: Callable[[int], bool]) -> Iterator[Bracket]:
    """Yield ever narrower bounds of the greatest rate for which ``holds``, from ``begin`` on.

    Rates are doubled or halved until there is one of each kind, then their geometric mean is tried.
    The last bounds are RESOLUTION apart.  At the ends of the possible rates there may be none.
    """
    kept, lost, rate = 0, HIGHEST + 1, begin
    while kept < rate < lost and (not kept or lost > HIGHEST):
        kept, lost = (rate, lost) if holds(rate) else (kept, rate)
        rate = min(rate * 2, HIGHEST) if kept == rate else rate // 2
    if not kept or lost > HIGHEST:
        return
    yield Bracket(kept, lost)
    while lost > max(kept + 1, kept * RESOLUTION):
        rate = max(kept + 1, min(lost - 1, round(math.sqrt(kept * lost))))
        kept, lost = (rate, lost) if holds(rate) else (kept, rate)
        yield Bracket(kept, lost)
