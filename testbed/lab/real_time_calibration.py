"""The calibration for real time: all of the link measured, in about half a second and a round trip.

The round trip is the median of several pings, echoed by the server's kernel.  Then a train longer
than the buffer goes each way, both at once: the first arrivals give the rate, and what the link
says that it dropped gives the buffer, the packets that left it during the sending taken off.  A
full buffer may need seconds to empty (128 KB at 256 kbit/s: 4 s), so the link is told to forget it.
With a trace a packet comes soon after an opportunity, instead of at a rate.
"""

from __future__ import annotations

import os
import socket
import statistics
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from types import MappingProxyType

from testbed.lab.calibration import (
    MOST_AT_ONCE,
    PROBE_IP_BYTES,
    QUIET_S,
    TRAIN_SURPLUS,
    rtt_theory_ms,
    train_theory,
    waited_ns,
)
from testbed.lab.ends import headers_bytes, open_ends, receive, time_arrivals
from testbed.lab.exactness import Exactness
from testbed.lab.link.protocol import WAYS, Link, LinkReport
from testbed.lab.topology import SERVER_ADDRESS, Topology
from testbed.model import LinkSpec, Measurement
from testbed.model.line import delay_ns, line_ms
from testbed.model.trace import MS_NS, RunningTrace

PINGS = 9
PAUSE_MS = 2.0
LEAST_ARRIVALS = 5
# A sender that is stopped for that long still fills the buffer.
SURPLUS_MS = 20.0
TRIES = 3
ICMP_ECHO, ICMP_ECHO_REPLY = 8, 0
IP_HEADER_BYTES, ICMP_HEADER_BYTES = 20, 8


@dataclass(frozen=True, slots=True)
class Train:
    """What was seen of one train; ``sending_ms`` is the time from its first to its last packet.

    It began at ``began_ns`` of CLOCK_REALTIME, as arrivals have it.
    """

    way: str
    sent: int
    dropped: int
    sending_ms: float
    arrivals_ns: tuple[int, ...]
    began_ns: int = 0


def calibrate_bounded(
    topology: Topology,
    spec: LinkSpec,
    link: Link,
    exactness: Exactness,
    traces: Mapping[str, RunningTrace] = MappingProxyType({}),
) -> tuple[Measurement, ...]:
    """Measure RTT, both rates and both buffers of a lossless, idle link; it is idle afterwards.

    ``traces`` are those of the link by direction.

    Raises:
        LabError: the link has ended.
    """
    rtt = exactness.judge_rtt(
        statistics.median(ping(topology, spec, PINGS, traces) or [0.0]), rtt_theory_ms(spec)
    )
    for _ in range(TRIES):
        trains = _send_trains(topology, spec, link, exactness.train_ms or 0.0, traces)
        link.forget()
        if all(train.dropped for train in trains):
            break
    return (rtt, *(m for train in trains for m in judge_train(train, spec, exactness, traces)))


def ping(
    topology: Topology,
    spec: LinkSpec,
    count: int,
    traces: Mapping[str, RunningTrace] = MappingProxyType({}),
) -> list[float]:
    """Round trips in ms of those of ``count`` pings (65,536 at the most) that came back.

    What they waited for opportunities of ``traces`` is taken off.
    """
    slower_ms = max(line_ms(spec, way, PROBE_IP_BYTES) for way in WAYS)
    slower_ms += sum(_longest_gap_ms(each) for each in traces.values())
    with topology.client.entered():
        end = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    with end:
        time_arrivals(end)
        end.connect((SERVER_ADDRESS, 0))
        sent_ns = []
        for number in range(count):
            request = echo_request(os.getpid() & 0xFFFF, number)
            sent_ns.append(time.time_ns())
            end.send(request)
            time.sleep((slower_ms + PAUSE_MS) / 1000)
        times_ms: list[float] = []
        while len(times_ms) < count:
            arrived = receive(end, (spec.rtt_ms + slower_ms) / 1000 + QUIET_S)
            if arrived is None:
                break
            kind, _, _, _, number = struct.unpack_from("!BBHHH", arrived[1], IP_HEADER_BYTES)
            if kind == ICMP_ECHO_REPLY and number < count:
                waited = waited_ns(spec, sent_ns[number], traces)
                times_ms.append((arrived[0] - sent_ns[number] - waited) / 1e6)
    return times_ms


def _longest_gap_ms(running: RunningTrace) -> int:
    times = running.trace.times
    return max([times[0], *(b - a for a, b in pairwise(times))])


def echo_request(identifier: int, number: int) -> bytes:
    """An ICMP echo request of ``PROBE_IP_BYTES`` with its IP header (RFC 792, RFC 1071)."""
    payload = bytes(PROBE_IP_BYTES - IP_HEADER_BYTES - ICMP_HEADER_BYTES)
    total = (ICMP_ECHO << 8) + identifier + number
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return struct.pack("!BBHHH", ICMP_ECHO, 0, checksum, identifier, number) + payload


def _send_trains(
    topology: Topology,
    spec: LinkSpec,
    link: Link,
    train_ms: float,
    traces: Mapping[str, RunningTrace],
) -> tuple[Train, ...]:
    before = link.read_report()
    with open_ends(topology) as ends:
        each_ms = {way: _each_ms(way, spec, traces) for way in WAYS}
        sent = {way: _send(ends.ways[way][0], way, spec, each_ms[way]) for way in WAYS}
        gaps_ms = {way: _longest_gap_ms(each) for way, each in traces.items()}
        arrivals = {
            way: _receive(
                ends.ways[way][1],
                wanted_arrivals(way, spec, train_ms, traces),
                spec.rtt_ms + 3 * each_ms[way] + gaps_ms.get(way, 0),
            )
            for way in WAYS
        }
        after = link.read_report()
    return tuple(
        Train(
            *(way, sent[way][0], _dropped(after, way) - _dropped(before, way), sent[way][1], times),
            sent[way][2],
        )
        for way, times in arrivals.items()
    )


def _dropped(report: LinkReport, way: str) -> int:
    return (report.down if way == "down" else report.up).dropped


def _each_ms(way: str, spec: LinkSpec, traces: Mapping[str, RunningTrace]) -> float:
    """Serialisation of one packet of one MTU; with a trace the mean of its opportunities."""
    if way not in traces:
        return line_ms(spec, way, spec.line_mtu_bytes)
    trace = traces[way].trace
    return trace.end_ms / len(trace.times)


def wanted_arrivals(
    way: str,
    spec: LinkSpec,
    train_ms: float,
    traces: Mapping[str, RunningTrace] = MappingProxyType({}),
) -> int:
    """How many packets of a train are waited for: those of ``train_ms``, if there are as many."""
    within = int(train_ms / _each_ms(way, spec, traces))
    return min(train_theory(spec, way), max(within, LEAST_ARRIVALS))


def _send(
    sender: socket.socket, way: str, spec: LinkSpec, each_ms: float
) -> tuple[int, float, int]:
    """Send a train at once; its packets, the ms that it took, and when it began."""
    count = train_theory(spec, way) + TRAIN_SURPLUS + round(SURPLUS_MS / each_ms)
    payload = bytes(spec.line_mtu_bytes - headers_bytes(spec.ip))
    began_ns = time.time_ns()
    sender.send(payload)
    started = time.monotonic_ns()
    for _ in range(count - 1):
        sender.send(payload)
    return count, (time.monotonic_ns() - started) / 1e6, began_ns


def _receive(receiver: socket.socket, count: int, most_ms: float) -> tuple[int, ...]:
    wait_s = most_ms / 1000 + QUIET_S
    times: list[int] = []
    while len(times) < count and (arrived := receive(receiver, wait_s)) is not None:
        times.append(arrived[0])
    return tuple(times)


def judge_train(
    train: Train,
    spec: LinkSpec,
    exactness: Exactness,
    traces: Mapping[str, RunningTrace] = MappingProxyType({}),
) -> tuple[Measurement, Measurement]:
    """Rate and buffer of one direction; the buffer as the packets of a train sent in no time."""
    if train.way in traces:
        return _judge_traced(train, spec, exactness, traces[train.way])
    each_ms = _each_ms(train.way, spec, traces)
    # Rates are those of IP bytes, whatever a packet costs on the link beyond them.
    theory_kbit = spec.line_mtu_bytes * 8 / each_ms
    measured_kbit = 0.0
    if len(train.arrivals_ns) > 1:
        measured_kbit = spec.line_mtu_bytes * 8 / spacing_ms(train.arrivals_ns)
    survivors = train.sent - train.dropped
    # A buffer that was never full may be of any size.
    passed = int(train.sending_ms / each_ms) if train.dropped else 0
    return (
        exactness.judge_rate(train.way, measured_kbit, theory_kbit),
        exactness.judge_buffer(train.way, float(survivors - passed), float(train_theory(spec))),
    )


def _judge_traced(
    train: Train, spec: LinkSpec, exactness: Exactness, running: RunningTrace
) -> tuple[Measurement, Measurement]:
    """How late packets came after opportunities, in the median, and the buffer before those."""
    errors_us = []
    for at_ns in train.arrivals_ns:
        left_ns = at_ns - delay_ns(spec, train.way)
        due_ns = running.next_ns(left_ns - MS_NS // 2)
        errors_us.append(inf if due_ns is None else abs(left_ns - due_ns) / 1000)
    passed, at_ns = 0, train.began_ns
    until_ns = train.began_ns + train.sending_ms * 1e6
    for moment in running.trace.after(at_ns - running.origin_ns, once=running.once):
        if moment + running.origin_ns > until_ns:
            break
        passed += 1
    theory = train_theory(spec, train.way)
    held = min(train.sent - train.dropped - passed, MOST_AT_ONCE + TRAIN_SURPLUS)
    late_us = statistics.median(errors_us) if errors_us else running.trace.end_ms * 1000.0
    return (
        exactness.judge_trace(train.way, late_us),
        exactness.judge_buffer(train.way, float(held), float(theory)),
    )


def spacing_ms(arrivals_ns: Sequence[int]) -> float:
    """Time from one packet to the next; a few that came late have no weight."""
    half = len(arrivals_ns) // 2
    spans = [late - early for early, late in zip(arrivals_ns, arrivals_ns[half:], strict=False)]
    return statistics.median(spans) / half / 1e6
