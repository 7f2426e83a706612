"""Prices of a server's work on the host's kernel, beside those that virtual time charges.

Loads below saturation differ in what a connection consists of: SYNs, other segments, requests.  How
much longer the server's processor is busy with one than with another is the price of what it has
more (least squares over the loads of a round).  An accept comes with a close in every load, so only
their sum is measured; the list has a half of it for each.  The result is a part of an experiment
file, which lies beside the bench's JSON.
"""

from __future__ import annotations

import json
import platform
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from statistics import fmean

import numpy as np

from analysis.stats.estimates import SampleStatistics, describe_sample
from bench.pair import LoadPair, open_pair
from bench.result import Result
from bench.work import Machine, Work
from testbed.base import log
from testbed.base.errors import TrialError
from testbed.capture.counters import grown
from testbed.kernel.run.hardware import read_hardware
from wings.server_loads.spec import Program, ServerSpec

_log = log.logger("testbed.bench")

TAG = "ffb-price-"
TICK_US = 10_000
"""Of /proc/stat (USER_HZ)."""
RATE = 4_000
SECONDS, QUICK_SECONDS = 4.0, 2.0
IDLE_S = 1.0
"""Before each round: what the processor does without a load."""
ROUNDS, QUICK_ROUNDS = 8, 6
LEAST_ROUNDS = 3
MOST_BUSY_PCT = 10.0
"""Of the server's processor without a load: with more, others take what a load would be seen by."""
LIMIT_S = 300.0
"""After it no round begins: on a busy machine loads are disturbed, and taken again."""
PARTS = ("syn", "segment", "accept_and_close", "request")
MOST_FAILED_PCT = 1.0


@dataclass(frozen=True, slots=True)
class PricedLoad:
    """A load: the generator's options, and the server's response, if there is a server."""

    name: str
    options: dict[str, int | str] = field(default_factory=dict)
    response_bytes: int = 900
    served: bool = True


LOADS = (PricedLoad("one request"), PricedLoad("ended by RST", {"close": "rst"}),
         PricedLoad("five requests", {"requests": 5}),
         PricedLoad("a response of 12 KiB", {}, 12_288),
         PricedLoad("a response of 24 KiB, ended by RST", {"close": "rst"}, 24_576),
         PricedLoad("refused", served=False))  # fmt: skip
"""Each part of a connection is in some of them more often than in others."""


@dataclass(frozen=True, slots=True)
class SpentTime:
    """A measured load: per connection, the processor's time and the count of each part."""

    name: str
    us: float
    parts: dict[str, float]


def measure(work: Work, program: Program = "event-server") -> Result:
    """Measure all loads, round by round, and fit a list to each round.

    No round begins after LIMIT_S, even if some are missing.

    Raises:
        TrialError: too few rounds were undisturbed.
    """
    seconds = QUICK_SECONDS if work.quick else SECONDS
    rounds_wanted = QUICK_ROUNDS if work.quick else ROUNDS
    rounds: list[list[SpentTime]] = []
    disturbed = ""
    until = time.monotonic() + LIMIT_S
    with open_pair(TAG) as pair:
        number = 0
        while (
            len(rounds) < rounds_wanted and number < 2 * rounds_wanted and time.monotonic() < until
        ):
            try:
                rounds.append(_measure_round(pair, work, program, seconds, number))
            except TrialError as error:
                disturbed = str(error)
                _log.info("a round does not count: %s", disturbed)
            number += 1
    if len(rounds) < LEAST_ROUNDS:
        raise TrialError(
            f"only {len(rounds)} of {number} rounds count ({disturbed or 'they took too long'}): "
            "the machine is too busy; measure again when it is idle"
        )
    return judge_prices(rounds, work.machine, program)


measure_nginx = partial(measure, program="nginx")


def _measure_round(
    pair: LoadPair, work: Work, program: Program, seconds: float, number: int
) -> list[SpentTime]:
    """Return all loads of a round; each round begins with a different load.

    Raises:
        TrialError: connections failed that should not, or other processes used the processor, so
            the number would include their time.
    """
    idle = pair.idle_ticks(IDLE_S)
    busy_pct = idle * TICK_US / 1e4
    if busy_pct > MOST_BUSY_PCT:
        raise TrialError(f"without a load the server's processor was busy for {busy_pct:.0f} %")
    first = number % len(LOADS)
    spent_times = []
    for load in (*LOADS[first:], *LOADS[:first]):
        scratch = work.folder(f"price-{program}-{number}-{load.name.replace(' ', '-')}")
        options = {"rate": RATE, "lateness_limit_us": 3_600_000_000, **load.options}
        if load.served:
            with pair.serving(scratch / "server", program, load.response_bytes):
                spent_times.append(_read(pair, load, seconds, options, idle))
        else:
            spent_times.append(_read(pair, load, seconds, options, idle))
    return spent_times


def _read(
    pair: LoadPair, load: PricedLoad, seconds: float, options: Mapping[str, int | str], idle: float
) -> SpentTime:
    """Return what the server's processor spent on ``load``, ``idle`` ticks a second taken off."""
    before = pair.read_server()
    report = pair.generate(seconds, **options)
    after = pair.read_server()
    ends = report["connections"]
    started, as_expected = ends["started"], ends["completed" if load.served else "refused"]
    if started - as_expected > started * MOST_FAILED_PCT / 100:
        raise TrialError(
            f"{load.name}: {started - as_expected} of {started} connections ended otherwise"
        )
    ticks = after["ticks"] - before["ticks"] - idle * seconds
    counted = grown(before, after)
    segments = counted["TcpInSegs"] + counted["TcpOutSegs"]
    return SpentTime(load.name, max(0.0, ticks) * TICK_US / started, {
        "syn": 1.0, "segment": segments / started - 1.0, "accept_and_close": float(load.served),
        "request": report["requests"] / started,
    })  # fmt: skip


def fit_prices(loads: Sequence[SpentTime]) -> dict[str, float]:
    """Return the price of each part in microseconds, by least squares, none below 0.

    A part with a negative price gets 0, and the others are fitted again (a step of C. Lawson,
    R. Hanson: Solving Least Squares Problems, 1974, chapter 23).
    """
    priced_parts = list(PARTS)
    while True:
        rows = np.array([[load.parts[part] for part in priced_parts] for load in loads])
        solution = np.linalg.lstsq(rows, np.array([load.us for load in loads]), rcond=None)[0]
        prices = dict(zip(priced_parts, map(float, solution), strict=True))
        if min(prices.values()) >= 0 or len(priced_parts) == 1:
            return dict.fromkeys(PARTS, 0.0) | prices
        priced_parts.remove(min(prices, key=lambda part: prices[part]))


def judge_prices(
    rounds: Sequence[Sequence[SpentTime]], machine: Machine, program: Program = "event-server"
) -> Result:
    """Return the price list of all rounds beside the list that is charged; there is no target."""
    fits = [fit_prices(loads) for loads in rounds]
    samples = {
        part: sample
        for part in PARTS
        if (sample := describe_sample(fit[part] for fit in fits)) is not None
    }
    medians = {part: sample.median.value for part, sample in samples.items()}
    return Result(
        name="server-price" if program == "event-server" else f"{program}-price",
        asked="the list: " + _in_words(chosen_prices()),
        measured=_in_words(medians),
        verdict="reported",
        n=len(rounds),
        how=f"{len(LOADS)} loads of {program}, {RATE:,} connections/s, that differ in their parts; "
        "busy time of the server's processor by /proc/stat; medians of a fit for each round, in us",
        real_time=True,
        details={
            "prices_us": {
                part: {
                    "median": sample.median.value,
                    "interval": asdict(sample.median.interval) if sample.median.interval else None,
                    "least": min(fit[part] for fit in fits),
                    "greatest": max(fit[part] for fit in fits),
                    "n": sample.n,
                }
                for part, sample in samples.items()
            },
            "hardware": read_hardware(),
            "kernel": platform.release(),
            "connection_us": {
                name: fmean(spent.us for loads in rounds for spent in loads if spent.name == name)
                for name in dict.fromkeys(spent.name for loads in rounds for spent in loads)
            },
            "rounds": [[asdict(spent) for spent in loads] for loads in rounds],
        },
        files={f"{program}-prices.toml": price_file(samples, fits, machine, program)},
    )  # fmt: skip


def chosen_prices() -> dict[str, float]:
    """Return the list that virtual time charges, in microseconds, by the parts measured here."""
    server = ServerSpec()
    return {"syn": server.price_syn_us, "segment": server.price_segment_us,
            "accept_and_close": server.price_accept_us + server.price_close_us,
            "request": server.price_request_us}  # fmt: skip


def price_file(
    samples: Mapping[str, SampleStatistics], fits: Sequence[Mapping[str, float]], machine: Machine,
    program: Program,
) -> str:  # fmt: skip
    """Return the list as a part of an experiment file, with where it is from."""
    hardware = read_hardware()
    known = {part: round(sample.median.value, 3) for part, sample in samples.items()}
    half = round(known["accept_and_close"] / 2, 3)
    prices = {"syn": known["syn"], "segment": known["segment"], "accept": half,
              "request": known["request"], "close": half}  # fmt: skip
    origin = (
        f"measured: {program} on {hardware['processor'].removeprefix('model name ')}, "
        f"Linux {platform.release()}, "
        f"{datetime.now(UTC):%Y-%m-%d}, n = {len(fits)}"
        f"{'' if machine.idle else ', on a machine that was not idle'}"
    )
    knobs = [("price", 1.0), *((f"price_{name}_us", price) for name, price in prices.items())]
    spreads = [
        f"#   {part.replace('_', ' ')}: {known[part]:.3f}{_interval(sample)}, "
        f"rounds {min(fit[part] for fit in fits):.3f} to {max(fit[part] for fit in fits):.3f}"
        for part, sample in samples.items()
    ]
    options = [
        *(f"{name}={value:g}" for name, value in knobs),
        shlex.quote(f"prices_from={json.dumps(origin)}"),
    ]
    sets = " ".join(f"--set {option}" for option in options)
    return "\n".join([
        "# Price list of a server's work in virtual time, by the bench's server-price: a part",
        f"# of an experiment file.  In us, over {len(fits)} rounds: medians with intervals of",
        "# 95 %, and the range:", *spreads,
        "# Only the sum of accept and close is known; each has a half of it.  A greater price",
        "# keeps the proportions, and trials short.  The same as options:", f"#   {sets}",
        f"prices_from = {json.dumps(origin)}", "", "[server]",
        *(f"{name} = {value:g}" for name, value in knobs),
        "",
    ])  # fmt: skip


def _interval(sample: SampleStatistics) -> str:
    interval = sample.median.interval
    return "" if interval is None else f" ({interval.low:.3f} to {interval.high:.3f})"


def _in_words(prices: Mapping[str, float]) -> str:
    return ", ".join(
        f"{part.replace('_', ' ')} {prices[part]:.1f}" for part in PARTS if part in prices
    )
