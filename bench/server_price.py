"""Prices of a server's work on the host's kernel, beside those that virtual time charges.

Loads below saturation differ in what a connection consists of: SYNs, other segments, requests.  How
much longer the server's processor is busy with one than with another is the price of what it has
more (least squares over the loads of a round).  An accept comes with a close in every load, so only
their sum is measured; the list has a half of it for each.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

import numpy as np

from analysis.stats.estimates import SampleStatistics, describe_sample
from bench.pair import LoadPair, open_pair
from bench.result import Result
from bench.work import Machine, Work
from testbed.base.errors import TrialError
from testbed.kernel.hardware import read_hardware
from testbed.kinds.server_load.price_list import LIST
from testbed.wire.counters import grown

TAG = "ffb-price-"
TICK_US = 10_000
"""Of /proc/stat (USER_HZ)."""
RATE = 4_000
SECONDS, QUICK_SECONDS = 10.0, 3.0
ROUNDS, QUICK_ROUNDS = 12, 6
PARTS = ("syn", "segment", "accept_and_close", "request")
MOST_FAILED_PCT = 1.0


@dataclass(frozen=True, slots=True)
class PricedLoad:
    """A load: what is asked of the generator, and of the server, if there is one."""

    name: str
    asked: dict[str, int | str] = field(default_factory=dict)
    response_bytes: int = 900
    served: bool = True


LOADS = (
    PricedLoad("one request"),
    PricedLoad("ended by RST", {"close": "rst"}),
    PricedLoad("five requests", {"requests": 5}),
    PricedLoad("a response of 12 KiB", {}, 12_288),
    PricedLoad("a response of 24 KiB, ended by RST", {"close": "rst"}, 24_576),
    PricedLoad("refused", served=False),
)
"""Each part of a connection is in some of them more often than in others."""


@dataclass(frozen=True, slots=True)
class SpentTime:
    """A load as it was: per connection, the processor's time and how often each part came."""

    name: str
    us: float
    parts: dict[str, float]


def measure(work: Work) -> Result:
    """Measure all loads, round by round, and fit a list to each round."""
    seconds = QUICK_SECONDS if work.quick else SECONDS
    rounds = QUICK_ROUNDS if work.quick else ROUNDS
    with open_pair(TAG) as pair:
        found = [
            [_spend(pair, work, load, seconds, number) for load in _turned(number)]
            for number in range(rounds)
        ]
    return judge_prices(found, work.machine)


def _turned(number: int) -> Sequence[PricedLoad]:
    """Return the loads in an order that begins with another one each round."""
    first = number % len(LOADS)
    return (*LOADS[first:], *LOADS[:first])


def _spend(pair: LoadPair, work: Work, load: PricedLoad, seconds: float, number: int) -> SpentTime:
    """Return what the server's processor spent on ``load``, its idle time before taken off.

    Raises:
        TrialError: connections failed that should not, so that its numbers are of something else.
    """
    asked: dict[str, int | str] = {"rate": RATE, "lateness_limit_us": 3_600_000_000, **load.asked}
    log = work.scratch / f"price-{number}-{load.name.replace(' ', '-')}.json"
    if not load.served:
        return _read(pair, load, seconds, asked)
    with pair.serving(log, response_bytes=load.response_bytes):
        return _read(pair, load, seconds, asked)


def _read(
    pair: LoadPair, load: PricedLoad, seconds: float, asked: dict[str, int | str]
) -> SpentTime:
    idle = pair.idle_ticks(seconds / 4)
    before = pair.read_server()
    report = pair.generate(seconds, **asked)
    after = pair.read_server()
    ends = report["connections"]
    started, wanted = ends["started"], ends["completed" if load.served else "refused"]
    if started - wanted > started * MOST_FAILED_PCT / 100:
        raise TrialError(
            f"{load.name}: {started - wanted} of {started} connections ended otherwise"
        )
    ticks = after["ticks"] - before["ticks"] - idle * seconds
    counted = grown(before, after)
    segments = counted["TcpInSegs"] + counted["TcpOutSegs"]
    return SpentTime(
        load.name,
        max(0.0, ticks) * TICK_US / started,
        {
            "syn": 1.0,
            "segment": segments / started - 1.0,
            "accept_and_close": float(load.served),
            "request": report["requests"] / started,
        },
    )


def fit_prices(loads: Sequence[SpentTime]) -> dict[str, float]:
    """Return the price of each part in microseconds, by least squares, none below 0.

    Where a part would have a negative price it has none, and the others are fitted again (a step of
    C. Lawson, R. Hanson: Solving Least Squares Problems, 1974, chapter 23).
    """
    kept = list(PARTS)
    while True:
        rows = np.array([[load.parts[part] for part in kept] for load in loads])
        found = np.linalg.lstsq(rows, np.array([load.us for load in loads]), rcond=None)[0]
        prices = dict(zip(kept, map(float, found), strict=True))
        if min(prices.values()) >= 0 or len(kept) == 1:
            return dict.fromkeys(PARTS, 0.0) | prices
        kept.remove(min(prices, key=lambda part: prices[part]))


def judge_prices(rounds: Sequence[Sequence[SpentTime]], machine: Machine) -> Result:
    """Return the list of all rounds beside the one that is charged; there is no target."""
    fits = [fit_prices(loads) for loads in rounds]
    samples = {part: describe_sample(fit[part] for fit in fits) for part in PARTS}
    medians = {part: sample.median.value for part, sample in samples.items() if sample}
    return Result(
        name="server-price",
        asked="the list: " + _in_words(chosen_prices()),
        measured=_in_words(medians),
        verdict="reported",
        n=len(rounds),
        how=f"{len(LOADS)} loads of {RATE:,} connections/s that differ in their parts, busy time of"
        " the server's processor by /proc/stat; medians of a fit for each round, in us",
        real_time=True,
        details={
            "prices": price_file(samples, machine),
            "connection_us": {
                name: fmean(spent.us for one in rounds for spent in one if spent.name == name)
                for name in dict.fromkeys(spent.name for one in rounds for spent in one)
            },
            "rounds": [[asdict(spent) for spent in loads] for loads in rounds],
        },
    )  # fmt: skip


def chosen_prices() -> dict[str, float]:
    """Return the list that virtual time charges, in microseconds, by the parts measured here."""
    return {
        "syn": LIST.syn / 1000,
        "segment": LIST.segment / 1000,
        "accept_and_close": (LIST.accept + LIST.close) / 1000,
        "request": LIST.request / 1000,
    }


def price_file(samples: dict[str, SampleStatistics | None], machine: Machine) -> dict[str, Any]:
    """Return what ``testbed/kinds/server_load/prices.json`` holds, of this measurement."""
    found = {part: sample.median for part, sample in samples.items() if sample is not None}
    ns = {part: round(one.value * 1000) for part, one in found.items()}
    half = ns["accept_and_close"] / 2
    return {
        "prices_ns": {
            "syn": ns["syn"], "segment": ns["segment"], "accept": round(half),
            "request": ns["request"], "close": round(half),
        },
        "provenance": {
            "how": "make bench BENCH_ARGS='--only server-price'",
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "kernel": platform.release(),
            "machine": read_hardware(),
            "idle": machine.idle,
            "n": max((sample.n for sample in samples.values() if sample), default=0),
            "intervals_us": {
                part: None if one.interval is None else [one.interval.low, one.interval.high]
                for part, one in found.items()
            },
        },
    }  # fmt: skip


def _in_words(prices: dict[str, float]) -> str:
    return ", ".join(
        f"{part.replace('_', ' ')} {prices[part]:.1f}" for part in PARTS if part in prices
    )
