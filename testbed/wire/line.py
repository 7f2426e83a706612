"""The line of the access link in a capture: how fast it was, by the packets themselves.

Two packets come out of a link no closer together than the later one occupies its line, and a
SYN-ACK comes no sooner after its SYN than the link's closed form says; where nothing else is on the
way, exactly then.  So a capture knows the rates and the round trip of the link that it was made on,
whatever was measured before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from testbed.model import LinkSpec
from testbed.model.line import serialisation_ms
from testbed.wire.flows import Flow, Flows

SLACK_US = 10.0
"""What clocks and system calls may add or take in virtual time."""
SHARED_SLACK_US = 200.0
"""The same where others keep the line busy: a browser's calls in one go may hold a packet up by
64 us, and the next one then seems to come too soon."""


def check_line(flows: Flows, link: LinkSpec, *, shared: bool = False) -> Iterator[str]:
    """Yield a sentence where packets came as from another link than ``link``.

    Packets that came too fast are a proof whatever the load; a round trip that is too long is one
    only if none of the handshakes had the asked one, and nobody ``shared`` the line.
    """
    early = _count_early(flows, link, SHARED_SLACK_US if shared else SLACK_US, whole=shared)
    if early:
        yield f"{early} packets came down faster than {link.down_kbit} kbit/s can bring them"
    excess_us = [us for flow in flows.flows if (us := _excess_us(flow, link)) is not None]
    if not excess_us:
        return
    least = min(excess_us)
    if least < -SLACK_US:
        yield (
            f"a SYN-ACK came {-least:.1f} us sooner than over {link.rtt_ms:g} ms, "
            f"{link.up_kbit} kbit/s up and {link.down_kbit} kbit/s down"
        )
    if least > SLACK_US and not link.loss_pct and not shared:
        yield (
            f"each SYN-ACK came {least:.1f} us or more later than over {link.rtt_ms:g} ms, "
            f"{link.up_kbit} kbit/s up and {link.down_kbit} kbit/s down"
        )


def _count_early(flows: Flows, link: LinkSpec, slack_us: float, *, whole: bool) -> int:
    """How many packets came sooner than the line can bring them behind those before.

    With ``whole`` what one packet gained adds to the next one's, until the line is idle.
    """
    early, gained_us = 0, 0.0
    for (before_ns, _), (at_ns, ip_bytes) in pairwise(flows.arrivals):
        line_us = serialisation_ms(ip_bytes, link.down_kbit, link.framing_bytes) * 1000
        gained_us = max(0.0, gained_us * whole + line_us - (at_ns - before_ns) / 1000)
        early += gained_us > slack_us
    return early


def _excess_us(flow: Flow, link: LinkSpec) -> float | None:
    """By how much a handshake took longer than an idle link lets it; ``None``: it has no time."""
    if flow.synack is None or sum(p.opens for by_client, p in flow.packets if by_client) != 1:
        return None
    theory_ms = link.rtt_ms + sum(
        serialisation_ms(packet.ip_bytes, rate, link.framing_bytes)
        for packet, rate in ((flow.syn, link.up_kbit), (flow.synack, link.down_kbit))
    )
    return (flow.synack.at_ns - flow.syn.at_ns) / 1000 - theory_ms * 1000
