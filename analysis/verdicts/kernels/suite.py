"""The table of kernels as the results of a test suite: JUnit XML and KTAP.

A suite for each later kernel, a case for each cell: what the rule flags fails, inconclusive is
skipped.
"""

from __future__ import annotations

from analysis.formats.suites import Case, State, Suite, write_junit, write_ktap
from analysis.verdicts.compare.comparison import CellFinding
from analysis.verdicts.kernels.table import Attribution, FailRule, LaneVerdicts
from analysis.verdicts.kernels.terminal import describe, evidence, name_row, summary

JUNIT_CLASS = "firstflight.kernels"


def render_junit(attribution: Attribution, rule: FailRule) -> str:
    """Return the XML document; times are 0, since judging takes none that matters."""
    return write_junit("firstflight kernels", JUNIT_CLASS, _suites(attribution, rule))


def render_ktap(attribution: Attribution, rule: FailRule) -> str:
    """Return KTAP: each later kernel is a test whose subtests are the cells."""
    return write_ktap(_suites(attribution, rule))


def _suites(attribution: Attribution, rule: FailRule) -> list[Suite]:
    base = {"base": attribution.base_name, "base_folder": attribution.base}
    rules = {"fail_on": rule.on, "least_pct": f"{rule.least_pct:g}"}
    says = summary(attribution, rule)
    return [
        Suite(
            f"Kernel {lane.name}",
            [_case(attribution, lane, cell, rule) for cell in lane.cells],
            {**base, "folder": lane.comparison.new, **rules, "summary": says[place]},
        )
        for place, lane in enumerate(attribution.lanes)
    ]


def _case(attribution: Attribution, lane: LaneVerdicts, cell: CellFinding, rule: FailRule) -> Case:
    says = describe(attribution, lane, cell)
    verdict = cell.attribution.verdict if cell.attribution else "inconclusive"
    words = cell.attribution.words if cell.attribution else verdict
    state: State = "passed"
    if rule.flags(cell):
        state = "failed"
    elif verdict == "inconclusive":
        state = "skipped"
    shown = evidence(cell) if state == "failed" else []
    return Case(
        name_row(attribution, cell),
        state,
        says,
        verdict,
        tuple(shown or [says]),
        says,
        "SKIP inconclusive" if state == "skipped" else words,
        (says, *shown) if verdict != "no effect" else (),
    )
