"""Fast lines, narrow paths and offloads in a real lab: measured, proven, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.model import Record
from tests.acceptance.house import House, Plant, Ran, assert_ok, assert_refused

pytestmark = pytest.mark.guest

PAGE = "tum-website"
NETEM = "lab/link/netem.py"


def run(house: House, **link: Any) -> Ran:
    house.take(PAGE)
    knobs = {f"link.{name}": value for name, value in {"rtt_ms": 40, **link}.items()}
    return house.run(page=PAGE, client="graph", **knobs)


def one(ran: Ran) -> Record:
    (record,) = ran.records
    return record


@pytest.mark.parametrize("kbit", [1_000_000, 10_000_000])
def test_a_fast_line_is_measured_to_the_packet(house: House, kbit: int) -> None:
    record = one(run(house, rtt_ms=0.2, down_kbit=kbit, up_kbit=kbit, buffer_bytes=500_000))
    assert_ok(record)
    assert record.lab is not None
    found = {each.name: each for each in record.lab.measurements}
    for way in ("down", "up"):
        buffer = found[f"{way}_buffer"]
        assert abs(buffer.measured - 334) <= 2
        assert buffer.tolerance == 2


def test_a_larger_buffer_of_a_fast_line_is_found(house: House, plant: Plant) -> None:
    """All of a train that is sent as fast as the line takes it would come through."""
    plant(NETEM, "spec.buffer_bytes, overhead)\n", "2 * spec.buffer_bytes, overhead)\n")
    ran = run(house, rtt_ms=0.2, down_kbit=1_000_000, up_kbit=1_000_000)
    assert_refused(ran, "lab_mismatch", "down_buffer: measured 1", "theory 88 packets")
