from __future__ import annotations

from pathlib import Path

from analysis.report.publications import Rebuilt
from testbed.model import Record
from tests.analysis.sample import broken, record
from wings.papers.publications import rebuild_as
from wings.papers.published.reference import read_reference
from wings.papers.tests.reproductions.sweeps import check_at, checks_at, condition, results_of

REFERENCE = read_reference("tum-website")
ARMS = ((False, 4), (True, 4), (False, 10), (True, 10))


def loads(rtt_ms: float, *times_ms: float, seed: int = 0) -> list[Record]:
    """One load for each of ARMS."""
    return [
        record(condition("tum-website", rtt_ms, tfo=tfo, initcwnd_segments=window, down_kbit=10000),
               seed, plt_ms) for (tfo, window), plt_ms in zip(ARMS, times_ms, strict=True)
    ]  # fmt: skip


def rebuilt(folder: Path, records: list[Record]) -> Rebuilt:
    found = rebuild_as(results_of(folder, records), REFERENCE)
    assert found is not None
    return found


def test_both_figures_in_one_table(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, loads(100.0, 1000.0, 900.0, 850.0, 760.0))
    (grid,) = found.tables
    assert grid.columns == ("RTT (ms)", "no Fast Open, window 4 (s)", "no Fast Open, window 10 (s)",
                            "Fast Open, window 4 (s)", "Fast Open, window 10 (s)",
                            "Improvement: no Fast Open, window 10 (%)",
                            "Improvement: Fast Open, window 4 (%)",
                            "Improvement: Fast Open, window 10 (%)")  # fmt: skip
    assert grid.rows == ((100.0, 1.0, 0.85, 0.9, 0.76, 15.0, 10.0, 24.0),)
    assert [figure.name for figure in found.figures] == ["website-duration", "website-improvement"]


def test_stated_ranges_hold_above_50_ms_only(tmp_path: Path) -> None:
    records = [*loads(20.0, 1000.0, 990.0, 980.0, 970.0),
               *loads(100.0, 1000.0, 900.0, 850.0, 760.0),
               *loads(200.0, 1000.0, 880.0, 780.0, 670.0)]  # fmt: skip
    found = rebuilt(tmp_path, records)
    tfo, window, both = checks_at(found, "RTT above 50 ms")
    assert (tfo.stated, tfo.ours, tfo.agreement) == ("5 to 20 %", "10.0 to 12.0 %", "agrees")
    assert (window.ours, window.agreement) == ("15.0 to 22.0 %", "differs")
    assert window.why.startswith(
        "At 200 ms it saves 1.1 round trips of 5.0 that the load takes without it."
    )
    assert (both.stated, both.agreement) == ("15 to 35 %", "agrees")
    assert [check.agreement for check in checks_at(found, "all RTTs")] == [
        "differs", "differs", "agrees",
    ]  # fmt: skip


def test_order_growth_and_sum(tmp_path: Path) -> None:
    records = [
        *loads(100.0, 1000.0, 900.0, 850.0, 760.0),  # 24 of 25 %
        *loads(200.0, 1000.0, 880.0, 790.0, 800.0),  # 20 of 33 %, and both are not the fastest
    ]
    found = rebuilt(tmp_path, records)
    assert check_at(found, "in the middle").ours == "in 1 of 2; not in RTT 200 ms"
    assert check_at(found, "almost the sum").ours == "in 1 of 2; not in RTT 200 ms (20.0 of 33.0 %)"
    growth = check_at(found, "the larger the improvement")
    assert growth.ours == "in 2 of 3; not in both (24.0 % at 100 ms, 20.0 % at 200 ms)"


def test_arms_are_compared_run_by_run(tmp_path: Path) -> None:
    first, second = (
        loads(100.0, *times, seed=seed)
        for seed, times in enumerate(((1000.0, 900.0, 1.0, 1.0), (2000.0, 1000.0, 1.0, 1.0)))
    )
    records = [*first, *second]
    records[4] = broken(records[4], "timeout")  # the second run has no base
    (grid,) = rebuilt(tmp_path, records).tables
    # 10 % from the first run alone; the load time's median is over both, (0.9 + 1.0) / 2.
    row = dict(zip(grid.columns, grid.rows[0], strict=True))
    assert row["Improvement: Fast Open, window 4 (%)"] == 10.0
    assert row["Fast Open, window 4 (s)"] == 0.95


def test_without_the_base_there_is_no_improvement(tmp_path: Path) -> None:
    records = loads(100.0, 1000.0, 900.0, 850.0, 760.0)
    records[0] = broken(records[0], "timeout")
    found = rebuilt(tmp_path, records)
    assert [figure.name for figure in found.figures] == ["website-duration"]
    assert "1 of 4 cells has no proven load" in found.tables[0].note
    assert {check.agreement for check in found.checks} == {"not measured"}
