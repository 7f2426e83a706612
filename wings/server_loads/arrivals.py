"""Arrivals of a load: connections start when they are due, and again after a refusal."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from testbed.capture.flows import Flow
from testbed.capture.packets import RST
from testbed.proof.check import check, say_unshown
from wings.server_loads.conduct import find_end
from wings.server_loads.evidence import HISTOGRAM_SHARE, LATE_NS, ServedEvidence
from wings.server_loads.schedule import SECOND_NS
from wings.server_loads.spec import ArrivalSpec


@check("starts", "served_load", "flows")
def check_starts(seen: ServedEvidence) -> Iterator[str]:
    """Connections started when rate, spacing and seed say, or when another one had ended.

    In real time starts are late by what the machine does beside, so that they are counted alone.
    """
    arrivals, flows = seen.asked.arrivals, seen.flows.flows
    if arrivals.loop == "closed":
        yield from _check_closed(seen)
        return
    due = seen.due_ns
    if seen.served_load.all_started != len(due):
        yield f"{seen.served_load.all_started} connections started, due were {len(due)}"
    if not seen.virtual_time:
        return
    first, others = seen.first_and_retries
    least = most = len(due)
    if not seen.whole_capture:  # it ended about when the last of these was due
        edge_ns = flows[-1].syn.at_ns - flows[0].syn.at_ns + due[0]
        least, most = (bisect_left(due, edge_ns + late) for late in (-LATE_NS, LATE_NS))
    since, until = (bisect_left(due, at_s * SECOND_NS) for at_s in arrivals.measured_s)
    measured = until - since
    if seen.served_load.started != measured:
        yield f"{seen.served_load.started} connections started when measured, due were {measured}"
    if not least <= len(first) <= most:
        yield f"{most - len(first)} of {most} connections did not start when they were due"
    if others and not arrivals.retries_refused:
        yield f"{len(others)} of {len(flows)} connections started when none was due"


def _check_closed(seen: ServedEvidence) -> Iterator[str]:
    """Each client starts a connection at once, and the next one when that has ended."""
    arrivals, flows = seen.asked.arrivals, seen.flows.flows
    ends = sorted(end[1].at_ns for end in map(find_end, flows) if end is not None)
    starts = [flow.syn.at_ns for flow in flows]
    first = bisect_left(starts, ends[0]) if ends else len(starts)
    if not arrivals.retries_refused and first != arrivals.clients:
        yield f"{first} clients started a connection before one had ended, not {arrivals.clients}"
    until_ns = (arrivals.warm_up_s + arrivals.duration_s) * SECOND_NS
    if not seen.whole_capture:
        if arrivals.warm_up_s != ArrivalSpec().warm_up_s:
            yield say_unshown("arrivals.warm_up_s", arrivals.warm_up_s)
    elif starts:
        lasted_ns = starts[-1] - starts[0]
        after = bisect_left(ends, starts[-1] + seen.late_ns)
        idle_ns = ends[after] - starts[0] if after < len(ends) else until_ns
        if lasted_ns > until_ns + seen.late_ns or idle_ns < until_ns - seen.late_ns:
            yield (
                f"clients started connections for {lasted_ns / 1e9:.3f} s, asked were "
                f"{until_ns / 1e9:g} s"
            )


@check("retries", "served_load", "flows")
def check_retries(seen: ServedEvidence) -> Iterator[str]:
    """Who was refused connected again, at once and as often as asked."""
    asked, served = seen.asked.arrivals.retries_refused, seen.served_load
    refused, retried, opened = served.refused, served.retries, served.refused + served.reset
    if seen.due_ns and seen.whole_capture and seen.virtual_time:
        first, others = seen.first_and_retries
        retried, opened = len(others), sum(map(is_refused, first))
        refused = opened + sum(map(is_refused, others)) - retried
    allowed = 0 if seen.virtual_time else len(seen.due_ns) * HISTOGRAM_SHARE
    if refused * asked > retried + allowed or (seen.due_ns and retried > opened * asked + allowed):
        yield (
            f"retries_refused = {asked}, but {refused} connections were refused for good, and "
            f"clients connected again {retried} times"
        )


def is_refused(flow: Flow) -> bool:
    """Return whether a RST answered the SYN."""
    answers = (packet for by_client, packet in flow.packets if not by_client)
    return flow.synack is None and any(packet.flags & RST for packet in answers)
