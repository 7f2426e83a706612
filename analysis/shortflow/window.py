"""A Linux sender's congestion window, acknowledgement by acknowledgement, while nothing is lost.

Slow start grows by what is acknowledged (RFC 5681 with appropriate byte counting, RFC 3465), from
the initial window (RFC 6928).  cubic leaves it when HyStart finds the pipe full: when the least
round trip of a round has grown, or when acknowledgements in close order span half the least round
trip (Ha and Rhee, 2008; Linux, net/ipv4/tcp_cubic.c).
"""

from __future__ import annotations

from dataclasses import dataclass

# net/ipv4/tcp_cubic.c: hystart_low_window, HYSTART_MIN_SAMPLES, HYSTART_DELAY_MIN and _MAX,
# hystart_ack_delta_us; what hystart_ack_delay() comes to below 2 Gbit/s.
LOW_WINDOW_SEGMENTS = 16
LEAST_SAMPLES = 8
LEAST_GROWTH_MS, MOST_GROWTH_MS = 4.0, 16.0
CLOSE_ORDER_MS = 2.0
TRAIN_ALLOWANCE_MS = 1.0
# Before the first loss cubic adds at least one segment for so many acknowledged ones.
SEGMENTS_PER_INCREASE = 20
GROWTH_SHARE = 8


@dataclass(slots=True)
class Window:
    """The congestion window in segments; ``hystart`` is cubic's, and reno has none."""

    segments: int
    hystart: bool
    rounds: int = 0
    left_slow_start_ms: float | None = None
    _round_end: int = 0
    _round_start_ms: float = 0.0
    _last_close_ms: float = 0.0
    _samples: int = 0
    _round_least_ms: float = float("inf")
    _least_ms: float = float("inf")
    _towards_increase: int = 0

    def acknowledge(
        self, at_ms: float, round_trip_ms: float, newly: int, acked: int, sent: int
    ) -> None:
        """Grow by one acknowledgement.

        Args:
            at_ms: when it arrives at the sender.
            round_trip_ms: since the last segment that it acknowledges was sent.
            newly: how many segments it acknowledges.
            acked: how many are acknowledged with them.
            sent: how many have been sent.
        """
        self._least_ms = min(self._least_ms, round_trip_ms)
        if acked > self._round_end:
            self._begin_round(at_ms, sent)
        if self.left_slow_start_ms is None:
            if self.hystart and self.segments >= LOW_WINDOW_SEGMENTS:
                self._look_for_full_pipe(at_ms, round_trip_ms)
            if self.left_slow_start_ms is None:
                self.segments += newly
                return
        self._towards_increase += newly
        grown, self._towards_increase = divmod(self._towards_increase, SEGMENTS_PER_INCREASE)
        self.segments += grown

    def _begin_round(self, at_ms: float, sent: int) -> None:
        self.rounds += 1
        self._round_end = sent
        self._round_start_ms = self._last_close_ms = at_ms
        self._samples = 0
        self._round_least_ms = float("inf")

    def _look_for_full_pipe(self, at_ms: float, round_trip_ms: float) -> None:
        if at_ms - self._last_close_ms <= CLOSE_ORDER_MS:
            self._last_close_ms = at_ms
            threshold_ms = (self._least_ms + TRAIN_ALLOWANCE_MS) / 2.0
            if at_ms - self._round_start_ms > threshold_ms:
                self.left_slow_start_ms = at_ms
        self._round_least_ms = min(self._round_least_ms, round_trip_ms)
        if self._samples < LEAST_SAMPLES:
            self._samples += 1
            return
        growth_ms = min(max(self._least_ms / GROWTH_SHARE, LEAST_GROWTH_MS), MOST_GROWTH_MS)
        if self._round_least_ms > self._least_ms + growth_ms:
            self.left_slow_start_ms = at_ms
