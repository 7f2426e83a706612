from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from testbed.model import Record, RequestTiming
from tests.analysis.sample import record
from tests.measured import load_of
from wings.papers.publications import rebuild_as
from wings.papers.published.reference import read_reference
from wings.papers.reproductions.fastopen_handshake import (
    ALL,
    BARE,
    COLD,
    FAST,
    largest_share_pct,
    quantiles,
    read_exchanges,
    shares,
    without_fast_open,
)
from wings.papers.tests.reproductions.sweeps import check_at, checks_at, condition, results_of

REFERENCE = read_reference("fastopen-handshake")


def exchange(
    handshake_ms: float, served_ms: float, waited_ms: float = 0.0, tfo: bool = False
) -> dict[str, Any]:
    cold = handshake_ms > 0
    return {"page": "amazon", "rtt_ms": 100.0, "tfo": tfo, "handshake_ms": handshake_ms,
            "served_ms": served_ms, "latency_ms": served_ms + waited_ms, "cold": cold,
            "fresh": cold}  # fmt: skip


def request(connection: str | None, start_ms: float, end_ms: float, **phases: Any) -> RequestTiming:
    known = {"queued_ms": 0.0, "blocked_ms": 0.0} | phases
    return RequestTiming("http://a.test/", 200, start_ms, end_ms, 9, connection, **known)


def test_phases_of_requests() -> None:
    requests = (
        request("1", 10, 500, queued_ms=5, blocked_ms=2, dns_ms=100, connect_ms=210, tls_ms=110),
        request("1", 400, 551, blocked_ms=50),
        request("2", 450, 600, blocked_ms=5),
        # Asked for before the others, and answered after them.
        request("1", 0, 990, blocked_ms=1),
    )
    late, first, warm, taken = read_exchanges(requests)
    assert (first["handshake_ms"], first["latency_ms"], first["served_ms"]) == (100, 485, 383)
    assert (first["cold"], first["fresh"]) == (True, False)
    assert (warm["handshake_ms"], warm["latency_ms"], warm["served_ms"]) == (0, 151, 101)
    assert (warm["cold"], warm["fresh"], late["fresh"]) == (False, False, True)
    # A connection that was opened for another request: new, but it was not waited for.
    assert (taken["cold"], taken["fresh"]) == (False, True)


@pytest.mark.parametrize("other", [{"status": 0}, {"queued_ms": None}, {"blocked_ms": None}])
def test_what_was_not_answered_or_is_not_told_is_left_out(other: dict[str, Any]) -> None:
    assert list(read_exchanges([replace(request("1", 0, 9), **other)])) == []


def test_shares_are_sums_over_sums() -> None:
    frame = pd.DataFrame([exchange(100, 400, 600), exchange(100, 600), exchange(0, 1000)])
    (row,) = shares(frame).to_dict("records")
    assert row["requests"] == 3
    assert row["fresh_pct"] == pytest.approx(200 / 3)
    assert row["cold_pct"] == pytest.approx(20.0)  # 200 of 1000
    assert row["all_pct"] == pytest.approx(10.0)  # 200 of 2000
    assert (row["handshake_ms"], row["cold_ms"]) == (100, 500)


def test_distributions_and_their_distance() -> None:
    frame = pd.DataFrame(
        [exchange(100, 400), exchange(100, 500), exchange(0, 50), exchange(0.1, 300, tfo=True)]
    )
    medians = quantiles(frame).set_index("requests")["p50_ms"].to_dict()
    assert medians == {COLD: 450.0, BARE: 350.0, ALL: 400.0, FAST: 300.0}
    # At the 10th percentile: 410 and 310 ms.
    assert largest_share_pct(without_fast_open(frame)) == pytest.approx(100 / 410 * 100)


def told(good: Record) -> Record:
    """A record of two requests, of which the first waited for a connection."""
    asked = (request("1", 0, 400, queued_ms=50, blocked_ms=10, dns_ms=40, connect_ms=100),
             request("1", 380, 500, queued_ms=20))  # fmt: skip
    return replace(good, measured=replace(load_of(good), requests=asked))


@pytest.mark.parametrize("har", ["there", "missing", "broken"])
def test_figures_and_checks_are_of_the_record_whatever_files_there_are(
    tmp_path: Path, har: str
) -> None:
    one = told(record(condition("amazon", 100.0, client="chromium")))
    results = results_of(tmp_path, [one])
    file = tmp_path / "trials" / one.trial_id / "load.har"
    file.write_text("{") if har == "broken" else file.unlink() if har == "missing" else None
    found = rebuild_as(results, REFERENCE)
    assert found is not None
    # Of 350 and 100 ms as the browser sees them a server sees 300 and 100.
    share, distribution = found.tables
    assert share.rows == (("amazon", 100.0, 2, 50.0, 33.3, 25.0, 100.0, 300.0),)
    assert [line[1] for line in distribution.rows] == [COLD, BARE, ALL]
    assert [figure.name for figure in found.figures] == [
        "handshake-share", "handshake-latency-100ms",
    ]  # fmt: skip
    cold = checks_at(found, "share of the handshake in cold requests")
    assert [(check.stated, check.agreement) for check in cold] == [
        ("8 to 28 %", "differs"), ("10 to 30 %", "differs"),
    ]  # fmt: skip
    assert cold[0].why.startswith("A handshake takes")
    # 350 ms over the median of both, 225: the paper's are 549 over 308 ms.
    slowdown = check_at(found, "how much slower cold requests are")
    assert (slowdown.stated, slowdown.ours) == ("78 %", "55.6 %")


@pytest.mark.parametrize(
    ("connect_ms", "why"),
    [(100.0, "its record is older than the phases"), (None, "its client does not say how long")],
)
def test_where_the_record_does_not_say_it_all_is_not_measured(
    tmp_path: Path, connect_ms: float | None, why: str
) -> None:
    good = record(condition("amazon", 100.0))
    asked = replace(load_of(good).requests[0], connect_ms=connect_ms)
    one = replace(good, measured=replace(load_of(good), requests=(asked,)))
    found = rebuild_as(results_of(tmp_path, [one]), REFERENCE)
    assert found is not None
    assert found.tables == () and found.figures == ()
    assert {check.agreement for check in found.checks} == {"not measured"}
    assert f"1 proven load is left out: {why}" in found.checks[0].why
