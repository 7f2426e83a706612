"""Account of a load, held: neither end kept it waiting for longer than that end's rules explain.

Whatever moves a load time lies on the load's critical path (``testbed.proof.account``): there each
packet follows the one that it waited for, so what an end took in between is its own.  Losses of
datagrams are left to their senders' timers; what TCP sends again is nobody's stretch here.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.capture.packets import FIN, SYN, Packet
from testbed.mechanisms.sending.proof import silence_ms
from testbed.model.owners import CLIENT, SERVER
from testbed.proof.account import Stretch, read_account
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

CLIENT_MS = 10.0
"""What a browser's and wget2's own computing takes before a request, in virtual time: 5.4 ms at
most in 60 loads."""
QUIC_ACK_MS, TCP_ACK_MS = 25.0, 200.0
"""For so long an acknowledgement may wait (max_ack_delay, RFC 9000 section 18.2; TCP_DELACK_MAX in
include/net/tcp.h)."""
BOUND = ("chromium", "wget2")
"""Clients whose rules give no time of their own; those of graph are held one by one."""


@check(
    *("account", "virtual_time", "load", "condition", "at_server", "transits", "own_client"),
    source="RFC 9293, RFC 9000",
)
def check_account(seen: Evidence) -> Iterator[str]:
    """No stretch of a load's account at its client or a server is longer than its rules explain."""
    account = read_account(seen)
    lost = any(each.came_ns is None for way in seen.transits.values() for each in way)
    late = [
        (each.ms - most, each, each.packet)
        for each in (account.stretches if account else ())
        if each.packet is not None
        and (most := _most_ms(seen, each, each.packet, lost)) is not None
        and each.ms > most
    ]
    if late:
        _, worst, packet = max(late, key=lambda each: each[0])
        yield (
            f"the {worst.owner} kept the load waiting {len(late)} times for longer than its rules "
            f"explain, once for {worst.ms:.3f} ms, before {packet.sender} sent "
            f"{packet.payload_bytes} bytes to {packet.receiver}"
        )


def _most_ms(seen: Evidence, stretch: Stretch, packet: Packet, lost: bool) -> float | None:
    """Return how long a stretch may be; ``None``: other checks say it, or nothing does."""
    if stretch.owner not in (CLIENT, SERVER):
        return None
    if lost and packet.protocol != "TCP":
        return None
    if stretch.owner == SERVER:
        return silence_ms(seen, over_quic=packet.protocol != "TCP")
    if packet.protocol == "TCP" and not (packet.payload_bytes or packet.flags & (SYN | FIN)):
        return TCP_ACK_MS
    if seen.load.client not in BOUND or seen.link.ip.startswith("dual"):
        return None
    own = CLIENT_MS if packet.protocol == "TCP" else CLIENT_MS + QUIC_ACK_MS
    return own + _gap_ms(seen, stretch)


def _gap_ms(seen: Evidence, stretch: Stretch) -> float:
    """Return the longest gap that the page has, as recorded, before what was asked for then."""
    if not seen.has("archive"):
        return 0.0
    began_ns = seen.visits[-1].zero_ns(seen.capture, seen.clients) or 0
    since_ms, until_ms = ((at - began_ns) / 1e6 for at in (stretch.since_ns, stretch.until_ns))
    asked = {
        each.told.url for each in seen.logs[-1].requests
        if since_ms - CLIENT_MS <= each.told.start_ms <= until_ms + CLIENT_MS
    }  # fmt: skip
    gaps = [each.gap_ms or 0.0 for each in seen.archive.entries if each.url in asked]
    return max([0.0, *gaps])
