"""What the house asks of a whole load, held against loads that are none."""

from __future__ import annotations

import pytest

from testbed.model import Condition, PageLoad, Record, Replay, RequestTiming, Trial
from tests.acceptance.house import assert_exact
from tests.client.sites import Site

LATE = "http://www.page.test/late"


def site() -> Site:
    """A page, a script, and a beacon after the load event."""
    site = Site()
    site.add(site.root, b"x", "text/html", how="root")
    site.add("http://www.page.test/a.js", b"x", "text/javascript")
    site.add(LATE, b"x", "text/plain", how="script", after_load=True)
    return site


def record(urls: list[str], exact: int) -> Record:
    """A load that asked for ``urls``, and a server that answered so many requests exactly."""
    requests = tuple(RequestTiming(url, 200, 0.0, 1.0) for url in urls)
    load = PageLoad("chromium", "1", 1.0, requests, (), (), ())
    trial = Trial(Condition("p", "chromium"), 0, 0, "virtual", "7.3")
    return Record(trial.id, trial, "ok", "e", measured=load, replay=Replay(exact))


URLS = [entry.url for entry in site().entries]


@pytest.mark.parametrize(
    ("urls", "exact"),
    [(URLS, 3), (URLS[:2], 2), (URLS[:2], 3)],
    ids=["all of it", "without the beacon", "the beacon under way"],
)
def test_a_whole_load(urls: list[str], exact: int) -> None:
    assert_exact(record(urls, exact), site().archive())


@pytest.mark.parametrize(
    ("urls", "exact"),
    [(URLS, 2), (URLS, 4), (URLS[:2], 4), (URLS[:1], 2), ([*URLS, LATE], 4)],
    ids=["one not answered", "one too many", "more than under way", "one not made", "one twice"],
)
def test_no_whole_load(urls: list[str], exact: int) -> None:
    with pytest.raises(AssertionError):
        assert_exact(record(urls, exact), site().archive())
