"""Budgets: what a metric of a run's cells may come to at most, or must at least.

``fcp_ms <= 1500`` holds of the median of each cell; ``plt_ms <= 4000 page=wsj,rtt_ms=200`` of those
that match, as ``--only`` does.  A cell whose trials do not all count keeps to no budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.formats.lines import plain
from analysis.formats.markdown import escape, make_table
from analysis.formats.suites import Case
from analysis.records.cells import Cell, cells_of, varying_axes
from analysis.records.kind import find_metric, metric_for
from analysis.records.metric import Metric
from analysis.records.results import Results
from analysis.words import count, name_axes
from testbed.base.errors import ConfigurationError
from testbed.experiment.label import knob_text

_FORM = re.compile(r"\s*(\w+)\s*(<=|>=)\s*(\d+(?:\.\d+)?)(?:\s+(\S.*?))?\s*")
_ALLOWED = "write it as METRIC <= NUMBER, such as `plt_ms <= 4000` or `fcp_ms <= 900 page=wsj`"


@dataclass(frozen=True, slots=True)
class MetricBudget:
    """A bound of a metric: the most, or the least, and the cells that it is of by axis."""

    text: str
    metric: Metric
    bound: float
    at_least: bool
    only: tuple[tuple[str, str], ...]

    def matches(self, cell: Cell) -> bool:
        """Return whether ``cell`` has one of the values of each axis that is named."""
        wanted: dict[str, set[str]] = {}
        for axis, value in self.only:
            wanted.setdefault(axis, set()).add(value)
        return all(knob_text(cell.axes.get(axis)) in values for axis, values in wanted.items())


def parse_budgets(texts: Sequence[str]) -> tuple[MetricBudget, ...]:
    """Return the budgets that ``texts`` are.

    Raises:
        ConfigurationError: with a sentence for each text that is none.
    """
    budgets: list[MetricBudget] = []
    problems = [] if texts else [f"there is no budget; {_ALLOWED}"]
    for text in texts:
        found = _FORM.fullmatch(text)
        clauses = [clause.partition("=") for clause in (found[4] or "").split(",")] if found else []
        if found is None or (found[4] and not all(name and sign for name, sign, _ in clauses)):
            problems.append(f"budget {text!r}: {_ALLOWED}")
            continue
        only = tuple((name.strip(), value.strip()) for name, _, value in clauses if name)
        try:
            metric = find_metric(found[1])
        except ConfigurationError as error:
            problems += [f"budget {text!r}: {_bare(each)}" for each in error.problems]
            continue
        words = " ".join(text.split())
        budgets.append(MetricBudget(words, metric, float(found[3]), found[2] == ">=", only))
    if problems:
        raise ConfigurationError(problems)
    return tuple(budgets)


def judge_budgets(results: Results, budgets: Iterable[MetricBudget]) -> list[Case]:
    """Return a case for each budget and each cell that it is of.

    Raises:
        ConfigurationError: with each budget that is of no cell, or of a metric that none has.
    """
    cells, cases, problems = cells_of(results), list[Case](), list[str]()
    names = varying_axes(cells) or ("page",)
    for budget in budgets:
        own = [cell for cell in cells if budget.matches(cell)]
        unknown = [axis for axis, _ in budget.only if not any(axis in c.axes for c in cells)]
        if unknown:
            problems.append(f"budget {budget.text}: no cell has {', '.join(unknown)}; cells differ "
                            f"in {', '.join(names)}")  # fmt: skip
        elif not own:
            problems.append(f"budget {budget.text}: no cell of {results.folder} matches")
        for cell in own:
            try:
                judged_by = metric_for(cell.kind, budget.metric)
            except ConfigurationError as error:
                problems += [f"budget {budget.text}: {_bare(each)}" for each in error.problems]
                break
            if judged_by != budget.metric:  # of plt_ms, which others do not have
                problems.append(f"budget {budget.text}: {cell.kind} has no {budget.metric.name}")
                break
            cases.append(_judge(cell.by(budget.metric), budget, name_axes(cell.axes, names)))
    if problems:
        raise ConfigurationError(problems)
    return cases


def _bare(problem: str) -> str:
    """Return a problem with a metric without the option that it would come from elsewhere."""
    return re.sub(r"^--metric \S+: ", "", problem)


def _judge(cell: Cell, budget: MetricBudget, name: str) -> Case:
    title = f"{name}: {budget.text}"
    if cell.status != "proven" or cell.spread is None:
        lacks = cell.status if cell.status != "proven" else f"its loads have no {cell.metric.label}"
        return Case(title, "error", f"not measured: {lacks}", "unproven", cell.problems or (lacks,))
    median, metric = cell.spread.median, cell.metric
    kept = median >= budget.bound if budget.at_least else median <= budget.bound
    side = "under" if budget.at_least else "over"
    by = abs(median / budget.bound - 1) * 100 if budget.bound else float("inf")
    says = f"{metric.label}: {metric.with_unit(f'{median:,.{metric.places}f}')}"
    says += "" if kept else f", {by:.1f} % {side} {metric.with_unit(f'{budget.bound:,.10g}')}"
    return Case(title, "passed" if kept else "failed", says, "budget", (says,), says)


def render_markdown(cases: Sequence[Case]) -> str:
    """Return a comment for a pull request: the verdict, and a table of what does not keep to it."""
    bad = [case for case in cases if case.state != "passed"]
    words = f"{len(bad)} of {count(len(cases), 'budget')} not kept" if bad else "All budgets kept"
    lines = [f"### :{'x' if bad else 'white_check_mark'}: {words}", ""]
    lines += make_table(
        ("Budget", "Result"), [(escape(c.name), escape(c.says)) for c in bad or cases]
    )
    return plain("\n".join(lines)) + "\n"
