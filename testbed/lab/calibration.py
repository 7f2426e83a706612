"""Measure the running link and hold it against closed-form theory before it is trusted.

A probe (one small UDP datagram and its echo) gives the round trip; a train longer than the
buffer gives the rate (spacing at the receiver) and the buffer (how many datagrams survived).
This is for virtual time; ``testbed.lab.real_time_calibration`` is for real time.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace

from testbed.lab.ends import IP_UDP_HEADER_BYTES, Ends, open_ends, receive
from testbed.lab.exactness import Exactness
from testbed.lab.topology import Topology
from testbed.model import LinkSpec, Measurement
from testbed.model.line import serialisation_ms

PROBE_IP_BYTES = 100
PROBES = 5
TRAIN_SURPLUS = 12
QUIET_S = 1.0


def calibrate(topology: Topology, spec: LinkSpec, exactness: Exactness) -> tuple[Measurement, ...]:
    """Measure RTT, both rates and both buffers of a lossless, idle link.

    Args:
        topology: the running lab.
        spec: what was asked; theory follows from it.
        exactness: how far measured may be from theory.
    """
    with open_ends(topology) as ends:
        return (
            *_measure_rtt(ends, spec, exactness),
            *_measure_train("down", ends.server, ends.client, spec, exactness),
            *_measure_train("up", ends.client, ends.server, spec, exactness),
        )


def expect(spec: LinkSpec, exactness: Exactness) -> tuple[Measurement, ...]:
    """What an exact link of ``spec`` would measure: a judge compares theory and tolerances."""
    rtt_ms, packets = rtt_theory_ms(spec), train_theory(spec)
    found = [exactness.judge_rtt(rtt_ms, rtt_ms)]
    if spec.delay_up_ms is not None and not exactness.real_time:
        found.append(_judge_up(0.0, spec, exactness))
    for way, rate_kbit in (("down", spec.down_kbit), ("up", spec.up_kbit)):
        each_ms = serialisation_ms(spec.mtu_bytes, rate_kbit, spec.framing_bytes)
        kbit = spec.mtu_bytes * 8 / each_ms
        found += [
            exactness.judge_rate(way, kbit, kbit),
            exactness.judge_buffer(
                way, float(packets), float(packets), each_ms, packets + TRAIN_SURPLUS
            ),
        ]
    return tuple(found)


def describe_passed(delivered: int, dropped: int) -> str:
    """Return the packets of a calibration in one direction, as the read-back has them."""
    return f"{delivered} delivered, {dropped} dropped"


def rtt_theory_ms(spec: LinkSpec) -> float:
    """Round trip of a probe over the idle link."""
    return spec.rtt_ms + sum(
        serialisation_ms(PROBE_IP_BYTES, rate, spec.framing_bytes)
        for rate in (spec.up_kbit, spec.down_kbit)
    )


def train_theory(spec: LinkSpec) -> int:
    """Datagrams of one MTU that survive of a train sent at once: one in service, others queued."""
    return 1 + spec.buffer_bytes // (spec.mtu_bytes + spec.framing_bytes)


def _measure_rtt(ends: Ends, spec: LinkSpec, exactness: Exactness) -> Iterator[Measurement]:
    """The round trip, and where the ways are asked to differ, the way up."""
    payload = bytes(PROBE_IP_BYTES - IP_UDP_HEADER_BYTES)
    times_ms, up_ms = [], []
    for _ in range(PROBES):
        sent = time.time_ns()
        ends.client.send(payload)
        there = receive(ends.server, spec.rtt_ms / 1000 + QUIET_S)
        if there is None:
            continue
        up_ms.append((there[0] - sent) / 1e6)
        ends.server.send(payload)
        arrived = receive(ends.client, spec.rtt_ms / 1000 + QUIET_S)
        if arrived is not None:
            times_ms.append((arrived[0] - sent) / 1e6)
    # No echo at all reads as 0 ms: out of tolerance, and a number that JSON can hold.
    yield exactness.judge_rtt(min(times_ms, default=0.0), rtt_theory_ms(spec))
    if spec.delay_up_ms is not None:
        yield _judge_up(min(up_ms, default=0.0), spec, exactness)


def _judge_up(measured_ms: float, spec: LinkSpec, exactness: Exactness) -> Measurement:
    line_ms = serialisation_ms(PROBE_IP_BYTES, spec.up_kbit, spec.framing_bytes)
    theory_ms = line_ms + (spec.delay_up_ms or 0.0)
    judged = exactness.judge_rtt(measured_ms, theory_ms)
    return replace(judged, name="up_delay")


def _measure_train(
    name: str, sender: socket.socket, receiver: socket.socket, spec: LinkSpec, exactness: Exactness
) -> tuple[Measurement, Measurement]:
    rate_kbit = spec.down_kbit if name == "down" else spec.up_kbit
    expected = train_theory(spec)
    payload = bytes(spec.mtu_bytes - IP_UDP_HEADER_BYTES)
    for _ in range(expected + TRAIN_SURPLUS):
        sender.send(payload)
    each_ms = serialisation_ms(spec.mtu_bytes, rate_kbit, spec.framing_bytes)
    wait_s = (spec.rtt_ms + 3 * each_ms) / 1000 + QUIET_S
    arrivals: list[int] = []
    while (arrived := receive(receiver, wait_s)) is not None:
        arrivals.append(arrived[0])
    # Rates are those of IP bytes, whatever a packet costs on the link beyond them.
    theory_kbit = spec.mtu_bytes * 8 / each_ms
    measured_kbit = 0.0
    if len(arrivals) > 1:
        span_ms = (arrivals[-1] - arrivals[0]) / 1e6
        measured_kbit = (len(arrivals) - 1) * spec.mtu_bytes * 8 / span_ms
    return (
        exactness.judge_rate(name, measured_kbit, theory_kbit),
        exactness.judge_buffer(
            name, float(len(arrivals)), float(expected), each_ms, expected + TRAIN_SURPLUS
        ),
    )
