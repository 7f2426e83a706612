"""Table 1 of the paper by the command that a user types: wall-clock, CPU and virtual seconds."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.result import Result, judge
from bench.work import Work
from testbed.base import places, proc
from testbed.base.errors import EXIT_INCOMPLETE, EXIT_OK, TestbedError
from testbed.model import Record
from testbed.results.records import RECORDS_FILE, read_records

CELLS = 24
DEFAULT_SEEDS = 5
SEEDS = 20
# A third of the table, where --quick was asked: its time is scaled up, and the table says so.
QUICK_ONLY = "rtt_ms=100"
QUICK_CELLS = 8


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One command from its start to its end, and the records that it left."""

    wall_s: float
    records: tuple[Record, ...]

    @property
    def ok(self) -> int:
        """Trials that ended as they should."""
        return sum(1 for record in self.records if record.outcome == "ok")


def measure_chromium(work: Work) -> Result:
    """Measure 24 cells with the browser."""
    return _measure_cells(work, "table1-chromium", "chromium", 120.0)


def measure_default(work: Work) -> Result:
    """Measure `./run.sh` without arguments: 24 cells of six seeds."""
    return _measure_cells(work, "table1-default", "chromium", 150.0, DEFAULT_SEEDS)


def measure_graph(work: Work) -> Result:
    """Measure 24 cells with the graph client."""
    return _measure_cells(work, "table1-graph", "graph", 45.0)


def measure_seeds(work: Work) -> Result:
    """Measure 480 loads with ``--full``; otherwise extrapolate from one seed."""
    name, limit_s = "table1-chromium-n20", 1200.0
    target = f"{CELLS * SEEDS} loads under {limit_s / 60:g} min"
    if work.full and not work.quick:
        run = run_table(work.folder(name), "chromium", ("-n", str(SEEDS)))
        complete = run.ok == CELLS * SEEDS
        return Result(name, target, f"{run.wall_s / 60:.1f} min; {run.ok} of {len(run.records)} ok",
                      judge(complete and run.wall_s < limit_s), SEEDS,
                      f"`run -n {SEEDS}`, start of Python and report included", real_time=True,
                      details=describe(run))  # fmt: skip
    run, scale = _run_cells(work, name, "chromium", 1)
    wall_s = run.wall_s * scale * SEEDS
    return Result(
        name, target, f"about {wall_s / 60:.1f} min, extrapolated", "reported", 1,
        f"{len(run.records)} loads of one seed took {run.wall_s:.1f} s; "
        f"times {scale * SEEDS:g}, as loads are independent. --full measures",
        real_time=True, details=describe(run),
    )  # fmt: skip


def _measure_cells(work: Work, name: str, client: str, limit_s: float, seeds: int = 1) -> Result:
    run, scale = _run_cells(work, name, client, seeds)
    wall_s = run.wall_s * scale
    complete = run.ok == len(run.records) == CELLS * seeds / scale
    costs = describe(run)
    share = "" if scale == 1 else f"; only {QUICK_ONLY}, scaled from {len(run.records)} loads"
    return Result(
        name, f"{f'{CELLS} cells' if seeds == 1 else f'{CELLS * seeds} loads'} under {limit_s:g} s",
        f"{wall_s:.1f} s; {run.ok} of {len(run.records)} ok; CPU s a trial: "
        f"median {costs['cpu_s_median']:.2f}, most {costs['cpu_s_max']:.2f}; "
        f"{costs['virtual_s_per_wall_s']:.1f} virtual s a wall s",
        judge(complete and wall_s < limit_s, in_full=scale == 1),
        seeds, f"`run` on {work.machine.cores} cores, start of Python and report included{share}",
        real_time=True, details={**costs, "wall_s_of_24": wall_s},
    )  # fmt: skip


def _run_cells(work: Work, name: str, client: str, seeds: int) -> tuple[TimedRun, float]:
    """Return the run, and by what its time has to be multiplied to stand for all cells."""
    if not work.quick:
        return run_table(work.folder(name), client, ("-n", str(seeds))), 1.0
    quick = ("-n", str(seeds), "--only", QUICK_ONLY)
    return run_table(work.folder(name), client, quick), CELLS / QUICK_CELLS


def run_table(folder: Path, client: str, options: Sequence[str]) -> TimedRun:
    """Run the default experiment as a user does, into ``folder``; see ``run_config``."""
    return run_config(places.DEFAULT_CONFIG, folder, ("--client", client, *options))


def run_config(config: Path, folder: Path, options: Sequence[str]) -> TimedRun:
    """Run the experiment in ``config`` as a user does, into ``folder`` or its lanes.

    Raises:
        TestbedError: the command itself failed; trials that did not end well are no failure.
    """
    argv = (
        *(sys.executable, "-P", "-m", "firstflight", "run", str(config)),
        *("--no-store", "-o", str(folder)),
    )
    started = time.monotonic()
    completed = proc.run((*argv, *options), timeout_s=2 * 3600, cwd=places.ROOT,
                         env={**os.environ, "PYTHONPATH": str(places.ROOT)},
                         check=False)  # fmt: skip
    wall_s = time.monotonic() - started
    if completed.returncode not in (EXIT_OK, EXIT_INCOMPLETE):
        raise TestbedError(
            f"`{' '.join(argv)}` ended with {completed.returncode}: {completed.stderr[-2000:]}"
        )
    folders = sorted(path.parent for path in folder.rglob(RECORDS_FILE))
    return TimedRun(wall_s, tuple(record for lane in folders for record in read_records(lane)))


def describe(run: TimedRun) -> dict[str, float]:
    """Return the costs of a run, of the trials that have any.

    Raises:
        TestbedError: no trial of the run has a cost.
    """
    costs = [record.cost for record in run.records if record.cost is not None]
    if not costs:
        raise TestbedError("no trial of the run ended, so there is no cost to report")
    cpu_s = [cost.cpu_s for cost in costs]
    virtual_s = sum(cost.virtual_s for cost in costs)
    return {"trials": len(run.records), "ok": run.ok, "wall_s": run.wall_s,
            "cpu_s_median": statistics.median(cpu_s), "cpu_s_mean": statistics.mean(cpu_s),
            "cpu_s_max": max(cpu_s), "virtual_s": virtual_s,
            "virtual_s_per_wall_s": virtual_s / run.wall_s}  # fmt: skip
