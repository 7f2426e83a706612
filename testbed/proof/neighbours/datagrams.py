"""Datagrams of neighbours in captures: when each was sent, whether it came, and how late.

What that is worth to people who talk is the E-model's rating factor (ITU-T G.107, section 7, with
its defaults), for G.711 that conceals what is lost (G.113 Appendix I: Ie = 0, Bpl = 25.1)::

    R = 93.2 - Idd - 95 P / (P + Bpl)
    Idd = 25 ((1 + X^6)^(1/6) - 3 (1 + (X/3)^6)^(1/6) + 2) where X = log2(T / 100 ms) > 0, else 0

T is from mouth to ear: 20 ms to fill a packet, and as long as the player waits for each since it
was sent.  P are the percent that are lost or later than that.  The player waits as is best for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log2
from statistics import fmean

from testbed.capture.packets import Packet
from testbed.model import NeighbourFlow
from testbed.model.traffic import CALL_NS, CALL_STAMPS, PlannedFlow
from testbed.proof.neighbours.flow import SLACK_S, LoadWindow, SeenFlow, check_began, rate_kbit

_STAMP = slice(4, 8)
"""Of RTP's header, which the payload of a datagram begins with (RFC 3550 section 5.1)."""
_BEST_R, _ROBUSTNESS = 93.2, 25.1


def read_datagrams(
    flow: PlannedFlow, seen: SeenFlow, window: LoadWindow
) -> tuple[NeighbourFlow | None, list[str]]:
    """Return what a flow of datagrams came to, and a sentence for each thing not as asked."""
    sent, arrived = (seen.out, seen.arrived) if flow.way == "up" else (seen.left, seen.back)
    if not sent:
        return None, ["it never began"]
    wrong = [*check_began(flow.neighbour, sent[0].at_ns, window), *_paced(flow, sent, window)]
    came = {_number(packet): packet for packet in reversed(arrived)}  # the first of copies
    during = [p for p in sent if window.start_ns <= p.at_ns <= window.end_ns]
    delays = [(came[_number(p)].at_ns - p.at_ns) / 1e6 for p in during if _number(p) in came]
    ordered = sorted(delays)
    lost = len(during) - len(delays)
    payload = sum(
        packet.payload_bytes for packet in came.values()
        if window.start_ns <= packet.at_ns <= window.end_ns
    )  # fmt: skip
    return NeighbourFlow(
        *(flow.neighbour.text, flow.number, flow.way, window.since_s(sent[0].at_ns)),
        rate_kbit(payload, window),
        sent=len(during),
        lost=lost,
        delay_p50_ms=_at_share(ordered, 0.5),
        delay_p95_ms=_at_share(ordered, 0.95),
        delay_max_ms=ordered[-1] if ordered else None,
        jitter_ms=fmean(abs(b - a) for a, b in pairwise(delays)) if len(delays) > 1 else None,
        r_factor=rate_call(ordered, lost) if flow.neighbour.kind == "call" and during else None,
    ), wrong


def _paced(flow: PlannedFlow, sent: list[Packet], window: LoadWindow) -> Iterator[str]:
    """Yield a sentence if datagrams were not sent one after the other, each at its time."""
    neighbour = flow.neighbour
    others = sorted({p.ip_bytes for p in sent} - {neighbour.packet_bytes})
    if others:
        yield f"it sent packets of {others[0]} bytes, asked was {neighbour.packet_bytes}"
    began_ns = sent[0].at_ns
    beside = [
        number for number, packet in enumerate(sent)
        if _number(packet) != number
        or abs(packet.at_ns - began_ns - number * neighbour.gap_ns) > SLACK_S * 1e9
    ]  # fmt: skip
    if beside:
        yield (
            f"{len(beside)} of {len(sent)} packets were not sent at their times, one each "
            f"{neighbour.gap_ns / 1e6:g} ms"
        )
    missing_ns = window.end_of(neighbour) - sent[-1].at_ns - neighbour.gap_ns
    if missing_ns > SLACK_S * 1e9:
        yield f"it ended {missing_ns / 1e9:.3f} s too soon"


def _number(packet: Packet) -> int:
    """Return which datagram of its flow a packet is, from 0."""
    return int.from_bytes(packet.payload[_STAMP], "big") // CALL_STAMPS


def _at_share(ordered: list[float], share: float) -> float | None:
    """Return the smallest value that this share of the values does not exceed."""
    if not ordered:
        return None
    return ordered[max(0, -(-len(ordered) * round(share * 100) // 100) - 1)]


def rate_call(delays_ms: list[float], lost: int) -> float:
    """Return the rating factor R, from 0 to 93.2, of packets by their sorted one-way delays."""
    sent = len(delays_ms) + lost
    best = 0.0
    for played, delay_ms in enumerate(delays_ms, 1):
        late_pct = 100 * (sent - played) / sent
        x = log2(max(1.0, (CALL_NS / 1e6 + delay_ms) / 100))
        delay = 25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2)
        best = max(best, _BEST_R - delay - 95 * late_pct / (late_pct + _ROBUSTNESS))
    return best
