"""How exact a lab must be before it is trusted, and how long it may take to find that out."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.model import Measurement

SETTLE_S = 2.0
LEAST_SETTLE_S = 0.3
SETTLE_ROUND_TRIPS = 3
TRACE_US = 1.0
"""How far from its opportunity a packet may come, in virtual time."""


@dataclass(frozen=True, slots=True)
class Exactness:
    """How far a measurement may be from theory; beyond that the lab is not what was asked.

    Attributes:
        rtt_ms: of the round trip, in ms.
        rate_pct: of both rates.
        buffer_packets: of both buffers, in packets of one MTU.
        train_ms: for how long a train is watched in real time, where a full buffer may need
            seconds to empty: then the rest is thrown away.  ``None``: to the last packet, for
            waiting costs nothing in virtual time.
        call_us: what the system calls take at the most by which a packet is sent: on a fast link
            others leave the buffer meanwhile.
    """

    rtt_ms: float
    rate_pct: float
    buffer_packets: float
    train_ms: float | None = None
    call_us: float = 0.0

    @property
    def real_time(self) -> bool:
        """Whether waiting costs anything."""
        return self.train_ms is not None

    def settle_s(self, rtt_ms: float) -> float:
        """How long the last FINs and ACKs get to leave a link with a round trip of ``rtt_ms``."""
        if not self.real_time:
            return SETTLE_S
        return max(LEAST_SETTLE_S, SETTLE_ROUND_TRIPS * rtt_ms / 1000)

    def judge_rtt(self, measured_ms: float, theory_ms: float) -> Measurement:
        """The round trip beside its theory."""
        share_pct = 100 * self.rtt_ms / theory_ms
        return Measurement("rtt", "ms", measured_ms, theory_ms, share_pct, self.rtt_ms)

    def judge_rate(self, way: str, measured_kbit: float, theory_kbit: float) -> Measurement:
        """The rate of direction ``way`` beside its theory."""
        return Measurement(f"{way}_rate", "kbit/s", measured_kbit, theory_kbit, self.rate_pct)

    def judge_trace(self, way: str, measured_us: float) -> Measurement:
        """By how much a packet of a train in direction ``way`` came otherwise than by its trace."""
        most_us = self.rtt_ms * 1000 if self.real_time else TRACE_US
        return Measurement(f"{way}_trace", "us", measured_us, 0.0, 0.0, most_us)

    def judge_buffer(
        self, way: str, measured: float, theory: float, doubtful: float = 0.0
    ) -> Measurement:
        """The packets that a buffer held in direction ``way``, beside theory.

        So many packets as are ``doubtful`` may have left it or not when the last one was sent.
        """
        name, unit = f"{way}_buffer", "packets"
        packets = self.buffer_packets + doubtful
        if not packets:
            return Measurement(name, unit, measured, theory, 0.0)
        return Measurement(name, unit, measured, theory, 100 * packets / theory, packets)


VIRTUAL = Exactness(rtt_ms=0.005, rate_pct=0.1, buffer_packets=0.0, call_us=1.2)
HOST = Exactness(rtt_ms=0.5, rate_pct=1.0, buffer_packets=1.0, train_ms=350.0)
