from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.shortflow import explain_fetch, predict_fetch_ms
from analysis.shortflow.link import directions
from analysis.shortflow.response import Window
from testbed.base.errors import ConfigurationError
from testbed.model import Cookies, LinkSpec, Record, TcpSpec
from tests.acceptance.conftest import acceptance_cache, house
from tests.acceptance.house import House, Ran, assert_ok
from tests.measured import load_of

__all__ = ["acceptance_cache", "house"]  # fixtures of this file, too

ACCESS = LinkSpec(rtt_ms=20.0)
# 10 Mbit/s each way: a full packet takes 1.2 ms, an acknowledgement 0.0416 ms.
FAST = LinkSpec(rtt_ms=40.0, down_kbit=10_000, up_kbit=10_000, buffer_bytes=1_000_000)
OFF, ON = TcpSpec(), TcpSpec(tfo=True)
FULL = 1448


def test_one_flight_without_fast_open_summed_by_hand() -> None:
    # Up 654 bytes at 32 bytes a ms, down 10,765 at 500, two round trips.
    assert predict_fetch_ms(ACCESS, OFF, 490, 10_237) == pytest.approx(20.4375 + 21.53 + 40)


def test_one_flight_with_fast_open_summed_by_hand() -> None:
    # Up 562, down 10,713, one round trip.
    assert predict_fetch_ms(ACCESS, ON, 490, 10_237) == pytest.approx(17.5625 + 21.426 + 20)


def test_framing_counts_with_every_packet() -> None:
    framed = replace(ACCESS, framing_bytes=14)
    more = predict_fetch_ms(framed, OFF, 490, 10_237) - predict_fetch_ms(ACCESS, OFF, 490, 10_237)
    assert more == pytest.approx(3 * 14 / 32 + 10 * 14 / 500)


def test_ipv6_costs_20_bytes_of_each_packet() -> None:
    six = replace(ACCESS, ip="6")
    more = predict_fetch_ms(six, OFF, 490, 10_237) - predict_fetch_ms(ACCESS, OFF, 490, 10_237)
    # SYN, ACK and request; SYN-ACK, the request's ACK, and 8 packets in both.
    assert more == pytest.approx(3 * 20 / 32 + 10 * 20 / 500)
    with pytest.raises(ConfigurationError, match="which IP a client chooses"):
        predict_fetch_ms(replace(ACCESS, ip="dual"), OFF, 490, 10_237)


def test_a_window_of_one_takes_a_round_trip_for_each_doubling() -> None:
    parts = explain_fetch(FAST, TcpSpec(initcwnd_segments=1), 100, 3 * FULL)
    # One segment, its acknowledgement, then two: the second of them waits for the first.
    packet, ack = 1.2, 0.0416
    answer = 0.0416 + packet + 20 + ack + 20 + 2 * packet + 20
    assert parts.response_ms == pytest.approx(answer)
    assert parts.rounds == 2
    assert parts.handshake_ms == pytest.approx(40 + 2 * 60 / 1250)
    assert parts.request_ms == pytest.approx((52 + 152) / 1250 + 20)
    assert parts.serialisation_ms == pytest.approx(3 * packet)


def test_the_parts_add_up() -> None:
    parts = explain_fetch(FAST, TcpSpec(initcwnd_segments=4), 200, 262_144)
    fetch_ms = predict_fetch_ms(FAST, TcpSpec(initcwnd_segments=4), 200, 262_144)
    assert parts.fetch_ms == fetch_ms
    summed = parts.handshake_ms + parts.request_ms + parts.response_ms
    assert summed == fetch_ms
    assert parts.idle_ms + parts.serialisation_ms == pytest.approx(parts.response_ms)
    assert not parts.overflows


def test_a_full_pipe_leaves_the_rate_as_the_limit() -> None:
    # 20 ms at 10 Mbit/s are 17 packets: a window of 40 is never the limit.
    near = replace(FAST, rtt_ms=20.0)
    short, long = (
        predict_fetch_ms(near, TcpSpec(initcwnd_segments=40), 100, segments * FULL)
        for segments in (40, 200)
    )
    assert long - short == pytest.approx(160 * 1.2)


@given(st.integers(1, 400_000), st.integers(1, 20_000), st.integers(1, 20))
def test_more_bytes_never_arrive_sooner(size: int, more: int, window: int) -> None:
    tcp = TcpSpec(initcwnd_segments=window)
    assert predict_fetch_ms(FAST, tcp, 200, size) < predict_fetch_ms(FAST, tcp, 200, size + more)


@given(st.integers(1, 200_000), st.sampled_from(["cached", "not-required"]))
def test_fast_open_saves_the_handshake(size: int, cookies: Cookies) -> None:
    on = replace(ON, cookies=cookies)
    off = explain_fetch(FAST, OFF, 200, size)
    saved_ms = off.fetch_ms - predict_fetch_ms(FAST, on, 200, size)
    assert saved_ms == pytest.approx(off.handshake_ms, abs=0.2)


def test_a_cold_cookie_cache_saves_nothing() -> None:
    cold = predict_fetch_ms(FAST, replace(ON, cookies="cold"), 200, 10_000)
    assert cold == pytest.approx(predict_fetch_ms(FAST, OFF, 200, 10_000) + 16 / 1250)


def test_an_overflowing_buffer_is_named() -> None:
    small = replace(FAST, buffer_bytes=10_000)
    tcp = TcpSpec(initcwnd_segments=20)
    parts = explain_fetch(small, tcp, 200, 60_000)
    assert parts.overflows
    with pytest.raises(ConfigurationError, match="overflow the buffer of 10000 bytes"):
        predict_fetch_ms(small, tcp, 200, 60_000)
    assert explain_fetch(FAST, tcp, 200, 60_000).peak_buffer_bytes > 10_000


def test_all_that_does_not_hold_is_named_at_once() -> None:
    lossy = replace(FAST, loss_pct=1.0)
    with pytest.raises(ConfigurationError) as caught:
        explain_fetch(lossy, replace(ON, congestion_control="bbr"), 1429, 0)
    said = str(caught.value)
    for word in ("loss_pct is 1", "'bbr'", "0 bytes", "1429 bytes, a SYN carries at most 1428"):
        assert word in said


def test_the_buffer_holds_what_waits_for_the_line() -> None:
    down, _ = directions(replace(FAST, buffer_bytes=3_000))
    arrivals = [down.carry(1500, 0.0) for _ in range(3)]
    assert arrivals == pytest.approx([21.2, 22.4, 23.6])
    assert (down.peak_bytes, down.overflowed) == (3_000, False)
    down.carry(1500, 0.0)
    assert down.overflowed
    assert down.carry(1500, 100.0) == pytest.approx(121.2)


def test_slow_start_ends_when_the_least_round_trip_grows() -> None:
    window = Window(segments=16, hystart=True)
    window.acknowledge(100.0, 40.0, 2, 2, 20)
    for place in range(1, 20):
        assert window.left_slow_start_ms is None or place > 9
        # A second flight, whose round trips are 6 ms longer: more than an eighth of the least.
        window.acknowledge(150.0 + 3 * place, 46.0, 2, 20 + 2 * place, 80)
    assert window.left_slow_start_ms == 150.0 + 3 * 9
    assert window.rounds == 2
    segments = window.segments
    window.acknowledge(300.0, 46.0, 20, 200, 220)
    assert window.segments in (segments, segments + 1, segments + 2)


def test_reno_stays_in_slow_start() -> None:
    window = Window(segments=16, hystart=False)
    for place in range(1, 40):
        window.acknowledge(100.0 + place, 40.0 + place, 1, place, 100)
    assert (window.segments, window.left_slow_start_ms) == (16 + 39, None)


FACTS = """\
title = "One object"
url = "http://object.test/"
recorded = 2026-01-01
source = "Made for a test."
licence = "None needed."
bodies = "Synthetic."
deviations = []
"""
TABLE = (
    "id,parent,host,mime,status,transfer_bytes,body_bytes,how,gap_ms,start_ms,dur_ms\n"
    "0,,object.test,text/html,200,{size},,root,,,\n"
)


def make_page(pages: Path, name: str, size: int) -> str:
    """A page of one object, whose head and body have ``size`` bytes."""
    (pages / name).mkdir()
    (pages / name / "page.toml").write_text(FACTS)
    (pages / name / "resources.csv").write_text(TABLE.format(size=size))
    return name


def assert_predicted(ran: Ran, record: Record) -> None:
    """The model says what the kernel measured, to within 1 %."""
    assert_ok(record)
    (request,), (entry,) = load_of(record).requests, ran.har(record)
    condition = record.trial.linked
    assert request.transfer_bytes is not None
    asked_bytes = entry["request"]["headersSize"]
    due_ms = predict_fetch_ms(condition.link, condition.tcp, asked_bytes, request.transfer_bytes)
    assert load_of(record).plt_ms == pytest.approx(due_ms, rel=0.01)


@pytest.mark.guest
@pytest.mark.nightly(but="^40.0$")
@pytest.mark.parametrize("rtt_ms", [40.0, 200.0])
def test_within_one_percent_of_the_virtual_kernel(house: House, rtt_ms: float) -> None:
    sizes = {"kib60": 61_700, "kib256": 262_400, "mib1": 1_048_900}
    pages = [make_page(house.pages, name, size) for name, size in sizes.items()]
    ran = house.run(page=pages, client="graph", dns="hosts", rtt_ms=rtt_ms,
                    initcwnd_segments=[1, 3, 10], down_kbit=10_000, up_kbit=10_000,
                    buffer_bytes=1_000_000)  # fmt: skip
    assert len(ran.records) == 9
    for record in ran.records:
        assert_predicted(ran, record)


@pytest.mark.guest
def test_small_objects_on_the_access_link(house: House) -> None:
    pages = [make_page(house.pages, name, n) for name, n in (("kb2", 2_000), ("kb20", 20_000))]
    knobs = {"rtt_ms": [20.0], "tfo": [False, True], "ip": ["4", "6"]}
    ran = house.run(page=pages, client="graph", dns="hosts", **knobs)
    assert len(ran.records) == 8
    for record in ran.records:
        assert_predicted(ran, record)


@pytest.mark.guest
def test_the_buffer_overflows_where_the_model_says(house: House) -> None:
    page = make_page(house.pages, "whole", 1_048_900)
    tcp, link = TcpSpec(), replace(FAST, rtt_ms=200.0)
    # To within two packets, because the size of the request shifts everything a little.
    needed = explain_fetch(link, tcp, 490, 1_048_900).peak_buffer_bytes
    ran = house.run(page=page, client="graph", dns="hosts", rtt_ms=200.0, down_kbit=10_000,
                    up_kbit=10_000, buffer_bytes=[needed + 3_000, needed - 3_000])  # fmt: skip
    enough, less = sorted(ran.records, key=lambda r: -r.trial.linked.link.buffer_bytes)
    assert_predicted(ran, enough)
    assert (sent_again(enough), sent_again(less) > 0) == (0, True)


def sent_again(record: Record) -> int:
    """Segments that the server sent more than once."""
    assert record.proof is not None
    return record.proof.server_counters["TcpRetransSegs"]
