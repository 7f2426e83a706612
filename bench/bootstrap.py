"""Time that ``./run.sh`` takes before it does what was asked: again, and on a fresh cache."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from bench.result import Result, judge
from bench.work import Work
from testbed.base import places, proc

AGAIN_S = 3.0
AGAIN_RUNS = 5
FRESH_S = 600.0
FRESH_TIMEOUT_S = 3600.0


def measure_again(work: Work) -> Result:
    """Measure a second run, with everything in the cache."""
    _time(places.ROOT, ("--help",), os.environ, 600.0)
    runs = [_time(places.ROOT, ("--help",), os.environ, 600.0) for _ in range(AGAIN_RUNS)]
    median = statistics.median(runs)
    return Result(name="bootstrap-again", asked=f"under {AGAIN_S:g} s",
                  measured=f"{median:.2f} s (from {min(runs):.2f} to {max(runs):.2f})",
                  verdict=judge(median < AGAIN_S), n=len(runs),
                  how="median of `./run.sh --help` when everything is built", real_time=True,
                  details={"runs_s": runs})  # fmt: skip


def measure_fresh(work: Work) -> Result:
    """Measure a first run, only with ``--fresh``: a clone, an empty cache, everything built."""
    target = f"under {FRESH_S / 60:g} min"
    if not work.fresh:
        return Result("bootstrap-fresh", target, "not measured", "reported", 0, "--fresh measures",
                      real_time=True)  # fmt: skip
    folder = work.folder("fresh")
    clone = folder / "clone"
    proc.run(("git", "clone", "--quiet", "--no-hardlinks", str(places.ROOT), str(clone)))
    environment = fresh_environment(os.environ, folder)
    wall_s = _time(clone, ("run", "configs/quick.toml"), environment, FRESH_TIMEOUT_S)
    return Result(
        name="bootstrap-fresh", asked=target, measured=f"{wall_s / 60:.1f} min",
        verdict=judge(wall_s < FRESH_S), n=1,
        how="`./run.sh run configs/quick.toml` in a clone of the last commit with an empty cache: "
        "Python, root, toolchain, C programs and kernel, downloads included",
        real_time=True, details={"wall_s": wall_s},
    )  # fmt: skip


def fresh_environment(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return ``environment`` without the variables of bootstrap, and with a cache in ``folder``."""
    removed = ("PYTHONPATH", "XDG_CACHE_HOME")
    cleaned = {
        name: value
        for name, value in environment.items()
        if name not in removed and not name.startswith("FIRSTFLIGHT_")
    }
    return {**cleaned, "XDG_CACHE_HOME": str(folder / "cache")}


def _time(
    root: Path, arguments: tuple[str, ...], environment: Mapping[str, str], timeout_s: float
) -> float:
    """Return the wall seconds of ``./run.sh ARGUMENTS``.

    Raises:
        CommandError: it failed.
    """
    started = time.monotonic()
    proc.run((str(root / "run.sh"), *arguments), cwd=root, env=environment, timeout_s=timeout_s)
    return time.monotonic() - started
