"""Fetches over HTTP/3 take what the link and their datagrams come to, cold and with early data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.capture.packets import is_quic, read_capture
from testbed.model import CAPTURE_FILE, LinkSpec
from testbed.proof.visits import split_visits
from tests.acceptance.house import House, assert_ok
from tests.acceptance.quic_closed_form import (
    Datagrams,
    cold_ms,
    early_datagrams,
    early_ms,
    read_fetch,
)
from tests.measured import load_of

LINK = LinkSpec(rtt_ms=100.0)
COLD = Datagrams((1278, 1278), (1228, 1228, 943), (1278, 80, 202, 525), (1228,) * 8 + (949,))
EARLY = Datagrams(
    (1278, 1278, 108, 532), (1228,), (118, 71), (*(1228,) * 6, 829, 1228, 1228, 495), (79,)
)


def test_a_cold_fetch_summed_by_hand() -> None:
    # Up 4,641 bytes at 32 bytes a ms, down 12,001 at 500, two round trips and the timer.
    assert cold_ms(LINK, COLD, 2) == pytest.approx(145.03125 + 24.002 + 200 + 1.05, abs=1e-9)


def test_early_data_is_answered_with_three_times_its_bytes() -> None:
    # Of 9,252 bytes the handshake takes 1,251, and the seven datagrams 8,001: not a byte is left.
    assert early_datagrams(EARLY) == 7
    assert early_datagrams(replace(EARLY, acknowledged=(80,))) == 6
    assert early_datagrams(replace(EARLY, hello=(*EARLY.hello, 1278))) == 10


@pytest.mark.parametrize("rtt_ms", [100.0, 200.0])
def test_what_is_more_waits_for_an_answer_of_the_client(rtt_ms: float) -> None:
    # Up the Initials and the answer, 2,674 bytes; down the handshake and the rest, 4,179.
    link = replace(LINK, rtt_ms=rtt_ms)
    assert early_ms(link, EARLY, 2) == pytest.approx(83.5625 + 8.358 + 2 * rtt_ms, abs=1e-9)


def test_over_a_short_way_the_answer_comes_while_the_line_is_busy() -> None:
    # Up the whole first flight, 3,196 bytes; down the whole response, 11,148.
    link = replace(LINK, rtt_ms=20.0)
    assert early_ms(link, EARLY, 2) == pytest.approx(99.875 + 22.296 + 20, abs=1e-9)


def test_what_fits_takes_one_round_trip() -> None:
    small = replace(EARLY, response=EARLY.response[:2])
    assert early_ms(LINK, small, 2) == pytest.approx(99.875 + 4.912 + 100, abs=1e-9)


@pytest.mark.guest
@pytest.mark.browser
@pytest.mark.thorough
def test_both_take_what_the_closed_form_says(house: House) -> None:
    house.take("file-10k", "file-10k-h2")
    ran = house.run(
        page="file-10k-h2", web_server="nginx-quic", protocol="h3", tls_resumption=True,
        early_data=True, visits=2, dns="hosts", rtt_ms=[20, 100, 200],
    )  # fmt: skip
    assert len(ran.records) == 3
    for record in ran.records:
        assert_ok(record)
        capture = read_capture(ran.folder / "trials" / record.trial_id / CAPTURE_FILE)
        datagrams = [packet for packet in capture.packets if is_quic(packet)]
        cold, early = split_visits(load_of(record))
        for window, form_ms in ((cold, cold_ms), (early, early_ms)):
            sent, initials, wire_ms = read_fetch(datagrams, window)
            expected_ms = form_ms(record.trial.linked.link, sent, initials)
            assert wire_ms == pytest.approx(expected_ms, abs=0.050)
