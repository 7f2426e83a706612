"""Openings of all connections in a capture: equal options and windows; and packets of none.

What the lab sets, it sets for each connection of an end, so a handshake with another MSS, window
or window scale than the others' is of a socket that was treated apart (RFC 9293 section 3.2,
RFC 7323).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from testbed.wire.flows import Flows
from testbed.wire.lookups import DNS_PORT
from testbed.wire.packets import (
    MSS,
    SACK_PERMITTED,
    TIMESTAMPS,
    WINDOW_SCALE,
    Capture,
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
    for side, packets in sides.items():
        ways = Counter(_opening(packet) for packet in packets)
        apart = ways.total() - max(ways.values(), default=0)
        if apart:
            yield (
                f"{apart} of {ways.total()} connections were opened by the {side} with other TCP "
                "options or another window than the rest"
            )


def check_strangers(capture: Capture, flows: Flows) -> Iterator[str]:
    """Yield a sentence if packets are of no connection, no look-up and no late farewell."""
    ends = {(flow.syn.sender, flow.syn.receiver) for flow in flows.flows}
    strangers = [packet for packet in capture.packets if _is_strange(packet, ends)]
    if strangers:
        first = strangers[0]
        ends_of = f" from {first.sender} to {first.receiver}" if first.source else ""
        yield (
            f"{len(strangers)} packets in the capture are not of the load, the first of them "
            f"{first.protocol}{ends_of}"
        )


def _opening(packet: Packet) -> tuple[object, ...]:
    """The window and the options that are the same on each connection of an end."""
    options = dict(read_options(packet.options))
    values, flags = [options.get(kind) for kind in VALUES], [kind in options for kind in FLAGS]
    return packet.window, *values, *flags


def _is_strange(packet: Packet, ends: set[tuple[str, str]]) -> bool:
    if packet.protocol == "TCP":
        both = {(packet.sender, packet.receiver), (packet.receiver, packet.sender)}
        return packet.payload_bytes > 0 and not both & ends
    return packet.protocol != "UDP" or DNS_PORT not in (packet.source_port, packet.target_port)
