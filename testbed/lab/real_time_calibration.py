"""The calibration for real time: all of the link measured, in about half a second and a round trip.

The round trip is the median of several pings, echoed by the server's kernel.  Then a train longer
than the buffer goes each way, both at once: the first arrivals give the rate, and what the link
says that it dropped gives the buffer, the packets that left it during the sending taken off.  A
full buffer may need seconds to empty (128 KB at 256 kbit/s: 4 s), so the link is told to forget it.
"""

from __future__ import annotations

import os
import socket
import statistics
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.lab.calibration import (
    PROBE_IP_BYTES,
    QUIET_S,
    TRAIN_SURPLUS,
    rtt_theory_ms,
    train_theory,
)
from testbed.lab.ends import IP_UDP_HEADER_BYTES, open_ends, receive, time_arrivals
from testbed.lab.exactness import Exactness
from testbed.lab.link.protocol import WAYS, Link, LinkReport
from testbed.lab.topology import SERVER_ADDRESS, Topology
from testbed.model import LinkSpec, Measurement
from testbed.model.line import serialisation_ms

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
    """What was seen of one train; ``sending_ms`` is the time from its first to its last packet."""

    way: str
    sent: int
    dropped: int
    sending_ms: float
    arrivals_ns: tuple[int, ...]


def calibrate_bounded(
    topology: Topology, spec: LinkSpec, link: Link, exactness: Exactness
) -> tuple[Measurement, ...]:
    """Measure RTT, both rates and both buffers of a lossless, idle link; it is idle afterwards.

    Raises:
        LabError: the link has ended.
    """
    rtt = exactness.judge_rtt(
        statistics.median(ping(topology, spec, PINGS) or [0.0]), rtt_theory_ms(spec)
    )
    for _ in range(TRIES):
        trains = _send_trains(topology, spec, link, exactness.train_ms or 0.0)
        link.forget()
        if all(train.dropped for train in trains):
            break
    return (rtt, *(m for train in trains for m in judge_train(train, spec, exactness)))


def ping(topology: Topology, spec: LinkSpec, count: int) -> list[float]:
    """Round trips in ms of those of ``count`` pings (65,536 at the most) that came back."""
    slower_ms = max(
        serialisation_ms(PROBE_IP_BYTES, rate, spec.framing_bytes)
        for rate in (spec.up_kbit, spec.down_kbit)
    )
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
            arrived = receive(end, spec.rtt_ms / 1000 + QUIET_S)
            if arrived is None:
                break
            kind, _, _, _, number = struct.unpack_from("!BBHHH", arrived[1], IP_HEADER_BYTES)
            if kind == ICMP_ECHO_REPLY and number < count:
                times_ms.append((arrived[0] - sent_ns[number]) / 1e6)
    return times_ms


def echo_request(identifier: int, number: int) -> bytes:
    """An ICMP echo request of ``PROBE_IP_BYTES`` with its IP header (RFC 792, RFC 1071)."""
    payload = bytes(PROBE_IP_BYTES - IP_HEADER_BYTES - ICMP_HEADER_BYTES)
    total = (ICMP_ECHO << 8) + identifier + number
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return struct.pack("!BBHHH", ICMP_ECHO, 0, checksum, identifier, number) + payload


def _send_trains(
    topology: Topology, spec: LinkSpec, link: Link, train_ms: float
) -> tuple[Train, ...]:
    before = link.read_report()
    with open_ends(topology) as ends:
        both = {"down": (ends.server, ends.client), "up": (ends.client, ends.server)}
        sent = {way: _send(both[way][0], way, spec) for way in WAYS}
        arrivals = {
            way: _receive(both[way][1], wanted_arrivals(way, spec, train_ms), way, spec)
            for way in WAYS
        }
        after = link.read_report()
    return tuple(
        Train(way, sent[way][0], _dropped(after, way) - _dropped(before, way), sent[way][1], times)
        for way, times in arrivals.items()
    )


def _dropped(report: LinkReport, way: str) -> int:
    return (report.down if way == "down" else report.up).dropped


def _each_ms(way: str, spec: LinkSpec) -> float:
    """Serialisation of one packet of one MTU."""
    rate_kbit = spec.down_kbit if way == "down" else spec.up_kbit
    return serialisation_ms(spec.mtu_bytes, rate_kbit, spec.framing_bytes)


def wanted_arrivals(way: str, spec: LinkSpec, train_ms: float) -> int:
    """How many packets of a train are waited for: those of ``train_ms``, if there are as many."""
    within = int(train_ms / _each_ms(way, spec))
    return min(train_theory(spec), max(within, LEAST_ARRIVALS))


def _send(sender: socket.socket, way: str, spec: LinkSpec) -> tuple[int, float]:
    """Send a train at once; its packets, and the ms that it took."""
    count = train_theory(spec) + TRAIN_SURPLUS + round(SURPLUS_MS / _each_ms(way, spec))
    payload = bytes(spec.mtu_bytes - IP_UDP_HEADER_BYTES)
    sender.send(payload)
    started = time.monotonic_ns()
    for _ in range(count - 1):
        sender.send(payload)
    return count, (time.monotonic_ns() - started) / 1e6


def _receive(receiver: socket.socket, count: int, way: str, spec: LinkSpec) -> tuple[int, ...]:
    wait_s = (spec.rtt_ms + 3 * _each_ms(way, spec)) / 1000 + QUIET_S
    times: list[int] = []
    while len(times) < count and (arrived := receive(receiver, wait_s)) is not None:
        times.append(arrived[0])
    return tuple(times)


def judge_train(
    train: Train, spec: LinkSpec, exactness: Exactness
) -> tuple[Measurement, Measurement]:
    """Rate and buffer of one direction; the buffer as the packets of a train sent in no time."""
    each_ms = _each_ms(train.way, spec)
    # Rates are those of IP bytes, whatever a packet costs on the link beyond them.
    theory_kbit = spec.mtu_bytes * 8 / each_ms
    measured_kbit = 0.0
    if len(train.arrivals_ns) > 1:
        measured_kbit = spec.mtu_bytes * 8 / spacing_ms(train.arrivals_ns)
    survivors = train.sent - train.dropped
    # A buffer that was never full may be of any size.
    passed = int(train.sending_ms / each_ms) if train.dropped else 0
    return (
        exactness.judge_rate(train.way, measured_kbit, theory_kbit),
        exactness.judge_buffer(
            train.way, float(survivors - passed), float(train_theory(spec)), each_ms, train.sent
        ),
    )


def spacing_ms(arrivals_ns: Sequence[int]) -> float:
    """Time from one packet to the next; a few that came late have no weight."""
    half = len(arrivals_ns) // 2
    spans = [late - early for early, late in zip(arrivals_ns, arrivals_ns[half:], strict=False)]
    return statistics.median(spans) / half / 1e6
