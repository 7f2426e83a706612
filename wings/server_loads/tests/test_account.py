"""A server's account: counts of all workers, and how busy each was by its ledger."""

from __future__ import annotations

import pytest

from wings.server_loads.account import (
    SLICE_NS,
    Ledger,
    ServerAccount,
    count_segments,
    read_account,
)

FROM = 10 * SLICE_NS


def test_counts_are_of_all_workers_and_the_longest_queue_is_one_s() -> None:
    found = read_account([
        {"accepted": 3, "queue_most": 7, "busy_from_ns": FROM, "busy_ns": [1, 2]},
        {"accepted": 4, "queue_most": 5, "busy_from_ns": FROM, "busy_ns": [3]},
    ])  # fmt: skip
    assert found.counts == {"accepted": 7, "queue_most": 7}
    assert found.ledgers == (Ledger(FROM, (1, 2)), Ledger(FROM, (3,)))


def test_without_prices_there_is_no_ledger() -> None:
    found = read_account([{"accepted": 3, "queue_most": 1}])
    assert found.ledgers == ()
    assert found.busy_pct(0, SLICE_NS) is None


@pytest.mark.parametrize(
    ("since", "until", "busy_pct"),
    [
        (0, 2, 75.0),
        (0, 1, 100.0),
        (1, 2, 50.0),
        (0.5, 1.5, 75.0),
        (-1, 1, 50.0),
        (1, 3, 25.0),
    ],
)
def test_the_share_of_a_time(since: float, until: float, busy_pct: float) -> None:
    one = ServerAccount({}, (Ledger(FROM, (SLICE_NS, SLICE_NS // 2)),))
    moments = (round(FROM + moment * SLICE_NS) for moment in (since, until))
    assert one.busy_pct(*moments) == pytest.approx(busy_pct)


def test_of_several_processors_the_mean() -> None:
    both = ServerAccount({}, (Ledger(FROM, (SLICE_NS,)), Ledger(FROM, (0,))))
    assert both.busy_pct(FROM, FROM + SLICE_NS) == 50.0


def test_segments_that_a_kernel_sent_again_are_counted_once() -> None:
    """Of 100 segments sent four again and three SYN-ACKs, which Linux has in both counters."""
    counted = {
        "TcpInSegs": 50, "TcpOutSegs": 103, "TcpRetransSegs": 7, "TcpExtTCPSynRetrans": 3
    }  # fmt: skip
    assert count_segments(counted) == 50 + 100 + 4 + 3
    assert count_segments({"TcpInSegs": 2, "TcpOutSegs": 1}) == 3
