"""Measure the running link and hold it against closed-form theory before it is trusted.

A probe (one small UDP datagram and its echo) gives the round trip; a train longer than the
buffer gives the rate (spacing at the receiver) and the buffer (how many datagrams survived).
Arrival times are the receiving kernel's (SO_TIMESTAMPNS, socket(7)).
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass

from testbed.lab.link import serialisation_ms
from testbed.lab.topology import CLIENT_ADDRESS, SERVER_ADDRESS, Topology
from testbed.model import LinkSpec, Measurement

PROBE_IP_BYTES = 100
PROBES = 5
IP_UDP_HEADER_BYTES = 28
TRAIN_SURPLUS = 12
SOCKET_BUFFER_BYTES = 8 << 20
# socket(7); Python has no names for them.
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
QUIET_S = 1.0


@dataclass(frozen=True, slots=True)
class Ends:
    """One UDP socket in the client's namespace and one in the server's, connected."""

    client: socket.socket
    server: socket.socket


def calibrate(topology: Topology, spec: LinkSpec, tolerance_pct: float) -> tuple[Measurement, ...]:
    """Measure RTT, both rates and both buffers of a lossless, idle link.

    Args:
        topology: the running lab.
        spec: what was asked; theory follows from it.
        tolerance_pct: how far measured may be from theory (buffers: one packet).
    """
    ends = _open_ends(topology)
    try:
        return (
            _measure_rtt(ends, spec, tolerance_pct),
            *_measure_train("down", ends.server, ends.client, spec, tolerance_pct),
            *_measure_train("up", ends.client, ends.server, spec, tolerance_pct),
        )
    finally:
        ends.client.close()
        ends.server.close()


def train_theory(spec: LinkSpec) -> int:
    """Datagrams of one MTU that survive of a train sent at once: one in service, others queued."""
    return 1 + spec.buffer_bytes // (spec.mtu_bytes + spec.framing_bytes)


def _open_ends(topology: Topology) -> Ends:
    sockets = []
    for namespace, address in (
        (topology.client, CLIENT_ADDRESS),
        (topology.server, SERVER_ADDRESS),
    ):
        with namespace.entered():
            end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        end.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER_BYTES)
        end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES)
        end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        end.bind((address, 0))
        sockets.append(end)
    client, server = sockets
    client.connect(server.getsockname())
    server.connect(client.getsockname())
    return Ends(client, server)


def _receive(end: socket.socket, timeout_s: float) -> int | None:
    """Arrival time of the next datagram in ns of the kernel's real-time clock; None: no more."""
    end.settimeout(timeout_s)
    try:
        _, ancillary, _, _ = end.recvmsg(64, 64)
    except TimeoutError:
        return None
    for _, kind, data in ancillary:
        if kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("@qq", data[:16])
            return int(seconds * 1_000_000_000 + nanoseconds)
    raise OSError("the kernel gave no arrival time (SO_TIMESTAMPNS)")


def _measure_rtt(ends: Ends, spec: LinkSpec, tolerance_pct: float) -> Measurement:
    payload = bytes(PROBE_IP_BYTES - IP_UDP_HEADER_BYTES)
    times_ms = []
    for _ in range(PROBES):
        sent = time.time_ns()
        ends.client.send(payload)
        if _receive(ends.server, spec.rtt_ms / 1000 + QUIET_S) is None:
            continue
        ends.server.send(payload)
        arrived = _receive(ends.client, spec.rtt_ms / 1000 + QUIET_S)
        if arrived is not None:
            times_ms.append((arrived - sent) / 1e6)
    theory = spec.rtt_ms + sum(
        serialisation_ms(PROBE_IP_BYTES, rate, spec.framing_bytes)
        for rate in (spec.up_kbit, spec.down_kbit)
    )
    # No echo at all reads as 0 ms: out of tolerance, and a number that JSON can hold.
    return Measurement("rtt", "ms", min(times_ms, default=0.0), theory, tolerance_pct)


def _measure_train(
    name: str, sender: socket.socket, receiver: socket.socket, spec: LinkSpec, tolerance_pct: float
) -> tuple[Measurement, Measurement]:
    rate_kbit = spec.down_kbit if name == "down" else spec.up_kbit
    expected = train_theory(spec)
    payload = bytes(spec.mtu_bytes - IP_UDP_HEADER_BYTES)
    for _ in range(expected + TRAIN_SURPLUS):
        sender.send(payload)
    each_ms = serialisation_ms(spec.mtu_bytes, rate_kbit, spec.framing_bytes)
    wait_s = (spec.rtt_ms + 3 * each_ms) / 1000 + QUIET_S
    arrivals: list[int] = []
    while (arrived := _receive(receiver, wait_s)) is not None:
        arrivals.append(arrived)
    # Rates are those of IP bytes, whatever a packet costs on the link beyond them.
    theory_kbit = spec.mtu_bytes * 8 / each_ms
    measured_kbit = 0.0
    if len(arrivals) > 1:
        span_ms = (arrivals[-1] - arrivals[0]) / 1e6
        measured_kbit = (len(arrivals) - 1) * spec.mtu_bytes * 8 / span_ms
    return (
        Measurement(f"{name}_rate", "kbit/s", measured_kbit, theory_kbit, tolerance_pct),
        Measurement(f"{name}_buffer", "packets", float(len(arrivals)), float(expected), 0.0),
    )
