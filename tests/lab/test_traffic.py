"""Packets of one load: what the link may have done with them, and what not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testbed.lab.link.protocol import LinkReport, Traffic
from testbed.lab.path import Device, count_inside
from testbed.lab.traffic import compare_reports, judge_traffic
from testbed.model import LinkSpec

IDLE = LinkReport("netem", Traffic(92, 12, 0), Traffic(92, 12, 0))
AFTER = replace(IDLE, down=Traffic(192, 15, 0), up=Traffic(182, 12, 0), waiting_packets=1)
LOSSY = LinkSpec(loss_pct=1.0)


def test_the_packets_between_two_reports() -> None:
    assert compare_reports(IDLE, AFTER) == {
        "waiting": 1,
        "down.delivered": 100, "down.dropped": 3, "down.lost": 0, "down.marked": 0,
        "up.delivered": 90, "up.dropped": 0, "up.lost": 0, "up.marked": 0,
    }  # fmt: skip


def test_a_queue_s_own_counts_are_those_of_the_load() -> None:
    before, after = (
        replace(AFTER, up=Traffic(182, 12, 0, marked, {"ecn_mark": marked})) for marked in (3, 10)
    )
    counted = compare_reports(before, after)
    assert (counted["up.marked"], counted["up.queue.ecn_mark"]) == (7, 7)
    # Counts of marks say nothing of packets that did not come out.
    assert list(judge_traffic(counted, 0, LinkSpec())) == []


def test_a_full_buffer_may_drop() -> None:
    assert list(judge_traffic(compare_reports(IDLE, AFTER), 4, LinkSpec())) == []


@pytest.mark.parametrize("inside", [3, 5])
def test_packets_that_nobody_counts(inside: int) -> None:
    (said,) = judge_traffic(compare_reports(IDLE, AFTER), inside, LinkSpec())
    assert said == f"of the packets that went into the link {inside} did not come out, it says 4"


def test_loss_that_was_not_asked_for() -> None:
    lost = replace(AFTER, up=replace(AFTER.up, lost=2))
    counted = compare_reports(IDLE, lost)
    said = "2 packets were lost on the link, asked was no loss"
    assert list(judge_traffic(counted, 6, LinkSpec())) == [said]
    assert list(judge_traffic(counted, 6, LOSSY)) == []


@pytest.mark.parametrize(
    ("knobs", "way", "fits"),
    [
        ({"loss_up_pct": 1.0}, "up", True), ({"loss_up_pct": 1.0}, "down", False),
        ({"loss_pct": 1.0, "loss_down_pct": 0.0}, "down", False),
        ({"corrupt_pct": 1.0}, "up", False), ({"changes": "at 1 s: down for 1 s"}, "down", True),
    ],
)  # fmt: skip
def test_each_direction_may_lose_what_was_asked_of_it(
    knobs: dict[str, Any], way: str, fits: bool
) -> None:
    lost = replace(AFTER, **{way: replace(getattr(AFTER, way), lost=2)})
    said = list(judge_traffic(compare_reports(IDLE, lost), 6, LinkSpec(**knobs)))
    assert said == ([] if fits else ["2 packets were lost on the link, asked was no loss"])


def test_copies_come_out_that_never_went_in() -> None:
    copied = replace(AFTER, down=replace(AFTER.down, duplicated=3, corrupted=1))
    counted = compare_reports(IDLE, copied)
    assert (counted["down.duplicated"], counted["down.corrupted"]) == (3, 1)
    assert list(judge_traffic(counted, 1, LinkSpec(duplicate_pct=1.0))) == []
    assert len(list(judge_traffic(counted, 4, LinkSpec(duplicate_pct=1.0)))) == 1


def test_a_link_that_was_replaced() -> None:
    counted = compare_reports(AFTER, replace(AFTER, down=Traffic(3, 0, 0)))
    said = "the link began to count again during the load (down.delivered, down.dropped)"
    assert list(judge_traffic(counted, 0, LOSSY)) == [said]


def test_what_is_inside_the_link() -> None:
    counters = {"near": {"n0": Device(10, 7, 0), "n1": Device(7, 9, 0)},
                "far": {"f1": Device(8, 8, 0)}}  # fmt: skip
    assert count_inside(counters) == 3
    assert count_inside({"near": {}, "far": {}}) == 0
