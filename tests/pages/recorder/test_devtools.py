"""Requests of one method and URL are told apart by their times."""

from __future__ import annotations

from dataclasses import replace

from testbed.pages.recorder.devtools import Asked, pair
from testbed.pages.recorder.sockets import NetTransfer

URL = "http://www.site.test/a"
ASKED = Asked(
    id="1", url=URL, method="GET", type="Fetch", frame=None, document=None, redirected_from=None,
    kind="script", initiator=None, preflight_of=None, sent_s=0.0, started_s=None, ended_s=None,
    status=0, source="network", error=None, cancelled=False, body=None,
)  # fmt: skip


def test_by_the_time_at_which_the_network_took_them() -> None:
    transfers = [NetTransfer("GET", URL, 1.0, 0), NetTransfer("GET", URL, 1.5, 1)]
    late, early = replace(ASKED, id="late", started_s=1.5002), replace(ASKED, started_s=1.0001)
    pairs = pair(transfers, [late, early]).pairs
    assert [asked and asked.id for _, asked in pairs] == ["1", "late"]


def test_one_without_a_response_gets_what_is_left() -> None:
    transfers = [NetTransfer("GET", URL, 1.0, 0), NetTransfer("GET", URL, 1.5, 1)]
    mute, answered = replace(ASKED, id="mute"), replace(ASKED, started_s=1.0)
    pairs = pair(transfers, [mute, answered]).pairs
    assert [asked and asked.id for _, asked in pairs] == ["1", "mute"]


def test_a_look_into_the_cache_is_not_the_request() -> None:
    transfers = [NetTransfer("GET", URL, 1.0), NetTransfer("GET", URL, 1.001, 0)]
    pairs = pair(transfers, [ASKED]).pairs
    assert [asked and asked.id for _, asked in pairs] == [None, "1"]


def test_what_no_network_saw_is_alone() -> None:
    transfers = [NetTransfer("GET", URL, 1.0, 0), NetTransfer("POST", URL, 1.0, 1)]
    memory = replace(ASKED, source="memory cache", started_s=1.0)
    later = replace(ASKED, sent_s=9.0)
    found = pair(transfers, [memory, later])
    assert found.alone == (memory, later)
    assert [asked for _, asked in found.pairs] == [None, None]
