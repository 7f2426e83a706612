from __future__ import annotations

from pathlib import Path

from analysis.report.publications import Rebuilt
from testbed.model import Record
from tests.analysis.sample import broken, record
from wings.papers.publications import rebuild_as
from wings.papers.published.reference import read_reference
from wings.papers.tests.reproductions.sweeps import check_at, condition, results_of

REFERENCE = read_reference("cs244-reuse")


def runs(
    page: str, reuse: int, off_ms: tuple[float, ...], on_ms: tuple[float, ...]
) -> list[Record]:
    return [record(condition(page, 100.0, tfo=tfo, requests_per_connection=reuse), seed, plt_ms)
            for tfo, times in ((False, off_ms), (True, on_ms))
            for seed, plt_ms in enumerate(times)]  # fmt: skip


def rebuilt(folder: Path, records: list[Record]) -> Rebuilt:
    found = rebuild_as(results_of(folder, records), REFERENCE)
    assert found is not None
    return found


def test_a_table_for_each_number_of_resources_with_means(tmp_path: Path) -> None:
    records = [*runs("amazon", 100, (2000.0,), (1900.0,)),
               *runs("amazon", 1, (3000.0, 3200.0), (2400.0, 2560.0)),
               *runs("amazon", 2, (2500.0, 2500.0), (2200.0, 2300.0))]  # fmt: skip
    found = rebuilt(tmp_path, records)
    assert [grid.title for grid in found.tables] == [
        "Results with 2 resources per connection",
        "Results with 1 resource per connection",
        "Results with 100 resources per connection",
    ]
    assert found.tables[0].rows == (("amazon", 100.0, 2, 2.5, 2.25, 10.0, 20),)
    assert found.tables[1].rows == (("amazon", 100.0, 2, 3.1, 2.48, 20.0, 20),)
    assert found.files["table_results.csv"] == (
        "resources_per_connection,page,rtt_ms,runs,plt_without_tfo_s,plt_with_tfo_s,"
        "improvement_pct\n"
        "2,amazon,100,2,2.5,2.25,10\n"
        "1,amazon,100,2,3.1,2.48,20\n"
        "100,amazon,100,1,2,1.9,5\n"
    )
    assert [figure.name for figure in found.figures] == ["cs244-improvement"]
    assert check_at(found, "more connections are needed").ours == "in 1 of 1"
    assert check_at(found, "runs of each cell").agreement == "differs"


def test_the_row_that_breaks_the_sentence_is_named(tmp_path: Path) -> None:
    records = [*runs("amazon", 1, (3000.0,), (2700.0,)), *runs("amazon", 100, (2000.0,), (1700.0,)),
               *runs("wsj", 1, (3000.0,), (2700.0,)),
               *runs("wsj", 100, (2000.0,), (2020.0,))]  # fmt: skip
    found = rebuilt(tmp_path, records)
    reuse = check_at(found, "more connections are needed")
    assert reuse.agreement == "differs"
    assert reuse.ours == (
        "in 1 of 2; not in amazon, 100 ms "
        "(10.0 % at 1 with 20 connections, 15.0 % at 100 with 20 connections)"
    )
    helps = check_at(found, "improves page load time")
    assert helps.ours == "in 3 of 4; not in wsj, 100 ms at 100 (\u22121.0 %)"


def test_arms_share_their_runs_and_a_lone_arm_has_no_improvement(tmp_path: Path) -> None:
    records = [*runs("amazon", 1, (1000.0, 9000.0), (900.0, 9000.0)),
               *runs("amazon", 2, (2000.0,), (1.0,))]  # fmt: skip
    records[3] = broken(records[3], "unproven")
    records[5] = broken(records[5], "timeout")
    found = rebuilt(tmp_path, records)
    two, one = found.tables
    assert one.rows == (("amazon", 100.0, 1, 1.0, 0.9, 10.0, 20),)
    assert two.rows == (("amazon", 100.0, 0, 2.0, None, None, 20),)
    assert "1 of 4 cells has no proven load" in two.note
    assert "2,amazon,100,0,2,," in found.files["table_results.csv"]


def test_the_server_kept_to_the_limit(tmp_path: Path) -> None:
    # The sample's records say that at most 3 requests came on one connection.
    records = [*runs("wsj", 100, (2000.0,), (1900.0,)), *runs("wsj", 1, (2000.0,), (1900.0,))]
    found = rebuilt(tmp_path, records)
    assert check_at(found, "more than 100 resources").ours == "in 1 of 1"
    assert check_at(found, "more than 1 resource").ours == "in 0 of 1; not in wsj, 100 ms: 3"
    assert check_at(found, "more than 2 resources").agreement == "not measured"


def test_another_swept_knob_is_never_averaged_in(tmp_path: Path) -> None:
    records = [record(condition("wsj", 20.0, tfo=tfo, requests_per_connection=2, client=client), 0,
                      plt) for client, plt in (("graph", 1000.0), ("wget2", 2000.0))
               for tfo in (False, True)]  # fmt: skip
    (grid,) = rebuilt(tmp_path, records).tables
    assert [row[0] for row in grid.rows] == ["wsj, client graph", "wsj, client wget2"]
    assert [row[3] for row in grid.rows] == [1.0, 2.0]
