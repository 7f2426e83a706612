"""Requests of one method and URL are told apart by their times."""

from __future__ import annotations

from dataclasses import replace

from wings.pages.recorder.devtools import PageRequest, pair
from wings.pages.recorder.sockets import NetTransfer

URL = "http://www.site.test/a"
REQUEST = PageRequest(
    id="1", url=URL, method="GET", type="Fetch", frame=None, document=None, redirected_from=None,
    kind="script", initiator=None, preflight_of=None, sent_s=0.0, started_s=None, ended_s=None,
    status=0, source="network", error=None, cancelled=False, body=None,
)  # fmt: skip


def test_by_the_time_at_which_the_network_took_them() -> None:
    transfers = [NetTransfer("GET", URL, 1.0, 0), NetTransfer("GET", URL, 1.5, 1)]
    late, early = replace(REQUEST, id="late", started_s=1.5002), replace(REQUEST, started_s=1.0001)
    pairs = pair(transfers, [late, early]).pairs
    assert [request and request.id for _, request in pairs] == ["1", "late"]


def test_one_without_a_response_gets_what_is_left() -> None:
    transfers = [NetTransfer("GET", URL, 1.0, 0), NetTransfer("GET", URL, 1.5, 1)]
    mute, answered = replace(REQUEST, id="mute"), replace(REQUEST, started_s=1.0)
    pairs = pair(transfers, [mute, answered]).pairs
    assert [request and request.id for _, request in pairs] == ["1", "mute"]


def test_a_look_into_the_cache_is_not_the_request() -> None:
    transfers = [NetTransfer("GET", URL, 1.0), NetTransfer("GET", URL, 1.001, 0)]
    pairs = pair(transfers, [REQUEST]).pairs
    assert [request and request.id for _, request in pairs] == [None, "1"]


def test_what_no_network_saw_is_alone() -> None:
    transfers = [NetTransfer("GET", URL, 1.0, 0), NetTransfer("POST", URL, 1.0, 1)]
    memory = replace(REQUEST, source="memory cache", started_s=1.0)
    later = replace(REQUEST, sent_s=9.0)
    pairing = pair(transfers, [memory, later])
    assert pairing.alone == (memory, later)
    assert [request for _, request in pairing.pairs] == [None, None]
