"""The command line with a fake kernel: ``python -m tests.hallway BASE SECONDS ARGS``.

``BASE`` holds results and cache; each trial takes ``SECONDS``.  With ``HALLWAY_SLEEP`` set, every
trial also holds a process of its own (``sleep $HALLWAY_SLEEP``), as a guest would.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

from firstflight.cli.main import main
from firstflight.regression import open_regression
from testbed.base import proc
from testbed.base.errors import EXIT_INCONCLUSIVE, EXIT_OK
from testbed.doors import Analysis, Compared, Comparing, Doors
from testbed.experiment.config import Catalogue
from testbed.experiment.stopping import Unsettled, all_settled
from testbed.kernel.fake import FakeKernel, conclude
from testbed.kernel.protocol import Kernel, RawResult
from testbed.model import Condition, Experiment, LinkSpec, Outcome, TcpSpec, Trial
from testbed.results.environment import Environment
from testbed.results.store import read_records
from testbed.run import Means

CATALOGUE = Catalogue(
    pages=frozenset({"amazon", "nytimes", "wikipedia", "wsj"}),
    clients=frozenset({"chromium", "graph", "wget2"}),
    references=frozenset({"fastopen-table1"}),
    kernels={"virtual": ("7.3", "6.1")},
)
ENVIRONMENT = Environment({"kernel.name": "fake"}, {"amazon": "0" * 64}, {"user": "anybody"})


class SleepingKernel(FakeKernel):
    """A fake kernel whose trials hold a process."""

    def run(
        self, trial: Trial, page: Path, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        with proc.started(["sleep", os.environ["HALLWAY_SLEEP"]]):
            return FakeKernel.run(self, trial, page, out, slot, cancel)


def make_experiment(repetitions: int = 1) -> Experiment:
    """Two pages at two round-trip times, with and without Fast Open: 8 conditions."""
    conditions = tuple(
        Condition(page, "graph", LinkSpec(rtt_ms=rtt_ms), TcpSpec(tfo=tfo))
        for page in ("amazon", "wsj")
        for rtt_ms in (20.0, 100.0)
        for tfo in (False, True)
    )
    return Experiment("small", "A small experiment", conditions, repetitions)


def make_means(kernel: Kernel, jobs: int = 1) -> Means:
    """A kernel with pages that nobody reads."""
    return Means(kernel, dict.fromkeys(CATALOGUE.pages, Path("page")), conclude, jobs)


def cross_check(one: Path, other: Path, into: Path, exit_code: int) -> Compared:
    """Names instead of numbers, and a file where a cross-check would leave one."""
    (into / "crosscheck.html").touch()
    return Compared(f"{one.name} and {other.name} in {into.name}", {"cells": []}, exit_code)


def compare(base: Path, new: Path, asked: Comparing) -> Compared:
    """What was asked, instead of what was found."""
    told = f"{base.name} and {new.name} across {', '.join(asked.across) or 'nothing'}"
    document = {name: str(v) if isinstance(v, Path) else v for name, v in asdict(asked).items()}
    return Compared(told, document, EXIT_INCONCLUSIVE)


def make_doors(
    base: Path,
    seconds: float = 0.0,
    plan: Mapping[str, Outcome] | None = None,
    environment: Environment = ENVIRONMENT,
    list_unsettled: Unsettled = all_settled,
    crossed: int = EXIT_OK,
) -> Doors:
    """Doors into a house without rooms: the table is the number of records."""
    kind = SleepingKernel if "HALLWAY_SLEEP" in os.environ else FakeKernel
    kernel = kind(seconds=seconds, plan=plan or {})
    return Doors(
        analysis=Analysis(
            lambda folder: (folder / "report.html").touch(),
            lambda folder: f"table of {len(read_records(folder))} records",
            list_unsettled,
            partial(cross_check, exit_code=crossed),
            regression=open_regression(),
            compare=compare,
        ),
        catalogue=lambda: CATALOGUE,
        prepare=lambda _experiment, jobs: (make_means(kernel, jobs), environment),
        check_determinism=lambda *_asked: (),
        results=base / "results",
        baselines=base / "baselines",
        cache=lambda: base / "cache",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[3:], make_doors(Path(sys.argv[1]), float(sys.argv[2]))))
