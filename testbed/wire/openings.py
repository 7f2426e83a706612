"""Openings of all connections in a capture: each end opens its own with equal options and windows.

Over IPv6 both follow from a header that is longer than that of IPv4.

What the lab sets, it sets for each connection of an end, so a handshake with another MSS, window
or window scale than the others' is of a socket that was treated apart (RFC 9293 section 3.2,
RFC 7323).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from testbed.wire.flows import Flows
from testbed.wire.lookups import ADDRESSES
from testbed.wire.packets import (
    MSS,
    SACK_PERMITTED,
    TIMESTAMPS,
    WINDOW_SCALE,
    Packet,
    read_options,
)

VALUES, FLAGS = (MSS, WINDOW_SCALE), (SACK_PERMITTED, TIMESTAMPS)
"""Options of which the value counts, and of which the presence does."""


def check_openings(flows: Flows) -> Iterator[str]:
    """Yield a sentence for each end that opened its connections in different ways."""
    sides = {
        "client": [flow.syn for flow in flows.flows],
        "server": [flow.synack for flow in flows.flows if flow.synack is not None],
    }
    of_each = [
        (side, [packet for packet in packets if packet.ip == ip])
        for side, packets in sides.items()
        for ip in ADDRESSES
    ]
    for side, packets in of_each:
        ways = Counter(_opening(packet) for packet in packets)
        apart = ways.total() - max(ways.values(), default=0)
        if apart:
            yield (
                f"{apart} of {ways.total()} connections were opened by the {side} with other TCP "
                "options or another window than the rest"
            )


def _opening(packet: Packet) -> tuple[object, ...]:
    """The window and the options that are the same on each connection of an end."""
    options = dict(read_options(packet.options))
    values, flags = [options.get(kind) for kind in VALUES], [kind in options for kind in FLAGS]
    return packet.window, *values, *flags
