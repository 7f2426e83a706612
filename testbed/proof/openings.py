"""Openings of all connections: each end opens its own with the options and windows of the lab.

What the lab sets, it sets for each connection of an end, so a handshake with another MSS, window
or window scale than the others' is of a socket that was treated apart (RFC 9293 section 3.2,
RFC 7323).  The MSS of all of them follows from the MTU, windows from the receive buffers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from testbed.capture.connections import TIMESTAMP_BYTES, WINDOW_SHIFT, opening_window
from testbed.capture.flows import Flows
from testbed.capture.packets import (
    MSS,
    SACK_PERMITTED,
    TIMESTAMPS,
    WINDOW_SCALE,
    Packet,
    find_option,
    mss_of,
    read_options,
    scale_of,
)
from testbed.model import LinkSpec
from testbed.model.settings import of_end
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

HEADERS_BYTES = {"4": 40, "6": 60}
"""Of IP and TCP, which an MSS leaves out of an MTU (RFC 9293 section 3.7.1, RFC 8200)."""
VALUES, FLAGS = (MSS, WINDOW_SCALE), (SACK_PERMITTED, TIMESTAMPS)
"""Options of which the value counts, and of which the presence does."""


@check("segment size", "flows", "link", "tcp", source="RFC 9293 section 3.7.1")
def check_mss(seen: Evidence) -> Iterator[str]:
    """Each end opens connections with the MSS that follows from its MTU, the path's or its route's.

    An end that was told of the path's MTU goes by that from then on.
    """
    for side, packets in _sides(seen.flows):
        route = of_end(seen.tcp.route, side)
        other = [mss for p in packets if (mss := mss_of(p)) not in _due_mss(p, seen.link, route)]
        if other:
            yield (
                f"{len(other)} of {len(packets)} connections were opened by the {side} with an MSS "
                f"of {other[0]}, the MTU is {seen.link.mtu_bytes}"
            )


@check("openings", "own_client", "own_server", "flows", "link", source="RFC 9293 section 3.2")
def check_openings(seen: Evidence) -> Iterator[str]:
    """Each end opens all of its connections with the same TCP options and the same window.

    An end that was told of the path's MTU goes by that from then on, its windows too.
    """
    for side, packets in _sides(seen.flows):
        told: dict[tuple[str, bool], list[Packet]] = defaultdict(list)
        for packet in packets:
            told[packet.ip, _is_told(packet, seen.link)].append(packet)
        ways = [Counter(_opening(packet) for packet in each) for each in told.values()]
        apart = sum(each.total() - max(each.values(), default=0) for each in ways)
        if apart:
            yield (
                f"{apart} of {len(packets)} connections were opened by the {side} with other TCP "
                "options or another window than the rest"
            )


@check("windows", "own_client", "own_server", "flows", "tcp", source="tcp(7): tcp_rmem")
def check_windows(seen: Evidence) -> Iterator[str]:
    """Each end opens connections with the window and the window scale of the lab's receive buffers.

    A kernel of one's own, sysctls and routes that are asked for may make them others.
    """
    if not seen.trial.kernel_version[:1].isdigit():
        return
    for side, packets in _sides(seen.flows):
        if of_end(seen.tcp.sysctl, side) or of_end(seen.tcp.route, side):
            continue
        other = [p for p in packets if (p.window, scale_of(p)) != _due_window(p)]
        if other:
            window, scale = _due_window(other[0])
            yield (
                f"{len(other)} of {len(packets)} connections were opened by the {side} with a "
                f"window of {other[0].window} bytes scaled by {scale_of(other[0])}, its receive "
                f"buffer gives {window} scaled by {scale}"
            )


def _due_window(packet: Packet) -> tuple[int, int | None]:
    """Return the window and its scale; a SYN-ACK's scale answers the SYN's."""
    mss = mss_of(packet) or 536
    if not packet.opens and find_option(packet, TIMESTAMPS) is not None:
        mss -= TIMESTAMP_BYTES
    scale = None if scale_of(packet) is None and not packet.opens else WINDOW_SHIFT
    return opening_window(mss), scale


def _sides(flows: Flows) -> Iterator[tuple[str, list[Packet]]]:
    yield "client", [flow.syn for flow in flows.flows]
    yield "server", [flow.synack for flow in flows.flows if flow.synack is not None]


def _due_mss(packet: Packet, link: LinkSpec, route: Mapping[str, int | str]) -> set[int]:
    if "advmss" in route:
        return {int(route["advmss"])}
    sizes = (int(route.get("mtu", link.mtu_bytes)), link.line_mtu_bytes)
    return {mtu_bytes - HEADERS_BYTES[packet.ip] for mtu_bytes in sizes}


def _is_told(packet: Packet, link: LinkSpec) -> bool:
    """Whether its MSS is that of a path which takes less than the sender's device."""
    narrow = link.line_mtu_bytes < link.mtu_bytes
    return narrow and mss_of(packet) == link.line_mtu_bytes - HEADERS_BYTES["4"]


def _opening(packet: Packet) -> tuple[object, ...]:
    """The window and the options that are the same on each connection of an end."""
    options = dict(read_options(packet.options))
    values, flags = [options.get(kind) for kind in VALUES], [kind in options for kind in FLAGS]
    return packet.window, *values, *flags
