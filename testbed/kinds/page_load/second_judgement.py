"""Judgement of a second load of the page, by a neighbour: the first one's checks of its times."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.page_load.measurement import SecondLoad
from testbed.lab.neighbour_hosts import ADDRESSES
from testbed.model import NeighbourFlow
from testbed.model.traffic import Neighbour
from testbed.wire.both_ways import check_both_ways, check_strangers, check_whole
from testbed.wire.flows import Flows, read_flows
from testbed.wire.load_time import check_counts, check_load_time
from testbed.wire.neighbour_flow import LoadWindow, check_began, rate_kbit
from testbed.wire.packets import Capture
from testbed.wire.visits import split_visits


def judge_second(
    neighbour: Neighbour, second: SecondLoad, capture: Capture, window: LoadWindow
) -> tuple[NeighbourFlow, tuple[str, ...]]:
    """Return what a second load came to, and a sentence for each thing not as asked or told.

    ``capture`` has what the neighbour sent to the second page's servers, and got of them.
    """
    client = ADDRESSES[0]
    flows, load = read_flows(capture, {client}), second.load
    began_ns = min((p.at_ns for p in capture.packets), default=0)
    moved = sum(
        p.payload_bytes for p in capture.packets
        if p.target == client and window.start_ns <= p.at_ns <= window.end_ns
    )  # fmt: skip
    problems = (*check_began(neighbour, began_ns, window), *_check(second, capture, flows))
    return NeighbourFlow(
        *(neighbour.text, 1, "down", window.since_s(began_ns), rate_kbit(moved, window)),
        fetches=len(load.requests),
        plt_ms=load.plt_ms,
    ), problems


def _check(second: SecondLoad, capture: Capture, flows: Flows) -> Iterator[str]:
    yield from check_whole(capture)
    yield from check_strangers(capture, flows, 0)
    yield from check_both_ways(flows, {})
    (visit,) = split_visits(second.load)
    yield from check_load_time(
        *(capture, flows, ADDRESSES[:1], visit, second.connections), real_time=False
    )
    yield from check_counts(second.load, second.replay)
