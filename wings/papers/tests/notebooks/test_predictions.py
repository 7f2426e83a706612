"""Links and fetches by arithmetic."""

from __future__ import annotations

import math

import pytest

from analysis.shortflow import predict_fetch_ms
from testbed.base.errors import ConfigurationError
from testbed.model import LinkSpec, TcpSpec
from wings.papers.notebooks.predictions import capacities, fetches, link_times, refusals


def test_a_packet_a_queue_and_the_pipe_of_the_papers_link() -> None:
    frame = link_times([LinkSpec(rtt_ms=20), LinkSpec(rtt_ms=200)])
    first, second = (row for _, row in frame.iterrows())
    assert first["packet_down_ms"] == pytest.approx(3.0)
    assert first["packet_up_ms"] == pytest.approx(46.875)
    assert first["queue_down_ms"] == pytest.approx(262.144)
    assert first["queue_up_ms"] == pytest.approx(4096.0)
    assert first["pipe_packets"] == pytest.approx(20 / 3)
    assert second["pipe_packets"] == pytest.approx(200 / 3)


def test_framing_makes_packets_longer() -> None:
    assert link_times([LinkSpec(framing_bytes=14)])["packet_down_ms"].iloc[0] == pytest.approx(
        3.028
    )


def test_fetches_are_the_models_for_every_combination() -> None:
    frame = fetches(LinkSpec(), TcpSpec(), request_bytes=400, response_bytes=[2_400, 30_000],
                    rtt_ms=[20, 100], tfo=[False, True])  # fmt: skip
    assert len(frame) == 8
    row = frame.query("response_bytes == 30_000 and rtt_ms == 100 and tfo").iloc[0]
    expected_ms = predict_fetch_ms(LinkSpec(rtt_ms=100), TcpSpec(tfo=True), 400, 30_000)
    assert row["fetch_ms"] == expected_ms
    assert row["handshake_ms"] == 0


def test_where_the_buffer_overflows_there_is_no_time() -> None:
    frame = fetches(LinkSpec(rtt_ms=100), TcpSpec(initcwnd_segments=32), request_bytes=400,
                    response_bytes=[100_000], buffer_bytes=[16_384, 131_072])  # fmt: skip
    small, large = frame["fetch_ms"]
    assert math.isnan(small)
    assert large > 0
    assert (frame["peak_buffer_bytes"] > 16_384).all()


def test_what_is_no_knob_is_named() -> None:
    with pytest.raises(ConfigurationError, match="page is no knob of a link or of TCP"):
        fetches(LinkSpec(), TcpSpec(), request_bytes=1, response_bytes=[1], page=["amazon"])


PRICES = {"syn": 5_000, "segment": 2_500, "accept": 5_000, "request": 10_000, "close": 5_000}


def test_a_server_s_capacity_is_the_inverse_of_a_connection_s_price() -> None:
    frame = capacities(PRICES).set_index("ending")
    assert list(frame["connection_us"]) == [47.5, 45.0, 42.5]
    assert frame.at["rst-fin", "capacity_per_s"] == pytest.approx(22_222.22)
    assert frame.at["FINs in both directions", "capacity_per_s"] == pytest.approx(21_052.63)


def test_refusals_leave_less_and_a_full_queue_is_waited_in() -> None:
    frame = refusals(PRICES, [20_000, 30_000, 200_000], backlog=128).set_index("rate_per_s")
    assert list(frame.loc[20_000]) == [20_000, 0.0]
    # 19,375 that are served and 10,625 that are refused: 920 + 80 ms.
    assert frame.at[30_000, "replies_per_s"] == pytest.approx(19_375)
    assert frame.at[30_000, "wait_ms"] == pytest.approx(6.658, abs=0.001)
    assert list(frame.loc[200_000]) == [0.0, math.inf]
