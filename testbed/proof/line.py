"""The line of the access link in a capture: how fast it was, by the packets themselves.

Two packets come out of a link no closer together than the later one occupies its line, and a
SYN-ACK comes no sooner after its SYN than the link's closed form says; where nothing else is on the
way, exactly then.  So a capture knows the rates and the round trip of the link that it was made on,
whatever was measured before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf

from testbed.capture.flows import Flow, Flows
from testbed.model import LinkChange, LinkSpec
from testbed.model.impairments import is_lossy, least_round_trip_ms, phases, ways
from testbed.model.line import answered_ns, delay_ns, serialisation_ms
from testbed.model.trace import MS_NS, RunningTrace, framing_of, room_bytes, traced
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

SLACK_US = 10.0
"""What clocks and system calls may add or take in virtual time."""
LATE_TIMER_US = 50.0
"""By how much the line's timer may be late, once in a load: 21 us in 2 of 48 loads over TLS."""
SHARED_SLACK_US = 200.0
"""The same where others keep the line busy: a browser's calls in one go may hold a packet up by
64 us, and the next one then seems to come too soon."""


def is_late_timer(errors_us: Sequence[float]) -> bool:
    """Return whether one late timer of the line explains by how much packets were off."""
    return len(errors_us) == 1 and abs(errors_us[0]) <= LATE_TIMER_US


def slack_behind_us(link: LinkSpec) -> float:
    """Return by how much what the client sent may come late to the line.

    What leaves a last hop does so by a timer, and a browser's calls may go before it.
    """
    return SHARED_SLACK_US if link.hop_up else SLACK_US


@check("line", "virtual_time", "flows", "link")
def check_line(seen: Evidence) -> Iterator[str]:
    """Packets came no faster than the link's rates, and its round trip was the one asked for.

    Packets that came too fast are a proof whatever the load, but where some are held back to be
    reordered; a round trip that is too long is one only if none of the handshakes had the asked
    one, nothing but the line takes time, not each SYN waited for what the client had sent before
    it, nor each SYN-ACK for what came down before it, and nobody shared it.  Where the link changed
    a packet is held against the fastest line that there was while it was on its way.
    """
    flows, link, traces, shared = seen.flows, seen.link, seen.traces, seen.line_shared
    plan = _Plan(link, seen.steps)
    for way in ("down", "hop_down", "hop_up"):
        if way in traces:
            yield from _check_trace(flows, plan, way, traces[way])
    timed = not (link.reorder_pct or link.trace_down or link.hop_down)
    early = _count_early(flows, plan, shared=shared) if timed else 0
    if early:
        yield f"{early} packets came down faster than {plan.rates} kbit/s can bring them"
    for since_ns, until_ns in plan.silences():
        came = sum(1 for at_ns, _ in flows.arrivals if since_ns < at_ns < until_ns)
        if came:
            yield f"{came} packets came down while the line was down"
    timed_us = [
        (flow, us) for flow in flows.flows if (us := _excess_us(flow, plan, traces)) is not None
    ]
    if not timed_us:
        return
    least = min(us for _, us in timed_us)
    rates = {"up": f"{link.up_kbit} kbit/s", "down": f"{link.down_kbit} kbit/s"}
    rates |= {way: f"the trace {name}" for way, name in traced(link).items()}
    hop = f", and the last hop {link.hop_down}" if link.hop_down else ""
    asked = f"{link.rtt_ms:g} ms, {rates['up']} up and {rates['down']} down{hop}"
    if least < -SLACK_US:
        yield f"a SYN-ACK came {-least:.1f} us sooner than over {asked}"
    drawn = is_lossy(link) or link.delay_jitter_ms or link.reorder_pct
    if least <= slack_behind_us(link) or drawn or link.changes or shared:
        return
    waited = () if link.trace_up else _list_waiting(flows, link)
    behind = _list_behind(flows, link) if timed else ()
    if any(
        flow.syn.at_ns not in waited and flow.synack is not None and flow.synack.at_ns not in behind
        for flow, _ in timed_us
    ):
        yield f"each SYN-ACK came {least:.1f} us or more later than over {asked}"


class _Plan:
    """Which line there was when: by what was asked, from when it was performed."""

    def __init__(self, link: LinkSpec, steps: Sequence[LinkChange]) -> None:
        self.link, self.phases = link, phases(link)[: len(steps) + 1]
        self.begins = [-inf, *(step.at_ns for step in steps)]
        self.ends = [*(step.at_ns + step.took_ms * 1e6 for step in steps), inf]
        specs = [phase.spec for phase in self.phases]
        # The longest that a packet takes from the start of its line until it came down.
        self.latest_ns = max(ways(s)["down"].latest_ms + _packet_ms(s) for s in specs) * 1e6
        self.delays_ns = {delay_ns(spec, "down") for spec in specs}

    @property
    def rates(self) -> str:
        """The rates of the way down, each once."""
        return " or ".join(map(str, dict.fromkeys(each.spec.down_kbit for each in self.phases)))

    def between(self, since_ns: float, until_ns: float) -> list[LinkSpec]:
        """Return what the link was from one time to another."""
        first = bisect_left(self.ends, since_ns)
        last = bisect_right(self.begins, until_ns, first)
        return [phase.spec for phase in self.phases[first:last]]

    def down_kbit(self, before_ns: float, at_ns: float) -> int:
        """Return the greatest rate that a packet may have had which came behind another.

        At a change one may be under way, to which the rate before it applies.
        """
        specs = self.between(before_ns - self.latest_ns, at_ns)
        return max(spec.down_kbit for spec in specs)

    def left_ns(self, at_ns: int) -> Iterator[int]:
        """Yield each time at which a packet that came down at ``at_ns`` may have left its line."""
        slack_ns = SLACK_US * 1e3
        for each_ns in self.delays_ns:
            left_ns = at_ns - each_ns
            links = self.between(left_ns - slack_ns, left_ns + slack_ns)
            if any(delay_ns(link, "down") == each_ns for link in links):
                yield left_ns

    def silences(self) -> Iterator[tuple[float, float]]:
        """Yield from when to when nothing can have come down, for the line lost it."""
        for phase, begin, end in zip(self.phases, self.begins, self.ends, strict=True):
            way = ways(phase.spec)["down"]
            if phase.down:
                since_ns = (
                    begin + (way.latest_ms + 2 * _packet_ms(phase.spec)) * 1e6 + SLACK_US * 1e3
                )
                yield since_ns, end + way.earliest_ms * 1e6 - SLACK_US * 1e3


def _list_waiting(flows: Flows, link: LinkSpec) -> set[int]:
    """When packets were sent up while the line was busy with others of the client."""
    free_ns, found = 0.0, set()
    for at_ns, ip_bytes in flows.departures:
        if at_ns < free_ns:
            found.add(at_ns)
        line_ms = serialisation_ms(ip_bytes, link.up_kbit, link.framing_bytes)
        free_ns = max(free_ns, at_ns) + line_ms * 1e6
    return found


def _list_behind(flows: Flows, link: LinkSpec) -> set[int]:
    """When packets came down for which the line had been busy with others."""
    lines_ns = (
        serialisation_ms(ip_bytes, link.down_kbit, link.framing_bytes) * 1e6 + SLACK_US * 1e3
        for _, ip_bytes in flows.arrivals[1:]
    )
    came = pairwise(at_ns for at_ns, _ in flows.arrivals)
    return {at for (before, at), line in zip(came, lines_ns, strict=True) if at - before <= line}


def _packet_ms(link: LinkSpec) -> float:
    return serialisation_ms(link.mtu_bytes, link.down_kbit, link.framing_bytes)


def _count_early(flows: Flows, plan: _Plan, *, shared: bool) -> int:
    """How many packets came sooner than the line can bring them behind those before.

    Of a shared line what one packet gained adds to the next one's, until the line is idle.
    """
    slack_us = SHARED_SLACK_US if shared else SLACK_US
    early: list[float] = []
    gained_us = 0.0
    for (before_ns, _), (at_ns, ip_bytes) in pairwise(flows.arrivals):
        rate_kbit = plan.down_kbit(before_ns, at_ns)
        line_us = serialisation_ms(ip_bytes, rate_kbit, plan.link.framing_bytes) * 1000
        gained_us = max(0.0, gained_us * shared + line_us - (at_ns - before_ns) / 1000)
        if gained_us > slack_us:
            early.append(gained_us)
    return 0 if is_late_timer(early) else len(early)


def _check_trace(flows: Flows, plan: _Plan, way: str, running: RunningTrace) -> Iterator[str]:
    """Yield a sentence if packets came at no opportunity, or more than it lets through."""
    link, room, name = plan.link, room_bytes(plan.link, way), traced(plan.link)[way]
    up = way == "hop_up"
    packets, did = (flows.departures, "left") if up else (flows.arrivals, "came down")
    came: dict[int, list[int]] = defaultdict(list)
    strange = []
    for at_ns, ip_bytes in packets:
        left = [
            left_ns - running.origin_ns
            for left_ns in (plan.left_ns(at_ns) if way == "down" else (at_ns,))
        ]
        at = [ms for each_ns in left if (ms := _opportunity(each_ns, running)) is not None]
        if not at:
            strange.append(left[0] if left else at_ns - running.origin_ns)
        elif len(at) == 1:  # of two that may have been, neither is known to be full
            came[at[0]].append(ip_bytes + framing_of(link, way))
    if strange:
        yield (
            f"{len(strange)} of {len(packets)} packets {did} at no opportunity of the "
            f"trace {name}, the first at {strange[0] / MS_NS:.3f} ms of it"
        )
    if link.duplicate_pct:
        return  # a copy comes with its packet, and takes no opportunity
    # What was begun before may end here, up to its last byte; of a shared line it may be any.
    more = sum(
        sum(sizes) - max(sizes) >= running.trace.count_at(ms, once=running.once) * room
        for ms, sizes in came.items()
    )
    if more:
        yield f"{more} times more {did} than opportunities of {name} let through"


def _opportunity(left_ns: int, running: RunningTrace) -> int | None:
    """Return the ms of an opportunity at a moment of a trace; ``None``: there is none."""
    ms = round(left_ns / MS_NS)
    late = abs(left_ns - ms * MS_NS) > SLACK_US * 1000
    return None if late or not running.trace.count_at(ms, once=running.once) else ms


def _excess_us(flow: Flow, plan: _Plan, traces: Mapping[str, RunningTrace]) -> float | None:
    """By how much a handshake took longer than an idle link lets it; ``None``: it has no time."""
    if flow.synack is None or flow.syns != 1:
        return None
    syn, synack = flow.syn, flow.synack
    if traced(plan.link):
        known = traces.keys() == traced(plan.link).keys() and not plan.link.changes
        sizes = syn.ip_bytes, synack.ip_bytes
        back_ns = answered_ns(plan.link, syn.at_ns, *sizes, traces) if known else None
        if back_ns is None:
            return None
        slack_us = (-SLACK_US, slack_behind_us(plan.link))
        hop = traces.get("hop_down")
        # Of two opportunities it had the one or the other, if it came when the first was.
        due = (
            [back_ns]
            if hop is None
            else [hop.next_ns(back_ns + round(us * 1000)) for us in slack_us]
        )
        excess = [(synack.at_ns - each) / 1000 for each in due if each is not None]
        return min(excess, key=abs, default=None)
    links = plan.between(syn.at_ns, synack.at_ns)  # of several, with the best of each
    lines_ms = (
        serialisation_ms(packet.ip_bytes, rate, plan.link.framing_bytes)
        for packet, rate in (
            (syn, max(link.up_kbit for link in links)),
            (synack, max(link.down_kbit for link in links)),
        )
    )
    theory_ms = min(map(least_round_trip_ms, links)) + sum(lines_ms)
    return (synack.at_ns - syn.at_ns) / 1000 - theory_ms * 1000
