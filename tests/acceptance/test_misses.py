"""A page that asks for what was never recorded: the trial fails and says so, unless allowed."""

from __future__ import annotations

import csv
import json

import pytest

from testbed.base.errors import EXIT_INCOMPLETE
from tests.acceptance.house import House, Ran, assert_ok
from tests.measured import load_of
from wings.pages.tests.recorder.site import Answer, Site, png, serving, typed

pytestmark = [pytest.mark.guest, pytest.mark.browser]

WWW = "http://www.changing.test"
# The path changes, which no rule of matching bridges, and so does the host.
PAGE = """<!doctype html><title>Changing</title><img src="/same.png"><script>
const now = Date.now();
new Image().src = `/at/${now}.png`;
new Image().src = `http://h${now}.changing.test/x.png`;
</script>
"""


class Changing(Site):
    """Has every picture."""

    def answer(self, method: str, url: str) -> Answer:
        page = typed(PAGE.encode(), "text/html")
        return page if url == f"{WWW}/" else typed(png(1), "image/png")


@pytest.fixture(scope="module")
def ran(house: House) -> Ran:
    with serving(Changing()) as site:
        house.record(site, f"{WWW}/", "changing")
    return house.run(page="changing", allow_misses=[False, True])


def misses(ran: Ran, allowed: bool) -> tuple[str, str]:
    """The two requests that were missed, by path and by host."""
    replay = ran.one(allow_misses=allowed).replay
    assert replay is not None
    assert (replay.exact, replay.inexact, len(replay.missed)) == (2, (), 2)
    path, host = replay.missed
    return path, host


def test_it_fails_and_names_them(ran: Ran) -> None:
    assert ran.code == EXIT_INCOMPLETE
    record = ran.one(allow_misses=False)
    assert record.outcome == "failed"
    path, host = misses(ran, allowed=False)
    assert path.startswith(f"GET {WWW}/at/1")
    assert host.startswith("(unreached) http://h1") and host.endswith(".changing.test/x.png")
    assert record.reason is not None
    assert f"2 requests missed: {path}, {host}" in record.reason
    assert "2 requests of the recording not made" in record.reason
    assert "allow_misses" in record.reason


def test_allowed_it_counts(ran: Ran) -> None:
    record = ran.one(allow_misses=True)
    assert_ok(record)
    assert misses(ran, allowed=True) == misses(ran, allowed=False)
    assert len(load_of(record).missing) == 2


def test_they_are_in_every_result(ran: Ran) -> None:
    with (ran.folder / "table.csv").open() as file:
        rows = {row["allow_misses"]: row for row in csv.DictReader(file)}
    assert {key: row["status"] for key, row in rows.items()} == {
        "false": "failed",
        "true": "proven",
    }
    for row in rows.values():
        assert (row["requests_exact"], row["requests_missed"]) == ("2", "2")
        assert row["requests_not_made"] == "2"
    cells = json.loads((ran.folder / "summary.json").read_text())["cells"]
    assert [cell["coverage"]["missed"] for cell in cells] == [2, 2]
    report = (ran.folder / "report.html").read_text()
    for miss in misses(ran, allowed=True):
        assert all(miss in cell["trials"][0]["replay"]["missed"] for cell in cells)
        assert miss in report
    assert "50.00 % of 8 requests were answered exactly" in ran.said
