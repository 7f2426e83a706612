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
    gather_exchanges,
    largest_share_pct,
    parse_phases,
    quantiles,
    shares,
    without_fast_open,
)
from wings.papers.tests.reproductions.sweeps import check_at, checks_at, condition, results_of

REFERENCE = read_reference("fastopen-handshake")


def entry(connection: str, **timings: Any) -> dict[str, Any]:
    return {"connection": connection, "response": {"status": 200}, "timings": timings}


def exchange(
    handshake_ms: float, served_ms: float, waited_ms: float = 0.0, tfo: bool = False
) -> dict[str, Any]:
    cold = handshake_ms > 0
    return {"page": "amazon", "rtt_ms": 100.0, "tfo": tfo, "handshake_ms": handshake_ms,
            "served_ms": served_ms, "latency_ms": served_ms + waited_ms, "cold": cold,
            "fresh": cold}  # fmt: skip


def test_phases_of_a_har() -> None:
    log = {
        "entries": [
            entry("1", blocked=2, dns=100, connect=210, ssl=110, send=1, wait=120, receive=30),
            entry("1", blocked=50, dns=-1, connect=-1, ssl=-1, send=1, wait=100, receive=0),
            entry("2", blocked=5, connect=-1, send=1, wait=100, receive=0),
        ]
    }
    first, warm, taken = parse_phases(log)
    assert (first["handshake_ms"], first["latency_ms"], first["served_ms"]) == (100, 463, 361)
    assert (first["cold"], first["fresh"]) == (True, True)
    assert (warm["handshake_ms"], warm["latency_ms"], warm["served_ms"]) == (0, 151, 101)
    assert (warm["cold"], warm["fresh"]) == (False, False)
    # A connection that was opened for another request: new, but it was not waited for.
    assert (taken["cold"], taken["fresh"]) == (False, True)


@pytest.mark.parametrize(
    "broken_entry",
    [7, {}, {"timings": 3}, entry("1", connect="x", wait=float("nan")) | {"response": None}],
)
def test_what_is_no_exchange_is_left_out(broken_entry: object) -> None:
    assert list(parse_phases({"entries": [broken_entry]})) == []


def test_shares_are_sums_over_sums() -> None:
    frame = pd.DataFrame([exchange(100, 400, 600), exchange(100, 600), exchange(0, 1000)])
    (row,) = shares(frame).to_dict("records")
    assert row["requests"] == 3
    assert row["fresh_pct"] == pytest.approx(200 / 3)
    assert row["cold_pct"] == pytest.approx(20.0)  # 200 of 1000
    assert row["all_pct"] == pytest.approx(10.0)  # 200 of 2000
    assert (row["handshake_ms"], row["cold_ms"]) == (100, 500)


def test_without_a_har_the_browsers_own_latency_counts() -> None:
    frame = pd.DataFrame([exchange(100, 400, 600), exchange(100, float("nan"))])
    frame.loc[1, "latency_ms"] = 1000.0
    (row,) = shares(frame).to_dict("records")
    assert row["cold_pct"] == pytest.approx(10.0)  # 200 of 2000


def test_distributions_and_their_distance() -> None:
    frame = pd.DataFrame(
        [exchange(100, 400), exchange(100, 500), exchange(0, 50), exchange(0.1, 300, tfo=True)]
    )
    medians = quantiles(frame).set_index("requests")["p50_ms"].to_dict()
    assert medians == {COLD: 450.0, BARE: 350.0, ALL: 400.0, FAST: 300.0}
    # At the 10th percentile: 410 and 310 ms.
    assert largest_share_pct(without_fast_open(frame)) == pytest.approx(100 / 410 * 100)


def test_figures_and_checks_from_har_files(tmp_path: Path) -> None:
    results = results_of(tmp_path, [record(condition("amazon", 100.0, client="chromium"))])
    found = rebuild_as(results, REFERENCE)
    assert found is not None
    # In the sample's HAR a handshake is 0.30 of the request where there is one, and waits for a
    # name and a connection are 0.10 or, from the sixth request on, 0.05.
    share, distribution = found.tables
    row = dict(zip(share.columns, share.rows[0], strict=True))
    assert (row["Page"], row["RTT (ms)"], row["Requests"]) == ("amazon", 100.0, 62)
    assert row["Handshake, cold requests (%)"] == pytest.approx(33.3, abs=0.05)
    assert "as a server sees it" in share.note
    assert [line[1] for line in distribution.rows] == [COLD, BARE, ALL]
    assert [figure.name for figure in found.figures] == [
        "handshake-share", "handshake-latency-100ms",
    ]  # fmt: skip
    cold = checks_at(found, "share of the handshake in cold requests")
    assert [(check.stated, check.agreement) for check in cold] == [
        ("8 to 28 %", "differs"), ("10 to 30 %", "differs"),
    ]  # fmt: skip
    assert cold[0].why.startswith("A handshake takes")


def waiting(good: Record) -> Record:
    """A record whose client says how long connections took to open."""
    asked = (RequestTiming("http://a.test/", 200, 0.0, 400.0, 9, "1", connect_ms=100.0),
             RequestTiming("http://a.test/b", 200, 400.0, 500.0, 9, "1"))  # fmt: skip
    return replace(good, measured=replace(load_of(good), requests=asked))


def test_a_missing_har_is_made_up_for_by_the_record(tmp_path: Path) -> None:
    one = waiting(record(condition("amazon", 100.0, client="chromium")))
    results = results_of(tmp_path, [one])
    (tmp_path / "trials" / one.trial_id / "load.har").unlink()
    found = rebuild_as(results, REFERENCE)
    assert found is not None
    share = found.tables[0]
    assert share.rows == (("amazon", 100.0, 2, 50.0, 25.0, 20.0, 100.0, 400.0),)
    assert "not all loads have a HAR" in share.note
    assert check_at(found, "requests on a connection").ours == "2.00 requests"


def test_where_nothing_says_it_all_is_not_measured(tmp_path: Path) -> None:
    one = record(condition("amazon", 100.0))
    results = results_of(tmp_path, [one])
    (tmp_path / "trials" / one.trial_id / "load.har").write_text("{")
    assert set(gather_exchanges(results)[1]) == {one.trial_id}
    found = rebuild_as(results, REFERENCE)
    assert found is not None
    assert found.tables == () and found.figures == ()
    assert {check.agreement for check in found.checks} == {"not measured"}
    assert "1 proven load is left out: load.har is not the file" in found.checks[0].why
