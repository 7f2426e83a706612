"""Closed form of one cold fetch over the emulated link, from packet sizes alone.

A client opens a connection, asks for one object and reads it; the server's initial window holds
the whole response (RFC 6928), so that it leaves in one flight.  Each packet occupies the link for
its IP bytes (plus framing) at the link's rate and is then delayed by half the round trip.  What a
program computes costs nothing.

Sizes: RFC 791 and RFC 9293 (headers), RFC 7323 (time stamps, window scale), RFC 2018 (SACK),
RFC 7413 (Fast Open option and data in the SYN), all as Linux lays them out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from testbed.model import LinkSpec
from testbed.model.knob import changed
from testbed.model.line import serialisation_ms

IP_TCP_BYTES = 20 + 20
# MSS 4, SACK permitted 2 beside time stamps 10, no-operation 1 and window scale 3.
SYN_OPTION_BYTES = 4 + 12 + 4
# Two no-operations and the time stamps.
TIMESTAMP_OPTION_BYTES = 12
# Kind, length and Linux's cookie of 8 bytes, aligned to 4.
COOKIE_OPTION_BYTES = 12
KNOWN = frozenset({
    *("rtt_ms", "down_kbit", "up_kbit", "buffer_bytes", "mtu_bytes", "framing_bytes", "profile"),
})  # fmt: skip
"""The knobs of a link that the closed form follows."""


@dataclass(frozen=True, slots=True)
class ColdFetch:
    """One fetch: link, bytes of request and response above TCP, Fast Open with a cached cookie."""

    link: LinkSpec
    request_bytes: int
    response_bytes: int
    fast_open: bool
    initcwnd_segments: int = 10


@dataclass(frozen=True, slots=True)
class Packets:
    """IP bytes of the packets on the critical path, in the order in which they leave."""

    up: tuple[int, ...]
    down: tuple[int, ...]


def packets(fetch: ColdFetch) -> Packets:
    """Return what is sent each way until the response has arrived, but for acknowledgements.

    Raises:
        ValueError: the response does not fit into the first flight, or the request not in a SYN, or
            the link has a knob set that the closed form does not know.
    """
    beyond = [each.name for each, _ in changed(fetch.link) if each.name not in KNOWN]
    if beyond:
        raise ValueError(f"the closed form does not know {', '.join(beyond)} of the link")
    room = fetch.link.mtu_bytes - IP_TCP_BYTES - TIMESTAMP_OPTION_BYTES
    segments = math.ceil(fetch.response_bytes / room)
    if segments > fetch.initcwnd_segments:
        raise ValueError(f"{segments} segments do not fit in a window of {fetch.initcwnd_segments}")
    plain = IP_TCP_BYTES + TIMESTAMP_OPTION_BYTES
    syn = IP_TCP_BYTES + SYN_OPTION_BYTES
    last = fetch.response_bytes - (segments - 1) * room
    response = (*((plain + room,) * (segments - 1)), plain + last)
    if not fetch.fast_open:
        # The first data of a new connection is acknowledged at once, before there is an answer.
        return Packets((syn, plain, plain + fetch.request_bytes), (syn, plain, *response))
    with_request = syn + COOKIE_OPTION_BYTES + fetch.request_bytes
    if with_request > fetch.link.mtu_bytes:
        raise ValueError(f"a request of {fetch.request_bytes} bytes does not fit in a SYN")
    return Packets((with_request,), (syn, *response))


def fetch_ms(fetch: ColdFetch) -> float:
    """Return the time from the first packet's departure to the last byte's arrival, in ms.

    Without Fast Open: SYN up, SYN-ACK down, then ACK and request up in one train, ACK and response
    down in one train.
    With it: SYN and request up, SYN-ACK and response down in one train.  So every packet's time
    on the link counts once, and the delay once for each change of direction.
    """
    link, sent = fetch.link, packets(fetch)
    up = sum(serialisation_ms(size, link.up_kbit, link.framing_bytes) for size in sent.up)
    down = sum(serialisation_ms(size, link.down_kbit, link.framing_bytes) for size in sent.down)
    round_trips = 1 if fetch.fast_open else 2
    return round_trips * link.rtt_ms + up + down
