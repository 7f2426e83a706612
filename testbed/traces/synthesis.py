"""Synthetic traces: opportunities made from a stated model and a seed, the same everywhere.

A rate is drawn for each ms: a mean times a level that a first-order autoregression moves, times
what a state of the link leaves of it.  Opportunities are where the bytes of that rate have come to
a packet.  Nothing but sums, products and square roots is used, which every machine rounds alike.
"""

from __future__ import annotations

import tomllib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.model.trace import PACKET_BYTES, Trace

MOST_DURATION_S = 3600
MOST_MBIT = 10_000
_WORDS = {"title": str, "source": str, "seed": int, "duration_s": int}


@dataclass(frozen=True, slots=True)
class Model:
    """Model of one direction; a part that is not wanted is left at its default.

    Attributes:
        mean_mbit: the rate's mean, without what takes it away.
        spread: standard deviation of the level, as a share of the mean.
        memory_ms: how long a level stays what it is (the autoregression's time constant).
        least, most: bounds of the level.
        blocked_every_s, blocked_for_s: means of how often something stands in the way, and how
            long; both are geometric.
        blocked_share: what then is left of the rate.
        period_s: how often resources are allocated anew.
        period_least: the least share of the mean that an allocation gives; the most is 1.
        period_gap_ms: for how long nothing passes at each allocation.
        turn_ms: how long a station has a shared medium.
        others: how many other stations want it, on the average: each turn is ours with the
            probability 1 / (1 + others).
    """

    mean_mbit: float
    spread: float = 0.0
    memory_ms: float = 1.0
    least: float = 0.0
    most: float = 4.0
    blocked_every_s: float = 0.0
    blocked_for_s: float = 1.0
    blocked_share: float = 0.0
    period_s: float = 0.0
    period_least: float = 1.0
    period_gap_ms: int = 0
    turn_ms: int = 0
    others: float = 0.0


def read_models(path: Path) -> tuple[dict[str, Model], int, int]:
    """Return the models in ``path`` by direction, their seed, and for how many seconds they run.

    Raises:
        ConfigurationError: with every problem of the file.
    """
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from None
    known = {each.name for each in fields(Model)}
    problems = [
        f"{path}: {name}: needed, a {kind.__name__}"
        for name, kind in _WORDS.items()
        if type(document.get(name)) is not kind
    ]
    problems += [f"{path}: {name}: unknown" for name in document.keys() - _WORDS.keys()
                 - {"down", "up"}]  # fmt: skip
    for way in ("down", "up"):
        table = document.get(way, {})
        problems += [f"{path}: [{way}] {name}: unknown" for name in table.keys() - known]
        strange = [
            f"{path}: [{way}] {name}: {value!r} is no number from 0"
            for name, value in table.items()
            if type(value) not in (int, float) or not 0 <= value < float("inf")
        ]
        problems += strange
        if not strange and not 0 < table.get("mean_mbit", 0) <= MOST_MBIT:
            problems.append(f"{path}: [{way}] mean_mbit: needed, above 0, up to {MOST_MBIT}")
    if not problems and not 0 < document["duration_s"] <= MOST_DURATION_S:
        problems.append(f"{path}: duration_s: from 1 to {MOST_DURATION_S}")
    if problems:
        raise ConfigurationError(sorted(problems))
    models = {way: Model(**document[way]) for way in ("down", "up")}
    return models, document["seed"], document["duration_s"]


def synthesise(path: Path, way: str) -> Trace:
    """Return the trace of direction ``way`` that the models in ``path`` make.

    Raises:
        ConfigurationError: a model is wrong, or lets nothing through.
    """
    models, seed, duration_s = read_models(path)
    times, bytes_left = array("I"), 0.0
    draw = Random(f"{seed} {way}")  # noqa: S311 - its numbers are to be the same everywhere
    for ms, mbit in enumerate(_rates(models[way], draw, duration_s * 1000)):
        bytes_left += mbit * 125.0
        while bytes_left >= PACKET_BYTES:
            times.append(ms)
            bytes_left -= PACKET_BYTES
    if not times or not times[-1]:
        raise ConfigurationError([f"{path}: [{way}] lets nothing through; raise mean_mbit"])
    return Trace(times)


def _rates(model: Model, draw: Random, duration_ms: int) -> Iterator[float]:
    """Yield the rate of each ms in Mbit/s."""
    held = 1.0 - 1.0 / max(model.memory_ms, 1.0)
    moved, level, share = model.spread * sqrt(1.0 - held * held), 0.0, 1.0
    blocked, ours, gap_ms = False, True, 0
    period_ms = round(model.period_s * 1000)
    for ms in range(duration_ms):
        if model.spread:
            level = held * level + moved * _normal(draw)
        if model.blocked_every_s:
            mean_s = model.blocked_for_s if blocked else model.blocked_every_s
            blocked ^= draw.random() * mean_s * 1000 < 1.0
        if period_ms and ms % period_ms == 0:
            share = model.period_least + (1.0 - model.period_least) * draw.random()
            gap_ms = ms + model.period_gap_ms
        if model.turn_ms and ms % model.turn_ms == 0:
            ours = draw.random() * (1.0 + model.others) < 1.0
        rate = model.mean_mbit * min(max(1.0 + level, model.least), model.most) * share
        if blocked:
            rate *= model.blocked_share
        yield rate if ours and ms >= gap_ms else 0.0


def _normal(draw: Random) -> float:
    """A number of mean 0 and variance 1: the sum of twelve uniform ones, less 6."""
    return sum(draw.random() for _ in range(12)) - 6.0
