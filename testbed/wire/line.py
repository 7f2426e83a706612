"""The line of the access link in a capture: how fast it was, by the packets themselves.

Two packets come out of a link no closer together than the later one occupies its line, and a
SYN-ACK comes no sooner after its SYN than the link's closed form says; where nothing else is on the
way, exactly then.  So a capture knows the rates and the round trip of the link that it was made on,
whatever was measured before.  On a line with a trace every packet comes at an opportunity of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType

from testbed.model import LinkSpec
from testbed.model.line import answered_ns, delay_ns, serialisation_ms
from testbed.model.trace import MS_NS, RunningTrace, room_bytes
from testbed.wire.flows import Flow, Flows

SLACK_US = 10.0
"""What clocks and system calls may add or take in virtual time."""


def check_line(
    flows: Flows, link: LinkSpec, traces: Mapping[str, RunningTrace] = MappingProxyType({})
) -> Iterator[str]:
    """Yield a sentence where packets came as from another link than ``link``.

    Packets that came too fast are a proof whatever the load; a round trip that is too long is one
    only if none of the handshakes had the asked one.  ``traces`` are the link's by direction.
    """
    if "down" in traces:
        yield from _check_trace(flows, link, traces["down"])
    elif not link.trace_down:
        yield from _check_rate(flows, link)
    excess_us = [us for flow in flows.flows if (us := _excess_us(flow, link, traces)) is not None]
    if not excess_us:
        return
    least = min(excess_us)
    words = [f"{link.rtt_ms:g} ms"]
    words += [
        f"the trace {getattr(link, f'trace_{way}')} {way}"
        if way in traces
        else f"{getattr(link, f'{way}_kbit')} kbit/s {way}"
        for way in ("up", "down")
    ]
    over = f"over {words[0]}, {words[1]} and {words[2]}"
    if least < -SLACK_US:
        yield f"a SYN-ACK came {-least:.1f} us sooner than {over}"
    if least > SLACK_US and not link.loss_pct:
        yield f"each SYN-ACK came {least:.1f} us or more later than {over}"


def _check_rate(flows: Flows, link: LinkSpec) -> Iterator[str]:
    early = sum(
        (at_ns - before_ns) / 1000
        < serialisation_ms(ip_bytes, link.down_kbit, link.framing_bytes) * 1000 - SLACK_US
        for (before_ns, _), (at_ns, ip_bytes) in pairwise(flows.arrivals)
    )
    if early:
        yield f"{early} packets came down faster than {link.down_kbit} kbit/s can bring them"


def _check_trace(flows: Flows, link: LinkSpec, running: RunningTrace) -> Iterator[str]:
    """Yield a sentence if packets came at no opportunity, or more than it lets through."""
    room = room_bytes(link)
    came: dict[int, list[int]] = defaultdict(list)
    strange = []
    for at_ns, ip_bytes in flows.arrivals:
        left_ns = at_ns - delay_ns(link) - running.origin_ns
        ms = round(left_ns / MS_NS)
        off_us = (left_ns - ms * MS_NS) / 1000
        if abs(off_us) > SLACK_US or not running.trace.count_at(ms, once=running.once):
            strange.append(left_ns)
        else:
            came[ms].append(ip_bytes + link.framing_bytes)
    if strange:
        yield (
            f"{len(strange)} of {len(flows.arrivals)} packets came down at no opportunity of the "
            f"trace {link.trace_down}, the first at {strange[0] / MS_NS:.3f} ms of it"
        )
    # What was begun before may end here, up to its last byte.
    more = sum(
        sum(sizes) - sizes[0] >= running.trace.count_at(ms, once=running.once) * room
        for ms, sizes in came.items()
    )
    if more:
        yield f"{more} times more came down than opportunities of {link.trace_down} let through"


def _excess_us(flow: Flow, link: LinkSpec, traces: Mapping[str, RunningTrace]) -> float | None:
    """By how much a handshake took longer than an idle link lets it; ``None``: it has no time."""
    if flow.synack is None or sum(p.opens for by_client, p in flow.packets if by_client) != 1:
        return None
    syn, synack = flow.syn, flow.synack
    back_ns = answered_ns(link, syn.at_ns, syn.ip_bytes, synack.ip_bytes, traces)
    return None if back_ns is None else (synack.at_ns - back_ns) / 1000
