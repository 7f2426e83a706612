"""One fetch over HTTP/3 beside its closed form: cold, and with early data in a second visit.

Each datagram occupies the link for its IP bytes and is then delayed by half the round trip.  Sizes
are the capture's: who sends when, and what has to be waited for, is the theory's.

Two things beside the link take time.  Chromium acknowledges the first datagram of a handshake when
a timer of 1 ms runs out, the least that QUICHE sets (``kAlarmGranularity`` in quic_constants.h),
and Linux lets it be 50 us late (PR_SET_TIMERSLACK, prctl(2)).
And a server sends an address that is not validated three times of what came from it (RFC 9000
section 8.1): where more is to be sent, a round trip more.  nginx does not pace what it sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.capture.packets import Packet
from testbed.lab.topology import CLIENT_ENDS
from testbed.model import LinkSpec
from testbed.model.line import serialisation_ms
from testbed.proof.visits import VisitWindow

ALARM_MS = 1.0 + 0.05
IP_UDP_BYTES = 20 + 8
AMPLIFIED = 3
LARGE_BYTES = 1000
"""A datagram of a response has more, but for the last; one beside it less."""


@dataclass(frozen=True, slots=True)
class Datagrams:
    """IP bytes of the datagrams of a fetch, as they leave.

    ``hello`` is the client's first flight, ``flight`` the handshake of the server, ``answer`` what
    the client sends then, with its request if that is not early, and ``response`` the data.
    ``acknowledged`` is what else the server had sent before all of the client's first flight came.
    """

    hello: tuple[int, ...]
    flight: tuple[int, ...]
    answer: tuple[int, ...]
    response: tuple[int, ...]
    acknowledged: tuple[int, ...] = ()


def cold_ms(link: LinkSpec, sent: Datagrams, initials: int) -> float:
    """Return the time from the first Initial to the last of the response, in ms.

    The server's flight leaves when both Initials of the client came.  When its first datagram is
    there a timer runs, and the client's answers leave one behind the other: the last of these is
    the request, and the link is never idle between them.
    """
    up = _line_ms(link, up=True, sizes=(*sent.hello[:initials], *sent.answer))
    down = _line_ms(link, up=False, sizes=(sent.flight[0], *sent.response))
    return 2 * link.rtt_ms + up + ALARM_MS + down


def early_ms(link: LinkSpec, sent: Datagrams, initials: int) -> float:
    """Return the time from the first Initial to the last of the response, in ms.

    What of the response exceeds three times the client's first flight waits until the client has
    answered the handshake, or, if that is sooner, until the rest has left.
    """
    within = early_datagrams(sent)
    hello = _line_ms(link, up=True, sizes=sent.hello)
    validated = 1.5 * link.rtt_ms + _line_ms(
        link, up=True, sizes=(*sent.hello[:initials], *sent.answer[:1])
    )
    validated += _line_ms(link, up=False, sizes=sent.flight[:1])
    left = link.rtt_ms / 2 + hello + _line_ms(link, up=False, sizes=sent.response[:within])
    if within < len(sent.response):
        left = max(left, validated) + _line_ms(link, up=False, sizes=sent.response[within:])
    return left + link.rtt_ms / 2


def early_datagrams(sent: Datagrams) -> int:
    """Return how many datagrams of the response may leave before the address is validated."""
    room = AMPLIFIED * _udp_bytes(sent.hello)
    room -= _udp_bytes((*sent.flight, *sent.acknowledged))
    count = 0
    for size in sent.response:
        room -= size - IP_UDP_BYTES
        if room < 0:
            break
        count += 1
    return count


def _udp_bytes(sizes: Sequence[int]) -> int:
    return sum(sizes) - IP_UDP_BYTES * len(sizes)


def _line_ms(link: LinkSpec, *, up: bool, sizes: Sequence[int]) -> float:
    rate = link.up_kbit if up else link.down_kbit
    return sum(serialisation_ms(size, rate, link.framing_bytes) for size in sizes)


def read_fetch(packets: Sequence[Packet], window: VisitWindow) -> tuple[Datagrams, int, float]:
    """Return a visit's datagrams, how many of the first are Initials, and its time in ms."""
    held = [p for p in packets if window.holds(p.at_ns)]
    ups, downs = ([p for p in held if (p.source in CLIENT_ENDS) is up] for up in (True, False))
    handshake = [p for p in downs if _is_long(p)]
    full = [p for p in handshake if p.payload_bytes + IP_UDP_BYTES > LARGE_BYTES / 2]
    first_ns = full[0].at_ns
    large = [p for p in downs if not _is_long(p) and p.ip_bytes > LARGE_BYTES]
    # The response is one train: what is sent later looks for a larger path MTU (RFC 8899).
    size = large[0].ip_bytes
    train = [p for p in large if p.ip_bytes == size]
    after = downs.index(train[-1]) + 1
    train.append(downs[after])
    inside = downs[downs.index(train[0]) : after + 1]
    hello = [p for p in ups if p.at_ns < first_ns]
    answer = [p for p in ups if first_ns <= p.at_ns < train[0].at_ns]
    hellos, flights, answers, response, others = (
        tuple(p.ip_bytes for p in each)
        for each in (hello, full, answer, inside, [p for p in handshake if p not in full])
    )
    return (Datagrams(hellos, flights, answers, response, others), hellos.count(hellos[0]),
            (inside[-1].at_ns - hello[0].at_ns) / 1e6)  # fmt: skip


def _is_long(packet: Packet) -> bool:
    """Whether a datagram begins with a packet of a handshake (RFC 9000 section 17.2)."""
    return bool(packet.payload[0] & 0x80)
