"""Retransmission timers: no end keeps silent with unacknowledged data for longer than its timeout.

What a timeout may be at most follows from the round trips that the end has seen (RFC 6298, as
``tcp_rtt_estimator`` in net/ipv4/tcp_input.c computes it); each timeout doubles it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from testbed.capture.flows import Flow
from testbed.capture.packets import ACK, FIN, RST, SACK, SYN, Packet, behind, find_option
from testbed.mechanisms.sending.proof import is_ours
from testbed.proof.check import check
from testbed.proof.draws import busy_ns
from testbed.proof.evidence import Evidence

LEAST_NS, FALLBACK_NS = 200_000_000, 3_000_000_000
"""The least timeout, and the one before a round trip was measured (TCP_RTO_MIN and
TCP_TIMEOUT_FALLBACK in include/net/tcp.h)."""
LATE_NS, GRAIN = 20_000_000, 8
"""A timer is late by two jiffies and an eighth of its time at most (kernel/time/timer.c)."""


class Overdue(NamedTuple):
    """An end that was silent for ``waited_ns``, though its timeout was ``most_ns`` at most."""

    sender: str
    receiver: str
    waited_ns: int
    most_ns: int


@dataclass(slots=True)
class _End:
    """One end of a connection, in the capture at that end."""

    timeout_ns: int
    """What its timeout may be until it has measured a round trip."""
    reached: int
    first_ns: int
    """The first round trip that it may have measured; the shortest and the longest one."""
    short_ns: int
    long_ns: int
    segments: deque[tuple[int, int, bool]] = field(default_factory=deque)
    """The end of what is not acknowledged, when it left first, and whether it was sent again."""
    moved_ns: int = 0
    """When it sent something or something was acknowledged last."""
    again: int = 0
    """Timeouts since something was acknowledged."""
    closed: bool = False
    """Whether the other end takes nothing."""

    def most_ns(self) -> int:
        """Return the longest timeout that it may have now."""
        spread = max(2 * self.first_ns, 4 * (self.long_ns - self.short_ns))
        most = self.long_ns + max(LEAST_NS, spread)
        return max(most, self.timeout_ns) << self.again

    def send(self, packet: Packet) -> None:
        """Note that it sends data."""
        end = (packet.seq + _length(packet)) & 0xFFFFFFFF
        if behind(end, self.reached) > 0:
            self.segments.append((end, packet.at_ns, False))
            self.reached = end
        else:
            # What comes sooner than a timeout can, such as a tail loss probe, doubles nothing.
            self.again += packet.at_ns - self.moved_ns >= self.short_ns + LEAST_NS
            self.segments = deque(
                (each, at, sent_again or behind(each, packet.seq) > 0 >= behind(each, end))
                for each, at, sent_again in self.segments
            )
        self.moved_ns = packet.at_ns

    def take(self, packet: Packet) -> None:
        """Note what the other end acknowledges."""
        self.closed = not packet.window
        while self.segments and behind(self.segments[0][0], packet.ack) <= 0:
            _, sent_ns, sent_again = self.segments.popleft()
            self._measure(packet.at_ns - sent_ns, sure=not sent_again)
            self.moved_ns, self.again, self.timeout_ns = packet.at_ns, 0, 0
        blocks = find_option(packet, SACK) or b""
        for at in range(0, len(blocks), 8):
            left, right = (int.from_bytes(blocks[i : i + 4]) for i in (at, at + 4))
            for end, sent_ns, _ in self.segments:
                if behind(end, left) > 0 >= behind(end, right):
                    self._measure(packet.at_ns - sent_ns, sure=False)

    def _measure(self, rtt_ns: int, *, sure: bool) -> None:
        """Note a round trip; what was sent again may have taken less."""
        self.long_ns = max(self.long_ns, rtt_ns)
        if sure:
            self.short_ns = min(self.short_ns, rtt_ns)


@check(
    *("timers", "virtual_time", "load", "condition", "at_server", "undamaged"),
    source="RFC 6298",
)
def check_timers(seen: Evidence) -> Iterator[str]:
    """No end was silent with unacknowledged data for longer than its timeout can have been."""
    if not is_ours(seen):
        return
    late_ns = LATE_NS + busy_ns(seen)
    late = [
        each
        for flows, by_client in ((seen.flows_at_server, False), (seen.flows, True))
        for flow in flows.flows
        for each in find_overdue(flow, by_client=by_client)
        if each.waited_ns > each.most_ns + each.most_ns // GRAIN + late_ns
    ]
    if late:
        worst = max(late, key=lambda each: each.waited_ns - each.most_ns)
        yield (
            f"retransmission timers were late {len(late)} times, the one of {worst.sender} to "
            f"{worst.receiver} waited {worst.waited_ns / 1e6:.3f} ms, where "
            f"{worst.most_ns / 1e6:.3f} are the most"
        )


def _length(packet: Packet) -> int:
    """Return how many numbers a segment takes: a FIN has one, too."""
    return packet.payload_bytes + bool(packet.flags & FIN)


def find_overdue(flow: Flow, *, by_client: bool) -> Iterator[Overdue]:
    """Yield each wait for an acknowledgement until one end acts or is answered.

    ``flow`` is of the capture at the end that is asked about.
    """
    if flow.synack is None:
        return
    opening = flow.syn if by_client else flow.synack
    packets = [(side == by_client, packet) for side, packet in flow.packets]
    opened = sum(ours and bool(packet.flags & SYN) for ours, packet in packets)
    answers = (packet for ours, packet in packets if not ours and packet.flags & ACK)
    answer = next(answers, opening)
    rtt_ns = answer.at_ns - opening.at_ns
    start = (opening.seq + 1) & 0xFFFFFFFF
    end = _End(FALLBACK_NS, start, rtt_ns, rtt_ns, rtt_ns)
    sender, receiver = flow.ends if by_client else flow.ends[::-1]
    for ours, packet in packets:
        if packet is answer or (ours and packet.flags & SYN):
            end.moved_ns = packet.at_ns  # the timer starts anew
        if packet.flags & SYN:
            continue
        if packet.flags & RST:
            return
        acts = ours and _length(packet) > 0
        moves = acts or (
            not ours and bool(end.segments) and behind(packet.ack, end.segments[0][0]) >= 0
        )
        if moves and end.segments and not end.closed:
            yield Overdue(sender, receiver, packet.at_ns - end.moved_ns, end.most_ns())
        if acts:
            end.send(packet)
        elif not ours:
            # What was sent before the SYN-ACK was answered keeps its timeout (tcp_init_metrics).
            if opened == 1 and not end.segments:
                end.timeout_ns = 0
            end.take(packet)
