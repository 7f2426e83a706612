"""Transits of a line that is shared: in the order in which packets came to it."""

from __future__ import annotations

from testbed.capture.packets import Packet
from testbed.capture.transits import Transit, join_transits

NONE = Packet(0, b"", 0, "IP")


def transit(sent_ns: int, came_ns: int | None) -> Transit:
    return Transit(sent_ns, came_ns, 60, False, 80, NONE, None)


def test_of_two_hosts_packets_of_one_instant_are_in_the_order_of_their_coming() -> None:
    mine = [transit(1, 10), transit(5, 40), transit(5, None), transit(9, 50)]
    others = [transit(5, 20), transit(5, 30), transit(6, 45)]
    joined = join_transits({"up": mine, "down": mine}, {"up": others})
    ends = [(1, 10), (5, 20), (5, 30), (5, 40), (5, None), (6, 45), (9, 50)]
    assert [(each.sent_ns, each.came_ns) for each in joined["up"]] == ends
    assert joined["down"] == mine


def test_packets_of_one_host_stay_as_it_sent_them() -> None:
    """Its capture has their order: that a later one came sooner is not to be hidden."""
    mine = [transit(5, 40), transit(5, 20)]
    joined = join_transits({"up": mine}, {"up": [transit(5, 30)]})
    assert [each.came_ns for each in joined["up"]] == [30, 40, 20]
