"""Openings of all connections in a capture: each end opens its own with equal options and windows.

Over IPv6 both follow from a header that is longer than that of IPv4.

What the lab sets, it sets for each connection of an end, so a handshake with another MSS, window
or window scale than the others' is of a socket that was treated apart (RFC 9293 section 3.2,
RFC 7323).
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator

from testbed.model import LinkSpec
from testbed.wire.flows import Flows
from testbed.wire.packets import (
    MSS,
    SACK_PERMITTED,
    TIMESTAMPS,
    WINDOW_SCALE,
    Packet,
    find_option,
    read_options,
)

HEADERS_BYTES = 40
"""Of IP and TCP, which an MSS leaves out of an MTU (RFC 9293 section 3.7.1)."""
VALUES, FLAGS = (MSS, WINDOW_SCALE), (SACK_PERMITTED, TIMESTAMPS)
"""Options of which the value counts, and of which the presence does."""


def check_openings(flows: Flows, link: LinkSpec) -> Iterator[str]:
    """Yield a sentence for each end that opened its connections in different ways.

    An end that was told of the path's MTU goes by that from then on, its windows too.
    """
    sides = {
        "client": [flow.syn for flow in flows.flows],
        "server": [flow.synack for flow in flows.flows if flow.synack is not None],
    }
    for side, packets in sides.items():
        told: dict[tuple[str, bool], list[Packet]] = defaultdict(list)
        for packet in packets:
            told[packet.ip, _is_told(packet, link)].append(packet)
        ways = [Counter(_opening(packet) for packet in each) for each in told.values()]
        apart = sum(each.total() - max(each.values(), default=0) for each in ways)
        if apart:
            yield (
                f"{apart} of {len(packets)} connections were opened by the {side} with other TCP "
                "options or another window than the rest"
            )


def _is_told(packet: Packet, link: LinkSpec) -> bool:
    """Whether its MSS is that of a path which takes less than the sender's device."""
    mss = find_option(packet, MSS)
    narrow = link.line_mtu_bytes < link.mtu_bytes
    return narrow and mss == struct.pack("!H", link.line_mtu_bytes - HEADERS_BYTES)


def _opening(packet: Packet) -> tuple[object, ...]:
    """The window and the options that are the same on each connection of an end."""
    options = dict(read_options(packet.options))
    values, flags = [options.get(kind) for kind in VALUES], [kind in options for kind in FLAGS]
    return packet.window, *values, *flags
