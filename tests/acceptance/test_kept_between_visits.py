"""Connections that a browser keeps for the next visit, and captures that lack or shift a visit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from testbed.base.errors import EXIT_OK
from testbed.capture.packets import read_capture
from testbed.model import CAPTURE_FILE, HAR_FILE, VISIT_HARS
from tests.acceptance.altered import Done
from tests.acceptance.house import House, Ran, assert_bad, assert_ok
from tests.capture.packets import write_frames
from tests.measured import load_of

pytestmark = [pytest.mark.guest, pytest.mark.browser]

PAGE, TABLE, SECURE = "tum-website", "wikipedia", "wikipedia-h2"
KNOBS = {"page": PAGE, "client": "chromium", "rtt_ms": 20, "visits": 2, "idle_s": 5}
"""Connections of the first visit are used in the second."""
SECOND_NS = 1_000_000_000


@pytest.fixture(scope="module", autouse=True)
def pages(house: House) -> None:
    house.take(PAGE, TABLE, SECURE)


@pytest.fixture(scope="module")
def done(house: House) -> Done:
    ran = house.run(**KNOBS)
    assert ran.code == EXIT_OK, ran.said
    return Done(ran.one(), ran.folder, house.archive(PAGE).digest)


def urls(ran: Ran) -> list[list[str]]:
    """What was asked for in each visit of a load that is proven."""
    (record,) = ran.records
    assert_ok(record)
    load = load_of(record)
    assert load is not None and load.missing == load.earlier[0].missing == ()
    folder = ran.folder / "trials" / record.trial_id
    hars = (json.loads((folder / name).read_text()) for name in (VISIT_HARS[0], HAR_FILE))
    return [[each["request"]["url"] for each in har["log"]["entries"]] for har in hars]


@pytest.mark.nightly(but="^h2$")
@pytest.mark.parametrize(
    "knobs",
    [{}, {"page": SECURE, "protocol": "h2", "tls_resumption": True, "web_server": "nginx-quic"}],
    ids=["h1", "h2"],
)
def test_connections_are_kept_from_one_visit_to_the_next(
    house: House, knobs: dict[str, Any]
) -> None:
    ran = house.run(**KNOBS | knobs, between="keep")
    first, second = urls(ran)
    assert sorted(first) == sorted(second)
    (record,) = ran.records
    load, proof = load_of(record), record.proof
    assert load is not None and proof is not None
    assert load.plt_ms < load.earlier[0].plt_ms
    assert [visit.tcp > 0 for visit in proof.visits] == ([True, False] if knobs else [])


FIRST, LAST = "visit 1 of 2: ", "visit 2 of 2: "


@pytest.mark.parametrize(
    ("change", "says"),
    [(lambda at_ns, began_ns: at_ns if at_ns < began_ns else None, f"{LAST}the client sent no"),
     (lambda at_ns, began_ns: at_ns if at_ns < began_ns else at_ns + SECOND_NS,
      f"{LAST}its first packet left 1000."),
     (lambda at_ns, began_ns: None if at_ns < began_ns else at_ns, f"{FIRST}the client sent no")],
    ids=["second missing", "second later", "first missing"],
)  # fmt: skip
def test_what_was_captured(
    done: Done, change: Callable[[int, int], int | None], says: str, tmp_path: Path
) -> None:
    load = load_of(done.record)
    assert load is not None and load.began_ns is not None
    folder = copytree(done.folder, tmp_path / "results")
    capture = folder / "trials" / done.record.trial_id / CAPTURE_FILE
    frames = [
        (at_ns, packet.frame)
        for packet in read_capture(capture).packets
        if (at_ns := change(packet.at_ns, load.began_ns)) is not None
    ]
    write_frames(capture, frames)
    assert_bad(replace(done, folder=folder).judge(lambda _: None, tmp_path), says, "unproven")
