"""Opportunities of a trace: as mahimahi serves them, looped or once, drawn by the seed."""

from __future__ import annotations

from array import array
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.model import LinkSpec
from testbed.model.trace import (
    MS_NS,
    RunningTrace,
    Trace,
    held_bytes,
    hops,
    room_bytes,
    trace_origins,
    traced,
)
from tests.model.mahimahi import serve

ROOM = 1500


def trace(*times: int) -> Trace:
    return Trace(array("I", times))


times_of_a_trace = st.lists(st.integers(0, 40), min_size=1, max_size=30).map(sorted).filter(
    lambda times: times[-1] > 0
)  # fmt: skip


@given(
    times=times_of_a_trace,
    packets=st.lists(
        st.tuples(st.integers(0, 100 * MS_NS), st.integers(20, 4000)), max_size=20
    ).map(sorted),
    once=st.booleans(),
)
def test_packets_leave_as_mahimahi_lets_them(
    times: list[int], packets: list[tuple[int, int]], once: bool
) -> None:
    left = RunningTrace(trace(*times), once=once).serve(packets, ROOM)
    assert list(left) == serve(times, packets, ROOM, once=once)


@given(times=times_of_a_trace, since=st.integers(-100, 100), once=st.booleans())
def test_as_many_opportunities_are_counted_as_come(
    times: list[int], since: int, once: bool
) -> None:
    one = trace(*times)
    come = [ns // MS_NS for ns in islice(one.after(since * MS_NS, once=once), 40)]
    whole = come if len(come) < 40 else come[: come.index(come[-1])]
    for ms in set(whole):
        assert one.count_at(ms, once=once) == whole.count(ms)
    beyond = range(since + 1, max(whole, default=since) + 1)
    assert sum(one.count_at(ms, once=once) for ms in beyond) == len(whole)


def test_after_its_end_once_nothing_leaves() -> None:
    running = RunningTrace(trace(1, 5), origin_ns=10**18, once=True)
    assert running.next_ns(10**18 - 7) == 10**18 + MS_NS
    assert running.next_ns(10**18 + MS_NS) == 10**18 + 5 * MS_NS
    assert running.next_ns(10**18 + 5 * MS_NS) is None
    again = RunningTrace(running.trace, running.origin_ns)
    assert again.next_ns(10**18 + 5 * MS_NS) == 10**18 + 6 * MS_NS


def test_what_the_kernel_reads_is_what_is_read_back() -> None:
    one = trace(0, 0, 7)
    assert Trace.unpack(one.packed) == one
    assert len(one.packed) == 12
    assert (one.digest, one.crc) != (trace(0, 1, 7).digest, trace(0, 1, 7).crc)


def test_a_seed_draws_one_moment_for_both_directions() -> None:
    spec = LinkSpec(trace_down="a", trace_up="b", trace_phase="seed")
    both = {"a": trace(1000), "b": trace(300)}
    origins = [trace_origins(spec, both, seed, 10**18) for seed in range(50)]
    assert all(each["down"] == each["up"] for each in origins)
    phases = {(10**18 - each["down"]) // MS_NS for each in origins}
    assert phases <= set(range(300)) and len(phases) > 30
    assert trace_origins(LinkSpec(trace_up="b"), both, 1, 7) == {"up": 7}
    assert trace_origins(LinkSpec(), both, 1, 7) == {}


def test_an_opportunity_is_a_packet_with_its_framing() -> None:
    assert room_bytes(LinkSpec()) == 1500
    assert room_bytes(LinkSpec(framing_bytes=4, mtu_bytes=9000)) == 1504  # mahimahi's
    assert traced(LinkSpec(trace_up="x")) == {"up": "x"}


def test_a_last_hop_counts_frames_and_holds_all() -> None:
    spec = LinkSpec(hop_up="x", framing_bytes=4)
    assert (traced(spec), hops(spec)) == ({"hop_up": "x"}, {"hop_up": "x"})
    assert (room_bytes(spec), room_bytes(spec, "hop_up")) == (1504, 1514)
    assert (held_bytes(spec, "up"), held_bytes(spec, "hop_up")) == (131072, 10**7)
    assert trace_origins(spec, {"x": trace(9)}, 1, 7) == {"hop_up": 7}


@pytest.mark.parametrize(
    ("at_ms", "once", "before_ms"), [(2, True, 0), (3, True, 0), (4, True, 3), (9, True, 3),
                                     (9, False, 3), (10, False, 9), (13, False, 12)],
)  # fmt: skip
def test_the_opportunity_before(at_ms: int, once: bool, before_ms: int) -> None:
    running = RunningTrace(trace(3, 9), 10**18, once)
    assert running.before_ns(10**18 + at_ms * MS_NS) == 10**18 + before_ms * MS_NS


@pytest.mark.parametrize("once", [True, False])
def test_a_last_time_is_an_opportunity_as_others_are(once: bool) -> None:
    assert trace(0, 2, 2).count_at(2, once=once) == (2 if once else 3)


def test_no_packet_waits_longer_than_the_longest_gap() -> None:
    assert trace(3, 4, 9).longest_wait_ms == 5
    assert trace(7, 9).longest_wait_ms == 7  # from its end to its first, when it comes again
    assert trace(0, 0, 2).longest_wait_ms == 2
