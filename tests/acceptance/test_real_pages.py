"""Real pages over HTTP/3 in the lab: exactly their recorded requests, many of them at once.

`wings/pages/tests/recipe/test_pages.py` loads them over HTTP/1.1 and HTTP/2.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlsplit

import pytest

from testbed.base import places
from testbed.pages.catalogue import FACTS_NAME, list_pages, read_facts, read_kind
from tests.acceptance.house import House, Ran, assert_ok

pytestmark = [pytest.mark.guest, pytest.mark.browser]

LINE = {"rtt_ms": 100, "down_kbit": 20_000, "up_kbit": 5_000, "buffer_bytes": 262_144}
MANY = "agency-h2"
RECIPES = [
    folder.name
    for folder in list_pages(places.ROOT / "pages")
    if read_kind(folder) == "recipe" and read_facts(folder / FACTS_NAME).url.startswith("https:")
]
AT_ONCE = 6
"""What Chromium asks a server for at once that it takes for one of HTTP/1.1."""


Load = Callable[[str, str], Ran]


@pytest.fixture(scope="module")
def load(house: House) -> Load:
    """Loads a page over a protocol, once for all tests."""

    @functools.cache
    def run(page: str, protocol: str) -> Ran:
        house.take(*{page.removesuffix("-h2"), page})
        return house.run(page=page, protocol=protocol, web_server="nginx-quic", **LINE)

    return run


@pytest.mark.nightly(but=f"^{MANY}$")
@pytest.mark.parametrize("page", RECIPES)
def test_all_that_was_recorded_is_asked_for(load: Load, page: str) -> None:
    (record,) = load(page, "h3").records
    assert_ok(record)
    assert record.replay is not None and record.proof is not None
    assert (record.replay.inexact, record.replay.missed) == ((), ())
    assert {name.rpartition(" ")[2] for name in record.replay.protocols} == {"HTTP/3.0"}
    (visit,) = record.proof.visits
    assert visit.tcp == 0 < visit.quic


@pytest.mark.nightly(but="^h3$")
@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_a_server_is_asked_for_many_things_at_once(load: Load, protocol: str) -> None:
    ran = load(MANY, protocol)
    (record,) = ran.records
    steps: list[tuple[float, int, str]] = []
    for entry in ran.har(record):
        host, timings = urlsplit(entry["request"]["url"]).hostname or "", entry["timings"]
        end_ms = 1e3 * datetime.fromisoformat(entry["startedDateTime"]).timestamp() + entry["time"]
        sent_ms = end_ms - timings["wait"] - timings["receive"]
        steps += [(sent_ms, 1, host), (end_ms, -1, host)]
    open_now: Counter[str] = Counter()
    most = 0
    for _, step, host in sorted(steps):
        open_now[host] += step
        most = max(most, open_now[host])
    assert most > AT_ONCE
