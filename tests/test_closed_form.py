from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.model import LinkSpec
from tests.closed_form import ColdFetch, fetch_ms, packets

PLAIN = ColdFetch(LinkSpec(rtt_ms=20.0), request_bytes=490, response_bytes=10_237, fast_open=False)
FAST = replace(PLAIN, fast_open=True)


def test_packets_of_a_plain_fetch() -> None:
    sent = packets(PLAIN)
    assert sent.up == (60, 52, 542)
    assert sent.down == (60, 52, *(1500,) * 7, 153)


def test_packets_of_a_fast_open_fetch() -> None:
    sent = packets(FAST)
    assert sent.up == (562,)
    assert sent.down == (60, *(1500,) * 7, 153)


def test_times_summed_by_hand() -> None:
    # Up 654 bytes at 32 bytes a ms, down 10,765 at 500, two round trips.
    assert fetch_ms(PLAIN) == pytest.approx(20.4375 + 21.53 + 40, abs=1e-9)
    # Up 562, down 10,713, one round trip.
    assert fetch_ms(FAST) == pytest.approx(17.5625 + 21.426 + 20, abs=1e-9)


@given(st.floats(1, 1000), st.floats(1, 1000), st.booleans())
def test_only_round_trips_depend_on_the_delay(one: float, other: float, fast_open: bool) -> None:
    near, far = (
        fetch_ms(replace(PLAIN, link=LinkSpec(rtt_ms=rtt_ms), fast_open=fast_open))
        for rtt_ms in (one, other)
    )
    round_trips = 1 if fast_open else 2
    assert far - near == pytest.approx(round_trips * (other - one), abs=1e-6)


def test_a_response_that_just_fits_the_window() -> None:
    assert len(packets(replace(FAST, response_bytes=10 * 1448)).down) == 11
    with pytest.raises(ValueError, match="11 segments do not fit in a window of 10"):
        packets(replace(FAST, response_bytes=10 * 1448 + 1))


def test_a_request_that_just_fits_a_syn() -> None:
    assert packets(replace(FAST, request_bytes=1428)).up == (1500,)
    with pytest.raises(ValueError, match="1429 bytes does not fit in a SYN"):
        packets(replace(FAST, request_bytes=1429))
