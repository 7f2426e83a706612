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


def check_line(flows: Flows, link: LinkSpec) -> Iterator[str]:
    """Yield a sentence where packets came as from another link than ``link``.

    Packets that came too fast are a proof whatever the load; a round trip that is too long is one
    only if none of the handshakes had the asked one.
    """
    early = sum(
        (at_ns - before_ns) / 1000
        < serialisation_ms(ip_bytes, link.down_kbit, link.framing_bytes) * 1000 - SLACK_US
        for (before_ns, _), (at_ns, ip_bytes) in pairwise(flows.arrivals)
    )
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
    if least > SLACK_US and not link.loss_pct:
        yield (
            f"each SYN-ACK came {least:.1f} us or more later than over {link.rtt_ms:g} ms, "
            f"{link.up_kbit} kbit/s up and {link.down_kbit} kbit/s down"
        )


def _excess_us(flow: Flow, link: LinkSpec) -> float | None:
    """By how much a handshake took longer than an idle link lets it; ``None``: it has no time."""
    if flow.synack is None or sum(p.opens for by_client, p in flow.packets if by_client) != 1:
        return None
    theory_ms = link.rtt_ms + sum(
        serialisation_ms(packet.ip_bytes, rate, link.framing_bytes)
        for packet, rate in ((flow.syn, link.up_kbit), (flow.synack, link.down_kbit))
    )
    return (flow.synack.at_ns - flow.syn.at_ns) / 1000 - theory_ms * 1000
