"""Report of a thousand records, as many loads of few conditions and as loads of many."""

from __future__ import annotations

import statistics
import sys
import time
from itertools import product
from pathlib import Path

from bench.result import Result, judge
from bench.work import Work
from testbed.base import proc
from testbed.model import Condition, LinkSpec, TcpSpec
from tests.analysis.sample import PAGES, conditions, experiment, record, write_results, write_sample

LIMIT_S = 5.0
RECORDS = 1000
RUNS = 5
_TIMEOUT_S = 300.0


def measure(work: Work) -> Result:
    """Measure ``report`` of two results folders, each with at least ``RECORDS`` records."""
    folder = work.folder("report")
    seeds = -(-RECORDS // len(conditions())) + 1  # the sample leaves one trial without a record
    folders = {
        f"{seeds} loads of {len(conditions())} conditions": write_sample(folder / "few", seeds),
        f"one load of {len(_sweep())} conditions": _write_sweep(folder / "many"),
    }
    runs = {
        name: [_measure_once(results) for _ in range(1 if work.quick else RUNS)]
        for name, results in folders.items()
    }
    medians = {name: statistics.median(times) for name, times in runs.items()}
    sizes = {name: (results / "report.html").stat().st_size for name, results in folders.items()}
    return Result(
        name="report",
        asked=f"{RECORDS} records under {LIMIT_S:g} s",
        measured=" and ".join(f"{median:.2f} s" for median in medians.values()),
        verdict=judge(max(medians.values()) < LIMIT_S),
        n=min(len(times) for times in runs.values()),
        how="medians; from the start of `report` to its end, of invented records: "
        + ", ".join(f"{name} ({sizes[name] / 1e6:.1f} MB)" for name in folders),
        real_time=True,
        details={"runs_s": runs, "report_bytes": sizes},
    )


def _measure_once(folder: Path) -> float:
    argv = (sys.executable, "-P", "-m", "firstflight", "report", str(folder))
    started = time.monotonic()
    proc.run(argv, timeout_s=_TIMEOUT_S)
    return time.monotonic() - started


def _sweep() -> tuple[Condition, ...]:
    """Return a condition for each record: pages, RTTs, windows, reuse, and both arms."""
    rtts, windows, reuse = (10.0, 20.0, 50.0, 100.0, 200.0), (2, 4, 10, 16, 20), (1, 2, 6, 20, None)
    return tuple(
        Condition(page, "graph", LinkSpec(rtt_ms=rtt),
                  TcpSpec(tfo=tfo, initcwnd_segments=window, requests_per_connection=most))
        for page, rtt, window, most, tfo in product(PAGES, rtts, windows, reuse, (False, True))
    )  # fmt: skip


def _write_sweep(folder: Path) -> Path:
    sweep = experiment(1, name="sweep", title="A sweep", conditions=_sweep(), reference=None)
    return write_results(folder, map(record, sweep.conditions_as(Condition)), sweep)
