"""Tables of page loads: rows for conditions, or for pairs without and with Fast Open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from analysis.kinds.page_load.fragile import longest_ms, waits_ms
from analysis.kinds.page_load.records import MILESTONES
from analysis.records.accounts import column_of, mean_account
from analysis.records.cells import Block, Cell, Spread, further_metrics
from analysis.records.metric import Metric
from analysis.records.replay_coverage import ReplayCoverage
from analysis.stats.estimates import Estimate, SampleStatistics
from analysis.tables.kind import Columns, Row, TableKind
from analysis.tables.rows import COUNTS, ENDS, median_of, shown_axes
from analysis.tables.summary import spreads_of
from analysis.tables.table import Pair, ResultTable
from testbed.model import Record
from testbed.model.owners import OWNERS

_COVERED = {
    "requests_exact": "Requests answered with their own recording, over all trials.",
    "requests_inexact": "Requests answered with the nearest recording.",
    "requests_missed": "Requests that the page does not hold.",
    "requests_not_made": "Recorded requests that were not made.",
    "bytes_covered_pct": "Share of the recorded bytes whose requests were made; empty if unknown.",
    "bytes_made_up_pct": "Share of these bytes whose bodies were never recorded, but made up.",
    **ENDS,
}


def _statistics(of: str, whose: str) -> dict[str, str]:
    mean = f"{of}_mean"
    return {
        f"{of}_ci_low_ms": f"Lower end of the confidence interval of the median {whose}.",
        f"{of}_ci_high_ms": "Its upper end.",
        f"{mean}_ms": f"Mean load time {whose}.",
        f"{mean}_ci_low_ms": "Lower end of the confidence interval of that mean.",
        f"{mean}_ci_high_ms": "Its upper end.",
        f"{of}_outliers": f"Load times {whose} outside Tukey's fences; they are kept.",
    }


def _waiting(arm: str) -> dict[str, str]:
    whose = f", Fast Open {arm}" if arm else ""
    end = f"_{arm}" if arm else ""
    return {
        f"waited{end}": f"Proven trials that waited for a timer{whose}.",
        f"longest_wait{end}_ms": "The longest such wait; empty without one, or if not recorded.",
    }


CELL_COLUMNS: Columns = {
    "plt_ms": "Median page load time of the proven trials.", "plt_min_ms": "Least page load time.",
    "plt_max_ms": "Greatest page load time.", **_statistics("plt", "of the condition"),
    "ci_level_pct": "Confidence that the intervals reach: 95, or less with few trials.", **COUNTS,
    **_waiting(""), **_COVERED,
}  # fmt: skip
"""What each column of a row for one condition holds, after those of its knobs."""
PAIR_COLUMNS: Columns = {
    "plt_off_ms": "Median page load time without Fast Open, over the seeds proven in both arms.",
    "plt_on_ms": "Median page load time with Fast Open, over the same seeds.",
    "improvement_pct": "Median over the seeds of each one's gain, of its time without Fast Open.",
    "paper_plt_off_s": "Published load time without Fast Open; empty without a published row.",
    "paper_plt_on_s": "Published load time with Fast Open.",
    "paper_improvement_pct": "Published gain.",
    "plt_off_min_ms": "Least load time without Fast Open.",
    "plt_off_max_ms": "Greatest load time without Fast Open.",
    "plt_on_min_ms": "Least load time with Fast Open.",
    "plt_on_max_ms": "Greatest load time with Fast Open.",
    "improvement_min_pct": "Least gain of a seed.",
    "improvement_max_pct": "Greatest gain of a seed.",
    **_statistics("plt_off", "without Fast Open"), **_statistics("plt_on", "with Fast Open"),
    "saved_ms": "Hodges-Lehmann estimate of the time that Fast Open saves; where the load times of "
    "an arm have two humps, the median over the seeds.",
    "saved_ci_low_ms": "Lower end of its confidence interval.",
    "saved_ci_high_ms": "Upper end of its confidence interval.",
    "saved_pct": "The same estimate of each seed's saving, of its time without Fast Open.",
    "saved_ci_low_pct": "Lower end of its confidence interval.",
    "saved_ci_high_pct": "Upper end of its confidence interval.",
    "ci_level_pct": "Confidence that the intervals reach: 95, or less with few trials.",
    "n": "Seeds that are proven in both arms: only these are compared.",
    "planned_off": "Trials that were planned without Fast Open.",
    "planned_on": "Trials that were planned with Fast Open.",
    "proven_off": "Trials that are proven without Fast Open.",
    "proven_on": "Trials that are proven with Fast Open.", **_waiting("off"), **_waiting("on"),
    **_COVERED,
}  # fmt: skip
"""What each column of a row for both arms of a condition holds, after those of its knobs."""
CELL_MILESTONES: Columns = {
    metric.name: f"Median {metric.label} of the proven trials that have one."
    for metric in MILESTONES
}
"""The last columns of such rows, each of which is there if a load has its metric."""


def _paired(metric: Metric) -> dict[str, str]:
    columns = {
        metric.column("off"): f"Median {metric.label} without Fast Open, over the common seeds.",
        metric.column("on"): f"Median {metric.label} with Fast Open, over the same seeds.",
    }
    if metric.unit:  # of what is almost nothing a share says nothing
        meaning = "Median over the seeds of each one's gain, of its time without Fast Open."
        columns[metric.column("improvement", unit="pct")] = meaning
    return columns


PAIR_MILESTONES: Columns = {
    name: meaning for metric in MILESTONES for name, meaning in _paired(metric).items()
}
"""The same of rows for both arms."""


def _describe_paths(arm: str = "") -> dict[str, str]:
    how = {"": "", "off": " without Fast Open", "on": " with Fast Open"}[arm]
    return {column_of(owner, arm): f"Mean time of the critical path{how}: {what}."
            for owner, what in OWNERS.items()}  # fmt: skip


CELL_PATHS: Columns = _describe_paths()
"""Behind these, if a proven load has an account of its time."""
PAIR_PATHS: Columns = _describe_paths("off") | _describe_paths("on")
"""The same of rows for both arms, over the common seeds."""


def _rows(table: ResultTable) -> list[Row]:
    seen = further_metrics(table.cells)
    owners = OWNERS if any(mean_account(cell.proven) for cell in table.cells) else ()

    def path(arm: str, cell: Cell | None, blocks: Collection[Block] = ()) -> Row:
        account = mean_account(cell.proven, blocks) if cell else {}
        return {column_of(owner, arm): account.get(owner) for owner in owners}

    if table.paired:
        return [_pair_row(pair, table.axes) | _pair_milestones(pair, seen)
                | path("off", pair.off, pair.seeds) | path("on", pair.on, pair.seeds)
                for pair in table.pairs]  # fmt: skip
    return [
        _cell_row(cell, table.axes) | {m.name: median_of(cell.by(m).spread) for m in seen}
        | path("", cell) for cell in table.cells
    ]  # fmt: skip


def _pair_row(pair: Pair, axes: Sequence[str]) -> Row:
    gain, paper = pair.improvement_pct, pair.paper
    saved = (pair.shift.ms, pair.shift.percent) if pair.shift else (None, None)
    values = (
        *map(median_of, (pair.spread_off, pair.spread_on, gain)),
        *((paper.plt_off_s, paper.plt_on_s, paper.improvement_pct) if paper else [None] * 3),
        *_ends(pair.spread_off), *_ends(pair.spread_on), *_ends(gain),
        *(value for sample in pair.samples for value in _values_of(sample)),
        *(value for estimate in saved for value in _estimated(estimate)),
        _level(saved[0]), len(pair.seeds),
        *(cell.planned if cell else 0 for _, cell in pair.arms),
        *(len(cell.proven) if cell else 0 for _, cell in pair.arms),
        *_waits(pair.off), *_waits(pair.on), *_covered(pair.coverage),
        pair.status, " | ".join(pair.problems),
    )  # fmt: skip
    return shown_axes(pair.axes, axes) | dict(zip(PAIR_COLUMNS, values, strict=True))


def _cell_row(cell: Cell, axes: Sequence[str]) -> Row:
    values = (
        median_of(cell.spread), *_ends(cell.spread), *_values_of(cell.sample),
        _level(cell.sample.median if cell.sample else None), cell.planned, len(cell.proven),
        *_waits(cell), *_covered(cell.coverage), cell.status, " | ".join(cell.problems),
    )  # fmt: skip
    return shown_axes(cell.axes, axes) | dict(zip(CELL_COLUMNS, values, strict=True))


def _pair_milestones(pair: Pair, seen: Sequence[Metric]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for metric in seen:
        by_metric = pair.by(metric)
        spreads = by_metric.spread_off, by_metric.spread_on, by_metric.improvement_pct
        # Not every metric has a gain.
        values |= zip(_paired(metric), map(median_of, spreads), strict=False)
    return values


def _ends(spread: Spread | None) -> tuple[float | None, float | None]:
    return (spread.low, spread.high) if spread else (None, None)


def _values_of(sample: SampleStatistics | None) -> tuple[float | None, ...]:
    """Return the median's interval (it has a column itself), and the mean with its interval."""
    if sample is None:
        return (None,) * 6
    return (*_estimated(sample.median)[1:], *_estimated(sample.mean), sample.outliers)


def _estimated(estimate: Estimate | None) -> tuple[float | None, ...]:
    interval = estimate.interval if estimate else None
    ends = (interval.low, interval.high) if interval else (None, None)
    return (estimate.value if estimate else None, *ends)


def _level(estimate: Estimate | None) -> float | None:
    return estimate.interval.level * 100.0 if estimate and estimate.interval else None


def _waits(cell: Cell | None) -> tuple[int, float | None]:
    return (len(waits_ms(cell)), longest_ms(cell)) if cell else (0, None)


def _covered(coverage: ReplayCoverage) -> tuple[float | None, ...]:
    return (coverage.exact, coverage.inexact, coverage.missed, coverage.not_made,
            coverage.bytes_pct, coverage.made_up_pct)  # fmt: skip


class _OfCell(TypedDict):
    milestones: NotRequired[dict[str, Annotated[dict[str, Any], Spread]]]
    """What a visitor sees in the proven trials, by the name of the metric; only where a browser
    gave it."""


class _OfTrial(TypedDict):
    milestones: NotRequired[dict[str, float]]
    """What a visitor sees, by the name of the metric; only where a browser gave it."""


def _of_cell(cell: Cell) -> Row:
    milestones = spreads_of(cell, further_metrics([cell]))
    return {"milestones": milestones} if milestones else {}


def _of_trial(record: Record) -> Row:
    values = {metric.name: metric.of(record.measured) for metric in MILESTONES}
    known = {name: value for name, value in values.items() if value is not None}
    return {"milestones": known} if known else {}


DESCRIPTION = TableKind(
    trials="page loads",
    columns={"With Fast Open off and on: a row for each pair": {
                 **PAIR_COLUMNS, **PAIR_MILESTONES, **PAIR_PATHS},
             "Otherwise: a row for each condition": {
                 **CELL_COLUMNS, **CELL_MILESTONES, **CELL_PATHS}},
    rows=_rows, of_cell=_of_cell, of_trial=_of_trial, cell_fields=_OfCell, trial_fields=_OfTrial,
)  # fmt: skip
