"""Time of a client's own: what it kept its load waiting for, held against what its rules explain.

Whatever moves a load time lies on the load's critical path (``testbed.proof.account``): there each
packet follows the one that it waited for, so what a client took in between is its own.  For servers
``testbed.mechanisms.sending`` asks the same, of their windows as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from testbed.capture.packets import FIN, SYN, Packet
from testbed.model.owners import CLIENT
from testbed.proof.account import Stretch, read_account
from testbed.proof.check import check
from testbed.proof.evidence import Evidence
from testbed.proof.load_time import busy_ms

OWN_MS = 10.0
"""What a browser's and wget2's own computing takes before a request, in virtual time: 5.4 ms at
most in 150 loads."""
TIMELY = ("chromium", "wget2")
"""Clients whose rules give them no time of their own; those of graph are held one by one."""
QUIC_ACK_MS, TCP_ACK_MS = 25.0, 200.0
"""For so long an acknowledgement may wait (max_ack_delay, RFC 9000 section 18.2; TCP_DELACK_MAX in
include/net/tcp.h)."""
SPARE_MS = 250.0
"""After that a browser opens another connection beside one that is not there yet
(kMaxConnectRetryIntervalMs in Chromium's net/socket)."""


@check(
    *("client's time", "virtual_time", "load", "own_client", "at_server", "undamaged", "transits"),
    source="RFC 9293, RFC 9000",
)
def check_client_time(seen: Evidence) -> Iterator[str]:
    """No client kept its load waiting for longer than its rules, or the page's gaps, explain.

    Where packets of a connection were lost, it waits for timers as well.
    """
    account = read_account(seen)
    lost = {_ends(p.sent) for way in seen.transits.values() for p in way if p.came_ns is None}
    late = [
        (stretch, stretch.packet)
        for stretch in (account.stretches if account else ())
        if stretch.owner == CLIENT
        and stretch.packet is not None
        and stretch.ms > _most_ms(seen, stretch, stretch.packet, lost)
    ]
    if late:
        worst, packet = max(late, key=lambda each: each[0].ms)
        yield (
            f"the client kept the load waiting {len(late)} times, once for {worst.ms:.3f} ms "
            f"before {packet.payload_bytes} bytes from {packet.sender} to {packet.receiver}"
        )


def _most_ms(
    seen: Evidence, stretch: Stretch, packet: Packet, lost: Collection[frozenset[str]]
) -> float:
    """Return how long a stretch may be; infinity: other checks say it."""
    over_tcp = packet.protocol == "TCP"
    if _ends(packet) in lost:
        return float("inf")
    if over_tcp and not (packet.payload_bytes or packet.flags & (SYN | FIN)):
        return TCP_ACK_MS
    if seen.load.client not in TIMELY or seen.link.ip.startswith("dual"):
        return float("inf")
    own_ms = OWN_MS + max(_gap_ms(seen, stretch), busy_ms(seen.load))
    if not over_tcp:
        return own_ms + QUIC_ACK_MS
    return own_ms + (SPARE_MS if packet.opens else 0.0)


def _ends(packet: Packet) -> frozenset[str]:
    """The ends of a packet's TCP connection; all datagrams are together."""
    return frozenset((packet.sender, packet.receiver) if packet.protocol == "TCP" else ())


def _gap_ms(seen: Evidence, stretch: Stretch) -> float:
    """Return the longest gap that the page has, as recorded, before what was asked for then."""
    if not seen.has("archive"):
        return 0.0
    began_ns = seen.visits[-1].zero_ns(seen.capture, seen.clients) or 0
    since_ms, until_ms = ((at - began_ns) / 1e6 for at in (stretch.since_ns, stretch.until_ns))
    asked = {
        each.told.url for each in seen.logs[-1].requests
        if since_ms - OWN_MS <= each.told.start_ms <= until_ms + OWN_MS
    }  # fmt: skip
    return max([0.0, *(e.gap_ms or 0.0 for e in seen.archive.entries if e.url in asked)])
