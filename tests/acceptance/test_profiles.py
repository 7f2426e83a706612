"""Profiles of links in a real lab: each is the link that its numbers say, told by its name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from testbed.base.places import PROFILES
from testbed.experiment.profiles import read_profile
from testbed.model import Record
from tests.acceptance.house import House, assert_ok

pytestmark = pytest.mark.guest

TABLE = (
    "id,parent,host,mime,status,transfer_bytes,body_bytes,how,gap_ms,start_ms,dur_ms,protocol\n"
    "0,,www.tiny.test,text/html,200,1000,1000,root,,0,40,http\n"
)
PAGE = "tiny"
EXTREMES = ("firstflight-fibre-1g", "wpt-dial", "wolsing-geo")
"""The fastest, the slowest, and the one with the most delay and loss."""
OTHERS = sorted({path.stem for path in PROFILES.glob("*.toml")} - set(EXTREMES))
LARGEST_ERROR = 0.001


@pytest.fixture(scope="module")
def page(house: House) -> str:
    return house.import_table(TABLE, PAGE, "http://www.tiny.test/")


@pytest.mark.thorough
@pytest.mark.nightly(but="^extremes$")
@pytest.mark.parametrize("names", [EXTREMES, OTHERS], ids=["extremes", "all"])
def test_the_lab_measures_what_the_profile_states(
    house: House, page: str, names: Sequence[str]
) -> None:
    ran = house.run(page=page, client="graph", dns="hosts", timeout_s=900, link=list(names))
    records = {record.trial.linked.link.profile: record for record in ran.records}
    assert sorted(records) == sorted(names)
    for name, record in records.items():
        profile = read_profile(PROFILES / f"{name}.toml")
        assert record.trial.linked.link == profile.link
        assert largest_error(record) < LARGEST_ERROR
        if not profile.link.loss_pct:  # what loss does to a first flight is not the link's matter
            assert_ok(record)


def largest_error(record: Record) -> float:
    """The error of the lab's rates and round trip, as a share of what was asked."""
    assert record.lab is not None
    found = {one.name: one for one in record.lab.measurements}
    wanted = [found[name] for name in ("rtt", "down_rate", "up_rate")]
    return max(abs(one.measured - one.theory) / one.theory for one in wanted)
