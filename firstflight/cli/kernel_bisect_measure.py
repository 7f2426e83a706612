"""Measure of a bisection: what tells a bad kernel from a good one, page loads or promises."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from analysis.records.metric import PLT, Metric
from analysis.verdicts.kernels.table import FailRule, attribute
from analysis.verdicts.kernels.terminal import summary
from firstflight.cli.choice import Choice
from firstflight.cli.scenario_choice import plan_lanes
from testbed.base import log
from testbed.base.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE, TrialError
from testbed.experiment.config import Catalogue
from testbed.experiment.options import Override
from testbed.kernel.own.bisection import Judgement
from testbed.kinds.scenario.measurement import ScenarioResult, Verdict
from testbed.kinds.scenario.spec import Scenario
from testbed.model import Experiment
from testbed.results.folder import read_records

_log = log.logger(__name__)
_JUDGEMENTS: dict[int, Judgement] = {EXIT_OK: "good", EXIT_OUT_OF_TOLERANCE: "bad"}


class Measure(Protocol):
    """What runs on each commit's kernel, and how it is held against the good one's."""

    @property
    def metric(self) -> Metric:
        """What the table so far is of."""

    def plan(self, version: str, catalogue: Catalogue) -> Experiment:
        """Return what runs on the kernel ``version``.

        Raises:
            ConfigurationError: it cannot be planned.
        """

    def judge(self, good: Path, folder: Path) -> Judgement:
        """Return what the results in ``folder`` are beside those in ``good``.

        Raises:
            TestbedError: they cannot be compared.
        """


@dataclass(frozen=True, slots=True)
class CellMeasure:
    """Page loads: bad is a kernel on which a cell fails by ``rule``."""

    choice: Choice
    rule: FailRule
    metric: Metric

    def plan(self, version: str, catalogue: Catalogue) -> Experiment:
        """Return the loads of all cells."""
        fixed = [Override("kernel.version", version, f"the kernel {version}")]
        return self.choice.load(catalogue, fixed)

    def judge(self, good: Path, folder: Path) -> Judgement:
        """Attribute what differs."""
        attribution = attribute(good, folder, metric=self.metric)
        for line in summary(attribution, self.rule):
            _log.info("%s", line)
        return _JUDGEMENTS.get(attribution.exit_code(self.rule), "skip")


@dataclass(frozen=True, slots=True)
class PromiseMeasure:
    """Scenarios: bad is a kernel on which one comes out in another way than on the good one."""

    scenarios: tuple[Scenario, ...]
    metric: Metric = PLT

    def plan(self, version: str, catalogue: Catalogue) -> Experiment:
        """Return all scenarios on one kernel."""
        (lane,) = plan_lanes(self.scenarios, "virtual", (version,), False, False, catalogue)
        return lane

    def judge(self, good: Path, folder: Path) -> Judgement:
        """Compare the verdicts."""
        before, after = _verdicts(good), _verdicts(folder)
        for name, verdict in after.items():
            _log.info("%s: %s", name, verdict)
        return "good" if after == before else "bad"


def _verdicts(folder: Path) -> dict[str, Verdict]:
    """Return what each scenario came to."""
    found: dict[str, Verdict] = {}
    for record in read_records(folder):
        name = record.trial.condition_as(Scenario).scenario
        result = record.measured_as(ScenarioResult)
        if result is None:
            raise TrialError(f"{name} in {folder}: {record.outcome}: {record.reason}")
        found[name] = result.verdict
    return found
