"""Growth: plans, reports and comparisons of up to 100,000 trials, in time and in memory."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.many_records import PAGES, SEEDS, sweep, write_config, write_many
from bench.result import Result, judge
from bench.work import Work
from testbed.base import proc

LIMITS_S = {"plan": 5.0, "report": 60.0, "compare": 60.0}
LIMIT_BYTES = 2_000_000_000
SWEEPS = ((1, 1), (1, 10), (8, 13))
"""Windows and round-trip times of the sweeps: of some 1,000, 10,000 and 100,000 trials."""
RUNS = 3
_TIMEOUT_S = 600.0
_MEASURED = """
import atexit, json, resource, runpy, sys
place = sys.argv.pop(1)
@atexit.register
def say():
    used = resource.getrusage(resource.RUSAGE_SELF)
    with open(place, "w") as file:
        json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss * 1024], file)
runpy.run_module("firstflight", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True, slots=True)
class Used:
    """What one command took: wall-clock and processor time in s, and its peak of memory."""

    trials: int
    wall_s: float
    cpu_s: float
    peak_bytes: int


def measure(work: Work) -> Result:
    """Measure each verb on sweeps that grow tenfold; the largest only in full: it takes 3 GB."""
    folder, full = work.folder("growth"), work.full and not work.quick
    used: dict[str, list[Used]] = {verb: [] for verb in LIMITS_S}
    for windows, rtts in SWEEPS if full else SWEEPS[:-1]:
        runs = 1 if work.quick or (windows, rtts) == SWEEPS[-1] else RUNS
        for verb, size in _measure_size(folder / f"{windows}-{rtts}", windows, rtts, runs):
            used[verb].append(size)
    within = all(
        sizes[-1].wall_s < LIMITS_S[verb] and sizes[-1].peak_bytes < LIMIT_BYTES
        for verb, sizes in used.items()
    )
    trials = f"{used['plan'][-1].trials:,} trials"
    measured = ", ".join(
        f"{verb} {sizes[-1].wall_s:.1f} s and {sizes[-1].peak_bytes / 1e6:.0f} MB"
        for verb, sizes in used.items()
    )
    ratios = ", ".join(
        f"{verb} {sizes[-1].cpu_s / sizes[-2].cpu_s:.1f}" for verb, sizes in used.items()
    )
    limits = ", ".join(f"{verb} {limit_s:g} s" for verb, limit_s in LIMITS_S.items())
    return Result(
        name="growth", asked=f"100,000 trials: {limits}, {LIMIT_BYTES / 1e9:g} GB",
        measured=f"{trials}: {measured}", verdict=judge(within, in_full=full),
        n=1 if full or work.quick else RUNS,
        how=f"invented loads, {SEEDS} of each condition; processor time, in multiples of what "
        f"{used['plan'][-2].trials:,} take: {ratios}",
        real_time=True,
        details={verb: [asdict(size) for size in sizes] for verb, sizes in used.items()},
    )  # fmt: skip


def _measure_size(folder: Path, windows: int, rtts: int, runs: int) -> Iterator[tuple[str, Used]]:
    """Yield what each verb takes for a sweep of one size, and leave nothing behind."""
    folder.mkdir()
    cells = windows * rtts * len(PAGES) * 2
    trials = cells * SEEDS
    config, base, new = folder / "growth.toml", folder / "base", folder / "new"
    write_config(config, windows, rtts)
    yield "plan", _measure(folder, trials, runs, "plan", str(config))
    write_many(base, sweep(cells))
    yield "report", _measure(folder, trials, runs, "report", str(base))
    write_many(new, sweep(cells), another="other")
    yield "compare", _measure(folder, trials, runs, "compare", str(base), str(new))
    shutil.rmtree(folder)


def _measure(folder: Path, trials: int, runs: int, *words: str) -> Used:
    place = folder / "used.json"
    walls, cpus, peaks = [], [], []
    for _ in range(runs):
        started = time.monotonic()
        argv = (sys.executable, "-P", "-c", _MEASURED, str(place), *words)
        proc.run(argv, timeout_s=_TIMEOUT_S)
        walls.append(time.monotonic() - started)
        cpu_s, peak_bytes = json.loads(place.read_text())
        cpus.append(cpu_s)
        peaks.append(peak_bytes)
    return Used(trials, statistics.median(walls), statistics.median(cpus), max(peaks))
