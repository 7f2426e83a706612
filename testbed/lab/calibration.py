"""Measure the running link and hold it against closed-form theory before it is trusted.

A probe (one small UDP datagram and its echo) gives the round trip; a train longer than the
buffer gives the rate (spacing at the receiver) and the buffer (how many datagrams survived).  Where
a trace takes the place of a rate, each datagram of the train must come at its opportunity, and the
round trip is what is left of a probe's without the waits for opportunities.
This is for virtual time; ``testbed.lab.real_time_calibration`` is for real time.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from testbed.lab.ends import Ends, headers_bytes, open_ends, receive
from testbed.lab.exactness import VIRTUAL, Exactness
from testbed.lab.topology import Topology
from testbed.model import LinkSpec, Measurement
from testbed.model.line import answered_ns, delay_ns, line_ms
from testbed.model.trace import MS_NS, RunningTrace, room_bytes, trace_of

PROBE_IP_BYTES = 100
PROBES = 5
TRAIN_SURPLUS = 12
MOST_AT_ONCE = 600
QUIET_S = 1.0
AFTER_NS = 20_000
MOST_SHARE = 0.9


def calibrate(
    topology: Topology, spec: LinkSpec, exactness: Exactness, traces: Mapping[str, RunningTrace]
) -> tuple[Measurement, ...]:
    """Measure RTT, both rates and both buffers of a lossless, idle link.

    Args:
        topology: the running lab.
        spec: what was asked; theory follows from it.
        exactness: how far measured may be from theory.
        traces: those of the link by direction.
    """
    with open_ends(topology) as ends:
        return (
            *_measure_rtt(ends, spec, exactness, traces),
            *_measure_train("down", *ends.ways["down"], spec, exactness, traces),
            *_measure_train("up", *ends.ways["up"], spec, exactness, traces),
        )


def expect(spec: LinkSpec, exactness: Exactness) -> tuple[Measurement, ...]:
    """What an exact link of ``spec`` would measure: a judge compares theory and tolerances."""
    rtt_ms = rtt_theory_ms(spec)
    found = [exactness.judge_rtt(rtt_ms, rtt_ms)]
    if spec.delay_up_ms is not None and not exactness.real_time:
        found.append(_judge_up(0.0, spec, exactness))
    for way in ("down", "up"):
        packets, each_ms = train_theory(spec, way), line_ms(spec, way, spec.line_mtu_bytes)
        if each_ms:
            kbit = spec.line_mtu_bytes * 8 / each_ms
            found.append(exactness.judge_rate(way, kbit, kbit))
        else:
            found.append(exactness.judge_trace(way, 0.0))
        found.append(_judge_buffer(way, packets, spec, exactness))
    return tuple(found)


def _judge_buffer(way: str, survived: int, spec: LinkSpec, exactness: Exactness) -> Measurement:
    expected = train_theory(spec, way)
    # Nobody knows how far the line was with a packet when the last one was sent, nor when within a
    # system call that was.
    doubtful = 0.0
    if left_meanwhile(spec, way):
        each_us = line_ms(spec, way, spec.line_mtu_bytes) * 1000
        doubtful = 1.0 + math.ceil(VIRTUAL.call_us / each_us)
    return exactness.judge_buffer(way, float(survived), float(expected), doubtful)


def describe_passed(delivered: int, dropped: int) -> str:
    """Return the packets of a calibration in one direction, as the read-back has them."""
    return f"{delivered} delivered, {dropped} dropped"


def rtt_theory_ms(spec: LinkSpec) -> float:
    """Round trip of a probe over the idle link."""
    return spec.rtt_ms + sum(line_ms(spec, way, PROBE_IP_BYTES) for way in ("up", "down"))


def train_theory(spec: LinkSpec, way: str = "down") -> int:
    """Datagrams of one MTU that survive of a train sent at once: one in service, others queued.

    Before an opportunity of a trace none is in service, and of a buffer that could not be filled
    before the next one there is a train's worth.
    """
    held = spec.buffer_bytes // (spec.line_mtu_bytes + spec.framing_bytes)
    return min(held, MOST_AT_ONCE + TRAIN_SURPLUS) if trace_of(spec, way) else 1 + held


def train_sent(spec: LinkSpec, way: str) -> int:
    """Datagrams of a train: more than the buffer holds, but of a trace no more than within a ms."""
    sent = train_theory(spec, way) + TRAIN_SURPLUS
    if trace_of(spec, way):
        return min(sent, MOST_AT_ONCE + TRAIN_SURPLUS)
    return sent + left_meanwhile(spec, way)


def left_meanwhile(spec: LinkSpec, way: str) -> int:
    """Datagrams of a train that leave at the most while the others are sent.

    None of a train that waits for an opportunity of a trace does.
    """
    each_us = line_ms(spec, way, spec.line_mtu_bytes) * 1000
    if not each_us:
        return 0
    # As each that leaves makes room for one more to be sent, a geometric series; a line that is as
    # fast as its sender never has one in its buffer.
    share = min(VIRTUAL.call_us / each_us, MOST_SHARE)
    return int((train_theory(spec, way) + TRAIN_SURPLUS) * share / (1 - share))


def _measure_rtt(
    ends: Ends, spec: LinkSpec, exactness: Exactness, traces: Mapping[str, RunningTrace]
) -> Iterator[Measurement]:
    """The round trip, and where the ways are asked to differ, the way up."""
    payload = bytes(PROBE_IP_BYTES - headers_bytes(spec.ip))
    wait_s = spec.rtt_ms / 1000 + QUIET_S + sum(t.trace.end_ms / 1000 for t in traces.values())
    times_ms, up_ms = [], []
    for _ in range(PROBES):
        sent = time.time_ns()
        ends.client.send(payload)
        there = receive(ends.server, wait_s)
        if there is None:
            continue
        up_ms.append((there[0] - _leaves_ns(sent, traces.get("up"))) / 1e6)
        ends.server.send(payload)
        arrived = receive(ends.client, wait_s)
        if arrived is not None:
            times_ms.append((arrived[0] - sent - waited_ns(spec, sent, traces)) / 1e6)
    # No echo at all reads as 0 ms: out of tolerance, and a number that JSON can hold.
    yield exactness.judge_rtt(min(times_ms, default=0.0), rtt_theory_ms(spec))
    if spec.delay_up_ms is not None:
        yield _judge_up(min(up_ms, default=0.0), spec, exactness)


def _leaves_ns(at_ns: int, running: RunningTrace | None) -> int:
    """When what is sent at ``at_ns`` begins to leave an idle link; traces come again meanwhile."""
    left_ns = None if running is None else running.next_ns(at_ns)
    return at_ns if left_ns is None else left_ns


def _judge_up(measured_ms: float, spec: LinkSpec, exactness: Exactness) -> Measurement:
    theory_ms = line_ms(spec, "up", PROBE_IP_BYTES) + (spec.delay_up_ms or 0.0)
    judged = exactness.judge_rtt(measured_ms, theory_ms)
    return replace(judged, name="up_delay")


def waited_ns(spec: LinkSpec, at_ns: int, traces: Mapping[str, RunningTrace]) -> float:
    """For how long a probe of ``at_ns`` and its echo wait for opportunities, over an idle link."""
    back_ns = answered_ns(spec, at_ns, PROBE_IP_BYTES, PROBE_IP_BYTES, traces) or at_ns
    return back_ns - at_ns - rtt_theory_ms(spec) * 1e6 if traces else 0.0


def _measure_train(
    name: str,
    sender: socket.socket,
    receiver: socket.socket,
    spec: LinkSpec,
    exactness: Exactness,
    traces: Mapping[str, RunningTrace],
) -> tuple[Measurement, Measurement]:
    payload = bytes(spec.line_mtu_bytes - headers_bytes(spec.ip))
    running = traces.get(name)
    if running is not None:
        _leave_the_moment()
    sent = time.time_ns()
    for _ in range(train_sent(spec, name)):
        sender.send(payload)
    took_ms = (time.time_ns() - sent) / 1e6
    each_ms = line_ms(spec, name, spec.line_mtu_bytes)
    wait_s = (spec.rtt_ms + 3 * each_ms) / 1000 + QUIET_S
    if running is not None:
        needed = -(-(spec.line_mtu_bytes + spec.framing_bytes) // room_bytes(spec))
        wait_s += needed * running.trace.end_ms / 1000
    arrivals: list[int] = []
    while (arrived := receive(receiver, wait_s)) is not None:
        arrivals.append(arrived[0])
    # A buffer that was never full may be of any size.
    full = len(arrivals) < train_sent(spec, name) and each_ms
    passed = int(took_ms / each_ms) if full else 0
    buffer = _judge_buffer(name, len(arrivals) - passed, spec, exactness)
    if running is not None:
        error_us = _error_us(arrivals, sent, spec, name, running)
        return exactness.judge_trace(name, error_us), buffer
    # Rates are those of IP bytes, whatever a packet costs on the link beyond them.
    theory_kbit = spec.line_mtu_bytes * 8 / each_ms
    measured_kbit = 0.0
    if len(arrivals) > 1:
        span_ms = (arrivals[-1] - arrivals[0]) / 1e6
        measured_kbit = (len(arrivals) - 1) * spec.line_mtu_bytes * 8 / span_ms
    return exactness.judge_rate(name, measured_kbit, theory_kbit), buffer


def _leave_the_moment() -> None:
    """Sleep to soon after a whole ms, so that there is no opportunity while a train is sent."""
    time.sleep((MS_NS + AFTER_NS - time.time_ns() % MS_NS) / 1e9)


def _error_us(
    arrivals: list[int], sent_ns: int, spec: LinkSpec, way: str, running: RunningTrace
) -> float:
    """By how much a packet of a train came otherwise than by its trace, at most.

    Without any packet it is as much as a whole trace.
    """
    each = spec.line_mtu_bytes + spec.framing_bytes
    left = running.serve([(sent_ns, each)] * len(arrivals), room_bytes(spec))
    delayed_ns = delay_ns(spec, way)
    errors = [abs(a - d - delayed_ns) for a, d in zip(arrivals, left, strict=True)]
    return max(errors, default=running.trace.end_ms * MS_NS) / 1000
