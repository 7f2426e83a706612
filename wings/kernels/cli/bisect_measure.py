"""Measure of a bisection: what tells a bad kernel from a good one, loads, promises or tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from analysis.records.metric import PLT, Metric
from analysis.verdicts.compare.comparison import CellFinding
from firstflight.cli.choice import Choice
from firstflight.cli.new_run import run_new
from firstflight.cli.services import Services
from testbed.base import log, places
from testbed.base.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_OK,
    EXIT_OUT_OF_TOLERANCE,
    TrialError,
)
from testbed.experiment.options import Override, select
from testbed.kernel.run.interface import InterruptedTrial
from testbed.model import Experiment
from wings.kernels.bisection import Judgement
from wings.kernels.selftests.packetdrill import Packetdrill
from wings.kernels.selftests.plan import Wish
from wings.kernels.selftests.prepared import prepare_selftests, read_verdicts
from wings.kernels.verdicts.table import FailRule, attribute, came_to
from wings.kernels.verdicts.terminal import name_row, summary
from wings.scenarios.analysis.promises import SETTLED, read_promises
from wings.scenarios.choice import plan_lanes
from wings.scenarios.spec import Scenario

MOST_CELLS = 6
"""So many cells tell a bad commit from a good one."""
_log = log.logger(__name__)
_COUNTS = (EXIT_OK, EXIT_OUT_OF_TOLERANCE, EXIT_INCONCLUSIVE)
_JUDGEMENTS: dict[int, Judgement] = {EXIT_OK: "good", EXIT_OUT_OF_TOLERANCE: "bad"}


class Measure(Protocol):
    """What runs on each commit's kernel, and how it is held against the good one's."""

    def run(self, version: str, folder: Path) -> bool:
        """Run it on the kernel ``version``; results go to the new ``folder``.

        Returns whether it came to its end, as it does not on a kernel that it breaks.

        Raises:
            InterruptedTrial: the user has stopped it.
            TestbedError: it cannot be run there, or what it comes to does not count.
        """

    def judge(self, good: Path, folder: Path) -> Judgement:
        """Return what the results in ``folder`` are beside those in ``good``.

        Raises:
            TestbedError: they cannot be compared.
        """


@dataclass(frozen=True, slots=True)
class _Trials:
    """How experiments run here."""

    services: Services
    no_store: bool

    def _run(self, planned: Experiment, folder: Path, metric: Metric) -> bool:
        run = run_new(self.services, (planned,), folder, metric=metric, no_store=self.no_store,
                      copies=False)  # fmt: skip
        if run.interrupted:
            raise InterruptedTrial("interrupted")
        run.say_tallies()
        return run.tallies[0].exit_code in _COUNTS


@dataclass(frozen=True, slots=True)
class CellMeasure(_Trials):
    """Page loads: bad is a kernel on which a cell fails by ``rule``."""

    choice: Choice
    rule: FailRule
    metric: Metric
    cells: tuple[str, ...] = ()
    """Of all cells those that are loaded, as ``--only`` has each; none: all."""

    def run(self, version: str, folder: Path) -> bool:
        """Load the cells."""
        fixed = [Override("kernel.version", version, f"the kernel {version}")]
        planned = self.choice.load(self.services.catalogue(), fixed)
        if self.cells:
            chosen = [c for only in self.cells for c in select(planned, only).conditions]
            planned = replace(planned, conditions=tuple(dict.fromkeys(chosen)))
        return self._run(planned, folder, self.metric)

    def narrow(self, good: Path, bad: Path) -> CellMeasure:
        """Return the measure by few of the cells that fail on the bad kernel: exact ones first.

        Where they fail only together, all are loaded.
        """
        attribution = attribute(good, bad, metric=self.metric)
        failing = [cell for cell in attribution.lanes[0].cells if self.rule.flags(cell)]
        by_weight = sorted(failing, key=_weight)[:MOST_CELLS]
        names = [name_row(attribution, cell).replace(" ", ",") for cell in by_weight]
        return replace(self, cells=tuple(names))

    def judge(self, good: Path, folder: Path) -> Judgement:
        """Attribute what differs."""
        attribution = attribute(good, folder, metric=self.metric)
        for line in summary(attribution, self.rule):
            _log.info("%s", line)
        return _JUDGEMENTS.get(attribution.exit_code(self.rule), "skip")


@dataclass(frozen=True, slots=True)
class PromiseMeasure(_Trials):
    """Scenarios: bad is a kernel on which one comes out in another way than on the good one."""

    scenarios: tuple[Scenario, ...]

    def run(self, version: str, folder: Path) -> bool:
        """Perform all scenarios."""
        catalogue = self.services.catalogue()
        (lane,) = plan_lanes(self.scenarios, "virtual", (version,), False, False, catalogue)
        return self._run(lane, folder, PLT)

    def judge(self, good: Path, folder: Path) -> Judgement:
        """Compare the verdicts."""
        before, after = _states(good), _states(folder)
        for name, state in after.items():
            _log.info("%s: %s", name, state)
        return "good" if after == before else "bad"


@dataclass(frozen=True, slots=True)
class SelftestMeasure:
    """The kernel's own tests: bad is a kernel on which one fails that passes on the good one."""

    names: tuple[str, ...]
    packetdrill: Packetdrill | None
    cache: Path

    def run(self, version: str, folder: Path) -> bool:
        """Run the tests as the kernel's own source has them."""
        with places.using_cache(self.cache):
            run = prepare_selftests(version, Wish(self.names), self.packetdrill, self.cache)
            folder.mkdir(parents=True)
            run.begin(folder)
            verdicts = run.perform(folder, None)
        return all(verdict.state != "incomplete" for verdict in verdicts)

    def judge(self, good: Path, folder: Path) -> Judgement:
        """Compare what passes."""
        before, after = ({verdict.name: verdict.state for verdict in read_verdicts(place)}
                         for place in (good, folder))  # fmt: skip
        for name, state in after.items():
            _log.info("%s: %s", name, state)
        if "incomplete" in after.values():
            raise TrialError(f"a test did not come to its end; see {folder}")
        fails = (name for name, state in after.items() if state == "failed")
        return "bad" if any(before.get(name) == "passed" for name in fails) else "good"


def _weight(cell: CellFinding) -> tuple[bool, float]:
    """Return what orders cells: those without draws, which one load decides, then the largest."""
    change = came_to(cell).pct
    if change is None:
        return True, 0.0
    return change.interval is not None, -abs(change.value)


def _states(folder: Path) -> dict[str, str]:
    """Return what each scenario came to.

    Raises:
        TrialError: one has no answer.
    """
    states = {}
    for row in read_promises([folder]).rows:
        (finding,) = row.findings
        if finding.state not in SETTLED:
            raise TrialError(f"{row.name} in {folder}: {finding.words}: {row.says(finding)}")
        states[row.name] = str(finding.state)
    return states
