"""The table of kernels as the results of a test suite.

A suite for each later kernel, a case for each cell, and one for what the cells of a client come to
together where a seed draws: what the rule flags fails, inconclusive is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.formats.suites import Case, State, Suite, write_junit
from analysis.records.tested import read_tested
from analysis.stats.estimates import Estimate
from analysis.verdicts.compare.comparison import CellFinding
from analysis.verdicts.compare.family import Family
from wings.kernels.verdicts.answer import describe_family
from wings.kernels.verdicts.table import Attribution, FailRule, LaneVerdicts, came_to
from wings.kernels.verdicts.terminal import describe, evidence, name_row, summary

JUNIT_CLASS = "firstflight.kernels"
TOPIC = "page loads"


def render_junit(attribution: Attribution, rule: FailRule) -> str:
    """Return the XML document; times are 0, since judging takes none that matters."""
    return write_junit("firstflight kernels", JUNIT_CLASS, suites_of(attribution, rule))


def suites_of(attribution: Attribution, rule: FailRule) -> list[Suite]:
    """Return the suites."""
    base = {"base": attribution.base_name, "base_folder": attribution.base}
    rules = {"fail_on": rule.on, "least_pct": f"{rule.least_pct:g}"}
    says = summary(attribution, rule)
    return [
        Suite(
            f"Kernel {lane.name}",
            [
                *(_case(attribution, lane, cell, rule) for cell in lane.cells),
                *(_case_of_family(family, rule) for family in lane.families),
            ],
            {**base, "folder": lane.comparison.new, **rules, "summary": says[place]},
            topic=TOPIC,
            tested=read_tested(Path(lane.comparison.new), lane.name),
        )
        for place, lane in enumerate(attribution.lanes)
    ]


def _case(attribution: Attribution, lane: LaneVerdicts, cell: CellFinding, rule: FailRule) -> Case:
    says = describe(attribution, lane, cell)
    verdict, words = came_to(cell).verdict, came_to(cell).words
    state: State = "passed"
    if rule.flags(cell):
        state = "failed"
    elif verdict == "inconclusive":
        state = "skipped"
    shown = evidence(cell) if state == "failed" else []
    new = cell.new.median_ms if cell.new else None
    return Case(name_row(attribution, cell), state, says, verdict, tuple(shown or [says]), says,
                "SKIP inconclusive" if state == "skipped" else words,
                (says, *shown) if verdict != "no effect" else (),
                value=None if new is None else (new, attribution.metric.unit or "1"),
                facts=_facts(cell))  # fmt: skip


def _case_of_family(family: Family, rule: FailRule) -> Case:
    says = describe_family(family)
    state: State = "failed" if rule.flags_family(family) else "passed"
    return Case(f"all cells with draws of {family.client or 'a kind'}",
                "skipped" if family.verdict == "inconclusive" else state, says, family.verdict,
                (says,), says, f"SKIP {says}" if family.verdict == "inconclusive" else says,
                facts={"verdict": family.verdict, "p": family.chance,
                       **_change(family.pct)})  # fmt: skip


def _facts(cell: CellFinding) -> Mapping[str, Any]:
    facts: dict[str, Any] = {"verdict": came_to(cell).verdict}
    if cell.base is not None and cell.base.median_ms is not None:
        facts["base"] = cell.base.median_ms
    pct = came_to(cell).pct
    return facts | (_change(pct) if pct is not None else {})


def _change(pct: Estimate) -> dict[str, Any]:
    interval = pct.interval
    ends = {} if interval is None else {"interval_pct": [interval.low, interval.high]}
    return {"change_pct": pct.value, **ends}
