"""The report of a thousand records."""

from __future__ import annotations

import statistics
import time

from analysis.report import write_reports
from bench.result import Result, judge
from bench.work import Work
from tests.analysis.sample import conditions, write_sample

LIMIT_S = 5.0
RECORDS = 1000
RUNS = 3


def measure(work: Work) -> Result:
    """Table, summary and report of a results folder with at least ``RECORDS`` records."""
    cells = len(conditions())
    seeds = -(-RECORDS // cells) + 1  # the sample leaves one trial without a record
    folder = write_sample(work.folder("report") / "results", seeds)
    runs = []
    for _ in range(1 if work.quick else RUNS):
        started = time.monotonic()
        write_reports(folder)
        runs.append(time.monotonic() - started)
    median = statistics.median(runs)
    size = (folder / "report.html").stat().st_size
    return Result(
        name="report",
        asked=f"{RECORDS} records under {LIMIT_S:g} s",
        measured=f"{median:.2f} s",
        verdict=judge(median < LIMIT_S),
        n=len(runs),
        how=f"median; table, summary and report ({size / 1e6:.1f} MB) of "
        f"{cells * seeds - 1} invented records",
        real_time=True,
        details={"runs_s": runs, "report_bytes": size},
    )
