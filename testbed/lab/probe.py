"""Probes of what a link draws: packets that are lost, doubled or late, held against theory.

Small datagrams, so far apart that none waits for another, go both ways over the complete link,
in virtual time.  ``testbed.lab.draw_bounds`` says what they should come to.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from testbed.lab.draw_bounds import (
    PACKETS,
    PROBE_IP_BYTES,
    bound_distance,
    count_bursts,
    count_copies,
    count_late,
    count_lost,
    share_in_time,
)
from testbed.lab.ends import headers_bytes, open_ends, receive
from testbed.lab.exactness import VIRTUAL
from testbed.lab.topology import Topology
from testbed.model import LinkSpec, Measurement
from testbed.model.impairments import Way, is_drawn, ways
from testbed.model.line import delay_ns, line_ms
from testbed.model.trace import MS_NS, RunningTrace, hops

QUIET_S = 1.0
HOP_PROBES, HOP_STEPS = 50, 7
CALLS_MS = 0.005
"""What system calls may add to a delay, and by how much more probes are apart."""
_NUMBER = struct.Struct(f"=I{PROBE_IP_BYTES - headers_bytes('4') - 4}x")


@dataclass(frozen=True, slots=True)
class Probed:
    """What came of the probes of one direction: how often each, and by how much after its time."""

    times: Counter[int]
    late_ms: list[float]


def probe(
    topology: Topology, spec: LinkSpec, traces: Mapping[str, RunningTrace]
) -> tuple[Measurement, ...]:
    """Measure what ``spec`` has drawn on a running, idle link; nothing, if nothing is.

    ``traces`` are those of the link by direction: a probe leaves before the next one is sent.
    """
    if not is_drawn(spec):
        return ()
    both = ways(spec)
    probe_bytes = headers_bytes(spec.ip) + _NUMBER.size
    each_ms = {name: line_ms(spec, name, probe_bytes) for name in both}
    held_ms = max((running.trace.longest_wait_ms for running in traces.values()), default=0)
    apart_s = max(
        held_ms + way.latest_ms - way.earliest_ms + 3 * each_ms[name] for name, way in both.items()
    ) / 1000 + CALLS_MS / 500  # fmt: skip
    with open_ends(topology) as ends:
        sent_ns: dict[str, list[int]] = {name: [] for name in ends.ways}
        for number in range(PACKETS):
            for name, (sender, _) in ends.ways.items():
                sent_ns[name].append(time.time_ns())
                sender.send(_NUMBER.pack(number))
            time.sleep(apart_s)
        found: list[Measurement] = []
        for name, (_, receiver) in ends.ways.items():
            seen = Probed(Counter(), [])
            wait_s = (both[name].latest_ms + held_ms) / 1000 + QUIET_S
            while (arrived := receive(receiver, wait_s)) is not None:
                (number,) = _NUMBER.unpack(arrived[1])
                seen.times[number] += 1
                if seen.times[number] == 1:
                    took_ms = (arrived[0] - sent_ns[name][number]) / 1e6
                    seen.late_ms.append(took_ms - each_ms[name] - both[name].delay_ms)
            found += _measure(name, both[name], seen)
    return tuple(found)


def expect_probed(spec: LinkSpec) -> tuple[Measurement, ...]:
    """What probes of ``spec`` come to on the mean: a judge compares theory and tolerances."""
    return tuple(m for name, way in ways(spec).items() for m in _theory(name, way))


def expect_hops(spec: LinkSpec) -> tuple[Measurement, ...]:
    """What probes of the last hop of ``spec`` come to: each at its opportunity."""
    return tuple(VIRTUAL.judge_trace(name, 0.0) for name in hops(spec))


def probe_hops(
    topology: Topology, spec: LinkSpec, traces: Mapping[str, RunningTrace]
) -> tuple[Measurement, ...]:
    """Measure by how much a lone packet came otherwise than the last hop lets it, at most.

    Each is sent so that it comes to the hop half a millisecond from any opportunity.
    """
    probe_bytes = headers_bytes(spec.ip) + _NUMBER.size
    found = []
    with open_ends(topology) as ends:
        for name in hops(spec):
            way, running = name.removeprefix("hop_"), traces[name]
            sender, receiver = ends.ways[way]
            took_ns = round(line_ms(spec, way, probe_bytes) * 1e6) + delay_ns(spec, way)
            before_ns, behind_ns = (took_ns, 0) if way == "down" else (0, took_ns)
            wait_s = (took_ns + running.trace.longest_wait_ms * MS_NS) / 1e9 + QUIET_S
            worst_ns = 0
            for number in range(HOP_PROBES):
                half_ns = (time.time_ns() + before_ns) % MS_NS
                time.sleep((number % HOP_STEPS * MS_NS + 3 * MS_NS // 2 - half_ns) / 1e9)
                due_ns = running.next_ns(time.time_ns() + before_ns)
                sender.send(_NUMBER.pack(number))
                arrived = receive(receiver, wait_s)
                came_ns = 0 if arrived is None else arrived[0] - behind_ns
                worst_ns = max(worst_ns, abs(came_ns - (due_ns or 0)))
            found.append(VIRTUAL.judge_trace(name, worst_ns / 1000))
    return tuple(found)


def _theory(name: str, way: Way) -> Iterator[Measurement]:
    counts = {
        "loss": count_lost if way.loses else None,
        "bursts": count_bursts if way.bursts else None,
        "copies": count_copies if way.duplicate_pct else None,
        # A copy comes behind its packet's line, which is no delay.
        "late": count_late if way.reorder_pct and not way.duplicate_pct else None,
    }
    for what, count in counts.items():
        if count is not None:
            mean, above, below = count(way)
            yield Measurement(f"{name}_{what}", "packets", mean, mean, 0.0, above, below)
    if way.jitter_ms:
        yield Measurement(f"{name}_jitter", "share", 0.0, 0.0, 0.0, bound_distance(way))


def _measure(name: str, way: Way, seen: Probed) -> Iterator[Measurement]:
    lost = [number not in seen.times for number in range(PACKETS)]
    measured = {
        "loss": sum(lost),
        "bursts": sum(
            now and not before for before, now in zip([False, *lost], lost, strict=False)
        ),
        "copies": sum(times > 1 for times in seen.times.values()),
        "late": sum(late_ms > way.reorder_ms / 2 for late_ms in seen.late_ms),
    }
    for theory in _theory(name, way):
        what = theory.name.removeprefix(f"{name}_")
        value = _distance(way, seen) if what == "jitter" else float(measured[what])
        yield replace(theory, measured=value)


def _distance(way: Way, seen: Probed) -> float:
    """How far the distribution of delays is from theory, whose draws a call may make later."""
    late_ms = sorted(seen.late_ms)
    count = len(late_ms)
    apart = 0.0
    for index, each_ms in enumerate(late_ms):
        apart = max(
            apart,
            (index + 1) / count - share_in_time(way, each_ms + CALLS_MS),
            share_in_time(way, each_ms - CALLS_MS) - index / count,
        )
    return apart
