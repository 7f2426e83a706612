"""The command line with a fake kernel: ``python -m tests.hallway BASE SECONDS ARGS``.

``BASE`` holds results and cache; each trial takes ``SECONDS``.  With ``HALLWAY_SLEEP`` set, every
trial also holds a process of its own (``sleep $HALLWAY_SLEEP``), as a guest would.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.records.metric import PLT, Metric
from firstflight.cli.main import main
from firstflight.cli.reports import Presented, Reports, name_comparison
from firstflight.cli.services import Services
from testbed.base import proc
from testbed.base.errors import EXIT_OK
from testbed.client import CLIENTS
from testbed.experiment.config import Catalogue
from testbed.experiment.stopping import Unsettled, all_settled
from testbed.kernel.run.interface import Kernel, RawResult
from testbed.model import Condition, Experiment, LinkSpec, Outcome, Record, TcpSpec, Trial
from testbed.results.environment import Environment
from testbed.results.folder import read_records
from testbed.runner.local import RunSetup
from tests.fake_kernel import FakeKernel, conclude

CATALOGUE = Catalogue(
    pages=frozenset({"amazon", "nytimes", "wikipedia", "wsj"}),
    clients=frozenset({"chromium", "command", "graph", "wget2"}),
    references=frozenset({"fastopen-table1"}),
    kernels={"virtual": ("7.3", "6.1")},
    honours={name: client.honours for name, client in CLIENTS.items()},
)
ENVIRONMENT = Environment({"kernel.name": "fake"}, {"amazon": "0" * 64}, {"user": "anybody"})


class SleepingKernel(FakeKernel):
    """A fake kernel whose trials hold a process."""

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
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


def make_means(kernel: Kernel, jobs: int = 1) -> RunSetup:
    """A kernel with pages that nobody reads."""
    return RunSetup(kernel, dict.fromkeys(CATALOGUE.pages, Path("page")), conclude, jobs)


class FakeReports(Reports):
    """Names and counts instead of tables, and a file where a report would be."""

    def __init__(self, list_unsettled: Unsettled, crossed: int) -> None:
        super().__init__()
        self._list_unsettled = list_unsettled
        self._crossed = crossed

    def write(self, folder: Path) -> None:
        (folder / "report.html").touch()

    def render(self, folder: Path, metric: Metric = PLT) -> str:
        return f"table of {len(read_records(folder))} records by {metric.name}"

    def compare_lanes(self, folder: Path, lanes: Sequence[str], metric: Metric = PLT) -> Presented:
        for name in lanes[1:]:
            (folder / f"{name_comparison(lanes, name)}.html").touch()
        text = f"{' and '.join(lanes)} in {folder.name}"
        return Presented(text, {"cells": []}, self._crossed)

    def draw_lanes(self, page: Path, folders: Sequence[Path]) -> str:
        page.touch()
        return f"{len(folders)} in {page.name}"

    def list_unsettled(self, experiment: Experiment, records: Sequence[Record]) -> tuple[str, ...]:
        return self._list_unsettled(experiment, records)


def make_services(
    base: Path,
    seconds: float = 0.0,
    plan: Mapping[str, Outcome] | None = None,
    environment: Environment = ENVIRONMENT,
    list_unsettled: Unsettled = all_settled,
    crossed: int = EXIT_OK,
) -> Services:
    """Services into a house without rooms: the table is the number of records."""
    kind = SleepingKernel if "HALLWAY_SLEEP" in os.environ else FakeKernel
    kernel = kind(seconds=seconds, plan=plan or {})
    return Services(
        reports=FakeReports(list_unsettled, crossed),
        catalogue=lambda: CATALOGUE,
        prepare=lambda _experiment, jobs: (make_means(kernel, jobs), environment),
        prepare_from=lambda _pages, _roots: (
            lambda _experiment, jobs: (
                make_means(kernel, jobs),
                environment,
            )
        ),
        check_determinism=lambda *_asked: (),
        conclude=conclude,
        digest_judge=lambda: "fake",
        results=base / "results",
        baselines=base / "baselines",
        cache=lambda: base / "cache",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[3:], make_services(Path(sys.argv[1]), float(sys.argv[2]))))
