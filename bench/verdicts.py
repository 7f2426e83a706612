"""Verdicts of ``kernel try``: what it says of patches that do nothing, and of planted regressions.

The patches are of the tests, `wings/kernels/tests/changes`: of the pinned kernel, each tried by the
command that a user types.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.result import Result, judge
from bench.work import Work
from testbed.base import places, proc
from testbed.base.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_OUT_OF_TOLERANCE, TestbedError
from wings.kernels.verdicts.changes import TriedChange, read_changes

CHANGES = places.ROOT / "wings" / "kernels" / "tests" / "changes"
LEAST_PCT = 2.0
"""A planted regression of so much in some cell must be found."""
MOST_FALSE = 1
A_FEW = 2
TIMEOUT_S = 7200.0


def measure_false_alarms(work: Work) -> Result:
    """Try patches that do nothing."""
    tried, of = _try(work, "noops")
    false = sum(max(each.moved, each.found) for each in tried)
    cells = sum(sum(each.counts.values()) for each in tried)
    return Result(
        "false-alarms", f"at most {MOST_FALSE} of {of} patches' cells",
        f"{false} of {cells} cells; {sum(e.found for e in tried)} of {len(tried)} patches",
        judge(false <= MOST_FALSE, in_full=len(tried) == of), len(tried),
        "`kernel try` of comments, unused fields, functions elsewhere, other optimisation",
        details=_describe(tried),
    )  # fmt: skip


def measure_plants(work: Work) -> Result:
    """Try planted regressions."""
    tried, of = _try(work, "plants")
    large = [each for each in tried if abs(each.extreme_pct) >= LEAST_PCT]
    found = sum(each.found for each in large)
    return Result(
        "planted-regressions", f"all of {LEAST_PCT:g} % or more in some cell",
        f"{found} of {len(large)}; of {len(tried)} planted {sum(e.found for e in tried)} found",
        judge(found == len(large), in_full=len(tried) == of), len(tried),
        "`kernel try` of slow start, recovery, probes, time-outs and acknowledgements made worse",
        details=_describe(tried),
    )  # fmt: skip


def _try(work: Work, kind: str) -> tuple[list[TriedChange], int]:
    """Try the patches of ``kind``, a few of them unless all are asked for, and say how many are."""
    patches = sorted((CHANGES / kind).glob("*.patch"))
    chosen: Sequence[Path] = patches if work.full and not work.quick else patches[:A_FEW]
    place = work.folder(f"verdicts-{kind}")
    argv = [
        *(sys.executable, "-P", "-m", "firstflight", "kernel", "try", *map(str, chosen), "--each"),
        *("--name", kind, "--fail-on", "none", "-o", str(place / "results")),
    ]
    # Definitions are not the user's; builds and results stay in the cache.
    environment = {**os.environ, "XDG_DATA_HOME": str(place),
                   "PYTHONPATH": str(places.ROOT)}  # fmt: skip
    completed = proc.run(argv, timeout_s=TIMEOUT_S, cwd=places.ROOT, env=environment,
                         check=False)  # fmt: skip
    if completed.returncode not in (EXIT_OK, EXIT_OUT_OF_TOLERANCE, EXIT_INCOMPLETE):
        said = completed.stderr.strip()[-800:]
        raise TestbedError(f"kernel try of {kind} ended with {completed.returncode}: {said}")
    return read_changes(place / "results"), len(patches)


def _describe(tried: Sequence[TriedChange]) -> dict[str, Any]:
    return {
        each.name: {"moved": each.moved, "extreme_pct": each.extreme_pct, "answer": each.answer}
        for each in tried
    }  # fmt: skip
