"""Responses of a load by its capture: which connections were answered, when, and after how long.

A response has come when its head and its body have, in order, before the client closed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from testbed.capture.flows import Flow, Flows, progress
from testbed.capture.packets import FIN, RST, SYN, Packet


@dataclass(frozen=True, slots=True)
class SeenResponse:
    """A connection: when its SYN was sent first, and when its response was there, if it came."""

    began_ns: int
    ended_ns: int | None


def read_responses(flows: Flows, body_bytes: int) -> list[SeenResponse]:
    """Return what became of each connection, in the order of their SYNs.

    A response is as long as most are, which is no less than ``body_bytes``: its head need not be in
    the capture.
    """
    came = [(flow.syn.at_ns, _list_progress(flow)) for flow in flows.flows]
    sizes = Counter(steps[-1][1] for _, steps in came if steps and steps[-1][1] >= body_bytes)
    whole = max(sizes, key=sizes.__getitem__, default=None)
    return [
        SeenResponse(began_ns, next((at for at, reached in steps if reached == whole), None))
        for began_ns, steps in came
    ]


def _list_progress(flow: Flow) -> list[tuple[int, int]]:
    """Return when the server's bytes came in order, and how many, until the client closed."""
    closed_ns = min(
        (p.at_ns for by_client, p in own_packets(flow) if by_client and p.flags & (FIN | RST)),
        default=None,
    )
    steps = progress(flow)
    return [*steps] if closed_ns is None else [*takewhile(lambda e: e[0] <= closed_ns, steps)]


def own_packets(flow: Flow) -> list[tuple[bool, Packet]]:
    """Return the packets of a connection that are not of one before it on the same ports.

    A server that still has that one answers a SYN by an ACK of it, which the client resets before
    it sends its SYN again (RFC 9293, section 3.5.2).
    """
    opening = [number for number, (up, packet) in enumerate(flow.packets) if up and packet.opens]
    last = opening[-1] if opening else 0
    return [
        (up, packet)
        for number, (up, packet) in enumerate(flow.packets)
        if number > last or packet.flags & SYN or (packet.flags & RST and not up)
    ]


def is_first_of_its_ports(flow: Flow) -> bool:
    """Return whether the server knew no older connection of the same ports."""
    return len(own_packets(flow)) == len(flow.packets)


def at_share(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of the sorted values that this share of them does not exceed."""
    return ordered[max(0, -(-len(ordered) * round(share * 1000) // 1000) - 1)]
