"""Throughput and response times of a load: as it was asked for, and as its packets have them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from statistics import fmean

from testbed.proof.check import check
from wings.server_loads.evidence import HISTOGRAM_SHARE, ServedEvidence
from wings.server_loads.responses import SeenResponse, at_share
from wings.server_loads.schedule import SECOND_NS
from wings.server_loads.sysctls import own_sysctls

TIMES_SHARE, TIMES_MS = 0.002, 0.05
"""By how much a response time may differ from its packets': by three digits, and by calls."""
EDGE_NS, EDGE_GAPS = 1_000_000, 20
"""How exactly a capture knows when seconds begin: of drawn arrivals within so many mean gaps."""


@check("arrivals", "served_load")
def check_asked(seen: ServedEvidence) -> Iterator[str]:
    """The load was the one asked for, and its numbers do not contradict each other."""
    load, served = seen.asked, seen.served_load
    knobs = seen.lab.knobs if seen.has("lab") else {}
    arrivals = load.arrivals
    if served.seconds != arrivals.duration_s:
        yield f"{served.seconds} s were measured, asked were {arrivals.duration_s} s"
    if served.replies_per_s * served.seconds > served.all_answered + 0.5:
        yield (
            f"{served.replies_per_s:g} responses a second for {served.seconds} s are more than the "
            f"{served.all_answered} that clients had"
        )
    unanswered = served.started - served.answered
    failed_pct = 100 * unanswered / served.started if served.started else 0.0
    if not math.isclose(served.failed_pct, failed_pct, abs_tol=1e-9):
        yield f"{served.failed_pct:g} % failed, but {unanswered} of {served.started} connections"
    mean_ms, halves_ms = served.response_mean_ms or 0.0, [*filter(None, served.response_halves_ms)]
    if halves_ms and not min(halves_ms) - TIMES_MS <= mean_ms <= max(halves_ms) + TIMES_MS:
        yield f"the mean response took {mean_ms:g} ms, those of the halves {halves_ms}"
    least_ms = load.link.rtt_ms * (1 if load.tcp.tfo else 2)
    median_ms = served.response_p50_ms
    if median_ms is not None and median_ms < least_ms * (1 - HISTOGRAM_SHARE):
        yield f"half of the responses came within {median_ms:g} ms, which {least_ms:g} ms preclude"
    for name, value in own_sysctls(arrivals).items():
        if knobs.get(f"client.{name}") != value:
            yield f"client: {name} was read back as {knobs.get(f'client.{name}')!r}, not {value!r}"


@check("responses", "served_load", "virtual_time", "whole_capture", "responses")
def check_responses(seen: ServedEvidence) -> Iterator[str]:
    """Connections, answers, throughput and response times are those of the packets.

    One that is tried again is several in the capture: then only answers are held against it.
    """
    served, arrivals, responses = seen.served_load, seen.asked.arrivals, seen.responses
    ended = [each.ended_ns for each in responses if each.ended_ns is not None]
    if len(ended) != served.all_answered:
        yield f"{served.all_answered} connections were answered, by the capture {len(ended)}"
    if not responses:
        return
    drawn_ns = round(EDGE_GAPS * 1e9 / arrivals.rate_per_s)
    slack_ns = drawn_ns if arrivals.spacing == "poisson" else EDGE_NS
    since_ns = responses[0].began_ns + arrivals.warm_up_s * 10**9
    until_ns = since_ns + arrivals.duration_s * 10**9
    most, least = (
        sum(since_ns - more <= at_ns <= until_ns + more for at_ns in ended)
        for more in (slack_ns, -slack_ns)
    )
    if not least - 0.5 <= served.replies_per_s * served.seconds <= most + 0.5:
        yield (
            f"{served.replies_per_s:g} responses a second are told of, by the capture they are "
            f"{least / arrivals.duration_s:g} to {most / arrivals.duration_s:g}"
        )
    if arrivals.retries_refused:
        return
    if len(responses) != served.all_started:
        yield f"{served.all_started} connections started, by the capture {len(responses)}"
        return
    _, until_s = arrivals.measured_s
    after = len(seen.due_ns) - bisect_left(seen.due_ns, until_s * SECOND_NS)
    end = served.all_started - after
    measured = responses[end - served.started : end]
    times_ms = sorted(
        (each.ended_ns - each.began_ns) / 1e6 for each in measured if each.ended_ns is not None
    )
    if len(times_ms) != served.answered:
        yield f"{served.answered} of the measured were answered, by the capture {len(times_ms)}"
        return
    for name, told_ms, found_ms in (
        ("mean", served.response_mean_ms, sum(times_ms) / max(1, len(times_ms))),
        ("median", served.response_p50_ms, at_share(times_ms, 0.5) if times_ms else 0.0),
        ("p99", served.response_p99_ms, at_share(times_ms, 0.99) if times_ms else 0.0),
        *_halves(seen, measured),
    ):
        within = math.isclose(told_ms or 0.0, found_ms, rel_tol=TIMES_SHARE, abs_tol=TIMES_MS)
        if not within:
            yield f"the {name} response took {told_ms} ms, by the capture {found_ms:.3f}"


def _halves(
    seen: ServedEvidence, measured: Sequence[SeenResponse]
) -> Iterator[tuple[str, float | None, float]]:
    """Yield of each half of the measured time its mean response, as told and by the capture."""
    arrivals = seen.asked.arrivals
    half_ns = (arrivals.warm_up_s * 2 + arrivals.duration_s) * SECOND_NS // 2
    began_ns = seen.responses[0].began_ns - (seen.due_ns[0] if seen.due_ns else 0)
    half = bisect_left(measured, began_ns + half_ns, key=lambda each: each.began_ns)
    told = seen.served_load.response_halves_ms
    for name, told_ms, part in zip(
        ("first half's", "second half's"), told, (measured[:half], measured[half:]), strict=False
    ):
        times_ms = [(e.ended_ns - e.began_ns) / 1e6 for e in part if e.ended_ns is not None]
        yield f"{name} mean", told_ms, fmean(times_ms) if times_ms else 0.0
