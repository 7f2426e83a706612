"""Published sweeps without a browser, and the notebooks that show them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from bench.result import Result, judge
from bench.table1 import run_config
from bench.work import Work
from testbed.base import places, proc

SWEEPS = ("tum-initcwnd", "tum-website", "reuse-initcwnd", "cs244-reuse", "kernel-cross")
LIMIT_S = 900.0
# With --quick or without --full: one run of the twelve, whose number is that of the config's loads.
ONE_OF_TWELVE = ("-n", "1")
TWELVE = 12
NOTEBOOKS = "wings/papers/tests/notebooks/test_notebooks.py"
NOTEBOOKS_LIMIT_S = 180.0


def measure(work: Work) -> Result:
    """Measure all sweeps by the command that a user types, one after the other."""
    full = work.full and not work.quick
    walls: dict[str, float] = {}
    loads = proven = 0
    for name in SWEEPS:
        repeated = name == "cs244-reuse" and not full
        options = ONE_OF_TWELVE if repeated else ()
        config = places.CONFIGS / f"{name}.toml"
        run = run_config(config, work.folder("sweeps") / name, options)
        walls[name] = run.wall_s * (TWELVE if repeated else 1)
        loads += len(run.records)
        proven += run.ok
    whole_s = sum(walls.values())
    scaled = "" if full else "; cs244-reuse: one run of its twelve, times twelve; --full measures"
    return Result(
        "sweeps", f"under {LIMIT_S / 60:g} min", f"{whole_s / 60:.1f} min; {proven} of {loads} ok",
        judge(proven == loads and whole_s < LIMIT_S, in_full=full),
        1, f"`run` of {', '.join(SWEEPS)} on {work.machine.cores} cores, reports included{scaled}",
        real_time=True, details={"wall_s": walls},
    )  # fmt: skip


def measure_notebooks(work: Work) -> Result:
    """Measure the tests that execute every notebook on the samples."""
    del work  # it needs no folder, and --quick changes nothing
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", NOTEBOOKS)
    started = time.monotonic()
    completed = proc.run(argv, timeout_s=2 * NOTEBOOKS_LIMIT_S, cwd=places.ROOT, check=False)
    wall_s = time.monotonic() - started
    return Result("notebooks", f"under {NOTEBOOKS_LIMIT_S / 60:g} min",
                  f"{wall_s:.1f} s{'' if completed.returncode == 0 else '; a notebook failed'}",
                  judge(completed.returncode == 0 and wall_s < NOTEBOOKS_LIMIT_S),
                  len(list(Path(places.ROOT, "wings", "papers", "notebooks").glob("*.ipynb"))),
                  "every notebook executed on the samples, as the tests do it",
                  real_time=True)  # fmt: skip
