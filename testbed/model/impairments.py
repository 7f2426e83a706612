"""Impairments of the link as asked: what each direction does to packets, and when that changes.

The model of bursts is that of Gilbert and Elliott as tc-netem(8) has it: a packet is lost by the
state of the line that it finds, and then the line changes its state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from statistics import NormalDist

from testbed.model.asked import Distribution, LinkSpec

MOST_DEVIATIONS = 4.0
"""Beyond it no distribution of a jitter has anything: netem's tables cannot hold it."""
CHANCES = (
    *("loss_pct", "loss_up_pct", "loss_down_pct", "loss_bursts", "delay_jitter_ms"),
    *("reorder_pct", "duplicate_pct", "corrupt_pct"),
)
"""The knobs of a link by which packets are drawn."""
LEAST_REORDER_PCT = 0.01
IPV6_LEAST_MTU = 1280
"""RFC 8200 section 5."""
_HIGHEST = {"rtt_ms": 60_000, "down_kbit": 10_000_000, "up_kbit": 10_000_000}
_SHAPE = 3.0
_MEAN = _SHAPE / (_SHAPE - 1)
_DEVIATION = math.sqrt(_SHAPE / (_SHAPE - 2)) / (_SHAPE - 1)


@dataclass(frozen=True, slots=True)
class Bursts:
    """Gilbert and Elliott's four numbers, in percent: turning bad and good, losses of each."""

    to_bad_pct: float
    to_good_pct: float
    bad_loss_pct: float
    good_loss_pct: float


@dataclass(frozen=True, slots=True)
class Way:
    """What one direction does to a packet behind its line; ``bursts`` take the place of a loss."""

    delay_ms: float
    jitter_ms: float
    distribution: Distribution
    loss_pct: float
    bursts: Bursts | None
    reorder_pct: float
    reorder_ms: float
    duplicate_pct: float
    corrupt_pct: float

    @property
    def loses(self) -> bool:
        """Whether packets may be lost at random, those that arrive damaged included."""
        return bool(self.loss_pct or self.bursts or self.corrupt_pct)

    @property
    def earliest_ms(self) -> float:
        """The least delay that may be drawn."""
        return self.delay_ms + self.jitter_ms * lowest(self.distribution)

    @property
    def latest_ms(self) -> float:
        """The greatest delay that may be drawn."""
        most = highest(self.distribution) * self.jitter_ms
        return self.delay_ms + most + (self.reorder_ms if self.reorder_pct else 0.0)


def ways(spec: LinkSpec) -> dict[str, Way]:
    """Return both directions of ``spec``, ``down`` and ``up``."""
    up_ms = spec.rtt_ms / 2 if spec.delay_up_ms is None else spec.delay_up_ms
    return {
        way: Way(
            delay_ms, spec.delay_jitter_ms, spec.delay_distribution,
            spec.loss_pct if own is None else own,
            parse_bursts(spec.loss_bursts) if own is None else None,
            spec.reorder_pct, spec.reorder_ms, spec.duplicate_pct, spec.corrupt_pct,
        )
        for way, delay_ms, own in (
            ("down", spec.rtt_ms - up_ms, spec.loss_down_pct), ("up", up_ms, spec.loss_up_pct),
        )
    }  # fmt: skip


def is_lossy(spec: LinkSpec) -> bool:
    """Whether packets of either direction may be lost at random, or arrive damaged."""
    return any(way.loses for way in ways(spec).values())


def is_drawn(spec: LinkSpec) -> bool:
    """Whether anything of the link is drawn."""
    return is_lossy(spec) or bool(spec.delay_jitter_ms or spec.reorder_pct or spec.duplicate_pct)


def without_chance(spec: LinkSpec) -> LinkSpec:
    """Return ``spec`` with nothing that is drawn: as a link is when it is calibrated."""
    plain = LinkSpec()
    return replace(spec, **{name: getattr(plain, name) for name in CHANCES})


def without_loss(spec: LinkSpec) -> LinkSpec:
    """Return ``spec`` in which all packets come."""
    return replace(
        spec, loss_pct=0.0, loss_up_pct=None, loss_down_pct=None, loss_bursts="", corrupt_pct=0.0
    )


def parse_bursts(text: str) -> Bursts | None:
    """Return the four numbers of ``loss_bursts``; ``None``: there are none."""
    return Bursts(*(float(word) for word in text.split()[1::2])) if text else None


def deviation_at(distribution: Distribution, share: float) -> float:
    """Return what ``share`` of all draws are below, in units of the jitter: 0 < share < 1."""
    if distribution == "uniform":
        return 2 * share - 1
    if distribution == "normal":
        return max(-MOST_DEVIATIONS, min(MOST_DEVIATIONS, NormalDist().inv_cdf(share)))
    return min(MOST_DEVIATIONS, (math.pow(1 - share, -1 / _SHAPE) - _MEAN) / _DEVIATION)


def share_below(distribution: Distribution, deviation: float) -> float:
    """Return the share of draws at or below ``deviation``, in units of the jitter."""
    if deviation >= highest(distribution):
        return 1.0
    if deviation < lowest(distribution):
        return 0.0
    if distribution == "uniform":
        return (deviation + 1) / 2
    if distribution == "normal":
        return NormalDist().cdf(deviation)
    return 1 - math.pow(deviation * _DEVIATION + _MEAN, -_SHAPE)


def lowest(distribution: Distribution) -> float:
    """Return the least draw, in units of the jitter."""
    least = {"uniform": -1.0, "normal": -MOST_DEVIATIONS, "pareto": (1 - _MEAN) / _DEVIATION}
    return least[distribution]


def highest(distribution: Distribution) -> float:
    """Return the greatest draw, in units of the jitter."""
    return 1.0 if distribution == "uniform" else MOST_DEVIATIONS


@dataclass(frozen=True, slots=True)
class Phase:
    """The link from ``at_ns`` of the load on: ``spec``, or down, when it loses all it carries."""

    at_ns: int
    spec: LinkSpec
    down: bool = False


def phases(spec: LinkSpec) -> tuple[Phase, ...]:
    """Return the link as it is asked at each time of the load, from 0 on, in their order."""
    found = [Phase(0, spec)]
    for at_s, what in _split(spec.changes):
        at_ns, now = _to_ns(at_s), found[-1].spec
        if what.startswith("down for "):
            for_ns = _to_ns(what.removeprefix("down for ").removesuffix(" s"))
            found += [Phase(at_ns, now, down=True), Phase(at_ns + for_ns, now)]
            continue
        steps = dict(step.split() for step in what.split(", "))
        after = replace(
            now,
            rtt_ms=float(steps.get("rtt_ms", now.rtt_ms)),
            down_kbit=int(steps.get("down_kbit", now.down_kbit)),
            up_kbit=int(steps.get("up_kbit", now.up_kbit)),
        )
        found.append(Phase(at_ns, after))
    return tuple(found)


def _split(changes: str) -> Iterator[tuple[str, str]]:
    for change in changes.split("; ") if changes else ():
        at, _, what = change.partition(": ")
        yield at.removeprefix("at ").removesuffix(" s"), what


def _to_ns(seconds: str) -> int:
    whole, _, part = seconds.partition(".")
    return int(whole) * 1_000_000_000 + int(part.ljust(9, "0"))


def fastest(spec: LinkSpec) -> LinkSpec:
    """Return the plain link that is never slower than ``spec`` at any time of the load."""
    plan = phases(spec)
    return replace(
        without_chance(spec),
        rtt_ms=min(least_round_trip_ms(phase.spec) for phase in plan),
        down_kbit=max(phase.spec.down_kbit for phase in plan),
        up_kbit=max(phase.spec.up_kbit for phase in plan),
        delay_up_ms=None,
        changes="",
    )


def least_round_trip_ms(spec: LinkSpec) -> float:
    """Return the least round trip that may be drawn, without what lines take."""
    return sum(way.earliest_ms for way in ways(spec).values())


def find_problems(spec: LinkSpec, timeout_s: float) -> Iterator[tuple[str, str]]:
    """Yield the knob, and a sentence, for each thing in ``spec`` that no link could do."""
    bursts = parse_bursts(spec.loss_bursts)
    if bursts is not None and max(astuple(bursts)) > 100:
        yield "loss_bursts", f"{spec.loss_bursts!r} has a chance above 100 %; allowed: 0 to 100"
    if 0 < spec.reorder_pct < LEAST_REORDER_PCT:
        yield "reorder_pct", f"{spec.reorder_pct:g} is too little; allowed: 0, or 0.01 and up"
    if spec.ip != "4" and spec.mtu_bytes < IPV6_LEAST_MTU:
        yield "ip", f"IPv6 has no link.mtu_bytes below {IPV6_LEAST_MTU}; take that or more"
    yield from _find_delays(spec)
    yield from _find_changes(spec, timeout_s)
    if spec.line_mtu_bytes > spec.mtu_bytes:
        sentence = f"{spec.path_mtu_bytes} is more than an end sends (mtu_bytes)"
        yield "path_mtu_bytes", f"{sentence}; allowed: 576 to {spec.mtu_bytes}"
    if spec.path_mtu_bytes is None and spec.path_mtu_discovery != LinkSpec().path_mtu_discovery:
        sentence = "nothing is too long; set link.path_mtu_bytes, or leave it out"
        yield "path_mtu_discovery", sentence


def _find_delays(spec: LinkSpec) -> Iterator[tuple[str, str]]:
    jitter_ms, kind = spec.delay_jitter_ms, spec.delay_distribution
    for phase in phases(spec):
        when = f" at {phase.at_ns / 1e9:g} s" if phase.at_ns else ""
        rtt_ms, up_ms = phase.spec.rtt_ms, phase.spec.delay_up_ms
        if up_ms is not None and up_ms > rtt_ms:
            sentence = f"delay_up_ms is {up_ms:g} ms, and rtt_ms{when} {rtt_ms:g} ms in all"
            yield "changes" if when else "delay_up_ms", f"{sentence}; allowed: 0 to rtt_ms"
            continue
        least_ms = min(way.delay_ms for way in ways(phase.spec).values())
        room_ms = least_ms / -lowest(kind)
        if jitter_ms > room_ms:
            sentence = (
                f"a {kind} jitter of {jitter_ms:g} ms can take more than the delay of "
                f"{least_ms:g} ms that a way has{when}; allowed: up to {room_ms:.6g} ms, or raise "
                "rtt_ms"
            )
            yield "changes" if when else "delay_jitter_ms", sentence


def _find_changes(spec: LinkSpec, timeout_s: float) -> Iterator[tuple[str, str]]:
    plan = phases(spec)
    for before, after in pairwise(plan):
        if after.at_ns <= before.at_ns:
            sentence = (
                f"what comes at {after.at_ns / 1e9:g} s begins before what is there before it is "
                f"over, at {before.at_ns / 1e9:g} s; allowed: times above 0 in their order, "
                "without overlap"
            )
            yield "changes", sentence
    last_s = plan[-1].at_ns / 1e9
    if last_s > timeout_s:
        sentence = f"the last is over after {last_s:g} s, and a load is given up after "
        yield "changes", f"{sentence}{timeout_s:g} s; allowed: times up to timeout_s"
    for name, high in _HIGHEST.items():
        for value in {getattr(phase.spec, name) for phase in plan[1:]}:
            if not 0 < value <= high:
                yield "changes", f"{name} {value:g}; allowed: above 0 to {high}"
    for name, way in (("trace_down", "down"), ("trace_up", "up")):
        if getattr(spec, name) and f"{way}_kbit" in spec.changes:
            yield "changes", f"{way}_kbit has no effect beside {name}; leave one of the two out"
    resized = [queue for queue in spec.queues.values() if queue.startswith(("pfifo", "bfifo"))]
    if spec.changes and resized:
        sentence = f"a change of rate resizes the queue {resized[0]!r}; leave one of them out, or "
        yield "changes", f"{sentence}take the default queue with buffer_bytes"
