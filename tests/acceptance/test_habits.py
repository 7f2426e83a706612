"""Pages of today, one habit each: recorded live, replayed, and judged as they are.

What becomes of each at recording and at replay is told in docs/pages.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import pytest

from testbed.model import Record
from tests.acceptance.habits import HABITS, WWW, HabitSite
from tests.acceptance.house import House
from wings.pages.tests.recorder.site import serving

pytestmark = [pytest.mark.guest, pytest.mark.browser]

GOES_ON = f"went on to {WWW}/grow.html: record that one"
REFUSED: Mapping[str, str] = {"goes-on": GOES_ON, "refresh": GOES_ON}
"""Words of the reason why a page has no load time; every other has one."""
LINE = {"rtt_ms": 40, "down_kbit": 20_000, "up_kbit": 5_000}


@pytest.fixture(scope="module")
def loaded(house: House) -> Callable[[str], Record]:
    """Records a page and loads it."""

    @functools.cache
    def load(name: str) -> Record:
        with serving(HabitSite()) as site:
            house.record(site, f"{WWW}/habit/{name}", name)
        (record,) = house.run(page=name, **LINE).records
        return record

    return load


@pytest.mark.nightly(but="^late-chain$")
@pytest.mark.parametrize("name", HABITS)
def test_a_page_has_a_load_time_or_is_refused_in_the_right_words(
    loaded: Callable[[str], Record], name: str
) -> None:
    record = loaded(name)
    reason = record.reason or "; ".join(record.proof.problems if record.proof else ())
    if name in REFUSED:
        assert REFUSED[name] in reason
    else:
        assert (record.outcome, reason) == ("ok", "")
