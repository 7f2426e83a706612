"""What the calibration expects, and what a reading says of a link that is not as asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.lab.calibration import expect, left_meanwhile, train_sent, train_theory
from testbed.lab.exactness import HOST, VIRTUAL
from testbed.model import LabReading, LinkSpec, Measurement


@pytest.mark.parametrize(
    ("buffer", "mtu", "framing", "packets"),
    [(131072, 1500, 0, 1 + 87), (131072, 1500, 14, 1 + 86), (3000, 1500, 0, 3), (2999, 1500, 0, 2),
     (1499, 1500, 0, 1)],
)  # fmt: skip
def test_train_theory(buffer: int, mtu: int, framing: int, packets: int) -> None:
    spec = LinkSpec(buffer_bytes=buffer, mtu_bytes=mtu, framing_bytes=framing)
    assert train_theory(spec) == packets


@given(buffer=st.integers(0, 10**6), mtu=st.integers(68, 9000), framing=st.integers(0, 64))
def test_the_buffer_holds_what_survives_and_no_more(buffer: int, mtu: int, framing: int) -> None:
    spec = LinkSpec(buffer_bytes=buffer, mtu_bytes=mtu, framing_bytes=framing)
    queued = train_theory(spec) - 1
    assert queued * (mtu + framing) <= buffer < (queued + 1) * (mtu + framing)


def test_a_buffer_of_one_packet_more_is_a_problem() -> None:
    reading = LabReading((Measurement("down_buffer", "packets", 89.0, 88.0, 0.0),), {})
    assert len(reading.problems) == 1
    assert reading.problems[0].startswith("down_buffer: measured 89 packets, theory 88 packets")


@pytest.mark.parametrize(
    ("buffer", "survive", "sent"), [(131072, 87, 99), (1499, 0, 12), (10**7, 612, 612)]
)
def test_a_train_that_waits_for_a_trace(buffer: int, survive: int, sent: int) -> None:
    spec = LinkSpec(buffer_bytes=buffer, trace_up="x")
    assert (train_theory(spec, "up"), train_sent(spec, "up")) == (survive, sent)
    more = train_sent(spec, "down") - train_theory(spec, "down")
    assert more == 12 + left_meanwhile(spec, "down")


@pytest.mark.parametrize(
    ("kbit", "left"), [(256, 0), (10_000, 0), (100_000, 8), (1_000_000, 93), (10_000_000, 7614)]
)
def test_a_train_fills_the_buffer_of_a_fast_line(kbit: int, left: int) -> None:
    """A train of 846 leaves at 1.2 us a packet at the most, and each that left makes room."""
    spec = LinkSpec(up_kbit=kbit, buffer_bytes=1_250_000)
    sent = train_sent(spec, "up")
    assert (left_meanwhile(spec, "up"), sent) == (left, train_theory(spec) + 12 + left)
    (buffer,) = (m for m in expect(spec, VIRTUAL) if m.name == "up_buffer")
    assert (buffer.theory, buffer.bound) == (834.0, "2 packets" if left else "0.0 %")


def test_a_buffer_is_measured_whole_on_any_line() -> None:
    """Twice the buffer holds more of a train than the bound allows, however fast the line."""
    for kbit in (256, 1_000_000, 10_000_000):
        spec = LinkSpec(up_kbit=kbit)
        assert train_sent(spec, "up") > train_theory(spec) + left_meanwhile(spec, "up")


@pytest.mark.parametrize(
    ("rtt_ms", "real_s"), [(1.0, 0.3), (20.0, 0.3), (100.0, 0.3), (200.0, 0.6), (1000.0, 3.0)]
)
def test_in_virtual_time_two_seconds_and_in_real_time_three_round_trips(
    rtt_ms: float, real_s: float
) -> None:
    assert VIRTUAL.settle_s(rtt_ms) == 2.0
    assert HOST.settle_s(rtt_ms) == pytest.approx(real_s)
