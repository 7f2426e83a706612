"""The results table as rows of ``table.csv``: exact numbers, one column for each."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from analysis.records.cells import Cell, Spread, further_metrics
from analysis.records.coverage import ReplayCoverage
from analysis.records.metric import COMMANDS, MILESTONES, SERVED, Metric
from analysis.stats.estimates import Estimate, SampleStatistics
from analysis.tables.table import Pair, ResultTable
from analysis.words import capitalised
from testbed.kinds.scenario.measurement import ScenarioResult

_COVERED = {
    "requests_exact": "Requests answered with their own recording, over all trials.",
    "requests_inexact": "Requests answered with the nearest recording.",
    "requests_missed": "Requests that the page does not hold.",
    "requests_not_made": "Recorded requests that were not made.",
    "status": "`proven` (every trial is), `partial` (some are), or what happened instead.",
    "problems": "What lab and packet capture hold against trials that do not count.",
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


CELL_COLUMNS: dict[str, str] = {
    "plt_ms": "Median page load time of the proven trials.",
    "plt_min_ms": "Least page load time.",
    "plt_max_ms": "Greatest page load time.",
    **_statistics("plt", "of the condition"),
    "ci_level_pct": "Confidence that the intervals reach: 95, or less with few trials.",
    "planned": "Trials that were planned.",
    "proven": "Trials that are proven, and so count.",
    **_COVERED,
}
"""What each column of a row for one condition holds, after those of its knobs."""
PAIR_COLUMNS: dict[str, str] = {
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
    **_statistics("plt_off", "without Fast Open"),
    **_statistics("plt_on", "with Fast Open"),
    "saved_ms": "Hodges-Lehmann estimate of the time that Fast Open saves.",
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
    "proven_on": "Trials that are proven with Fast Open.",
    **_COVERED,
}
"""What each column of a row for both arms of a condition holds, after those of its knobs."""
SERVED_COLUMNS: dict[str, str] = {
    **{
        metric.name: f"{capitalised(metric.label)}: the median of the proven trials."
        for metric in SERVED
    },
    **{f"least_{metric.name}": f"Of the {metric.label} the least." for metric in SERVED},
    **{f"greatest_{metric.name}": f"Of the {metric.label} the greatest." for metric in SERVED},
    **{name: CELL_COLUMNS[name] for name in ("planned", "proven", "status", "problems")},
}
"""What each column of a row for one load on a server holds, after those of its knobs."""
SCENARIO_COLUMNS: dict[str, str] = {
    "verdict": "What became of the promise: `kept`, `broken`, or `changed`: what kernels are known "
    "to do today; empty without a proven trial. Of several trials the gravest.",
    "failed_checks": "Calls and packets that are not as promised: the median of the proven trials.",
    "first_difference": "The first sentence of what is not as promised.",
    **{name: CELL_COLUMNS[name] for name in ("planned", "proven", "status", "problems")},
}
"""What each column of a row for one scenario holds, after its name."""
COMMAND_COLUMNS: dict[str, str] = {
    **{
        metric.name: f"{capitalised(metric.label)}: the median of the proven trials."
        for metric in COMMANDS
    },
    **{name: CELL_COLUMNS[name] for name in ("planned", "proven", "status", "problems")},
}
"""What each column of a row for one command holds, after those of its knobs."""
CELL_MILESTONES: dict[str, str] = {
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


PAIR_MILESTONES: dict[str, str] = {
    name: meaning for metric in MILESTONES for name, meaning in _paired(metric).items()
}
"""The same of rows for both arms."""


def table_rows(table: ResultTable) -> list[dict[str, Any]]:
    """Return the rows of ``table.csv`` with exact numbers; a missing value is ``None``."""
    if table.kind == "server_load":
        return [_served_row(cell, table.axes) for cell in table.cells]
    if table.kind == "scenario":
        return [_scenario_row(cell, table.axes) for cell in table.cells]
    if table.kind == "command":
        return [_command_row(cell, table.axes) for cell in table.cells]
    seen = further_metrics(table.cells)
    if table.paired:
        return [_pair_row(pair, table.axes) | _pair_milestones(pair, seen) for pair in table.pairs]
    return [_cell_row(cell, table.axes) | _cell_milestones(cell, seen) for cell in table.cells]


def render_csv(table: ResultTable) -> str:
    """Return ``table.csv``: ms to the nanosecond, percent to four places, missing values empty."""
    rows = table_rows(table)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    for row in rows:
        writer.writerow(_format(name, value) for name, value in row.items())
    return text.getvalue()


def _pair_row(pair: Pair, axes: Sequence[str]) -> dict[str, Any]:
    gain, paper = pair.improvement_pct, pair.paper
    return {
        **{name: pair.axes.get(name) for name in axes},
        "plt_off_ms": pair.spread_off.median if pair.spread_off else None,
        "plt_on_ms": pair.spread_on.median if pair.spread_on else None,
        "improvement_pct": gain.median if gain else None,
        "paper_plt_off_s": paper.plt_off_s if paper else None,
        "paper_plt_on_s": paper.plt_on_s if paper else None,
        "paper_improvement_pct": paper.improvement_pct if paper else None,
        **_spread_columns("plt_off", "ms", pair.spread_off),
        **_spread_columns("plt_on", "ms", pair.spread_on),
        **_spread_columns("improvement", "pct", gain),
        **{
            name: value
            for arm, sample in zip(("off", "on"), pair.samples, strict=True)
            for name, value in _sample_columns(f"plt_{arm}", sample).items()
        },
        **_estimate_columns("saved", "ms", pair.shift.ms if pair.shift else None),
        **_estimate_columns("saved", "pct", pair.shift.percent if pair.shift else None),
        "ci_level_pct": _level(pair.shift.ms if pair.shift else None),
        "n": len(pair.seeds),
        "planned_off": pair.off.planned if pair.off else 0,
        "planned_on": pair.on.planned if pair.on else 0,
        "proven_off": len(pair.off.proven) if pair.off else 0,
        "proven_on": len(pair.on.proven) if pair.on else 0,
        **_coverage_columns(pair.coverage),
        "status": pair.status,
        "problems": " | ".join(pair.problems),
    }


def _cell_row(cell: Cell, axes: Sequence[str]) -> dict[str, Any]:
    plt = cell.spread
    return {
        **{name: cell.axes.get(name) for name in axes},
        "plt_ms": plt.median if plt else None,
        **_spread_columns("plt", "ms", plt),
        **_sample_columns("plt", cell.sample),
        "ci_level_pct": _level(cell.sample.median if cell.sample else None),
        "planned": cell.planned,
        "proven": len(cell.proven),
        **_coverage_columns(cell.coverage),
        "status": cell.status,
        "problems": " | ".join(cell.problems),
    }


def _served_row(cell: Cell, axes: Sequence[str]) -> dict[str, Any]:
    spreads = {metric.name: cell.by(metric).spread for metric in SERVED}
    return {
        **{name: cell.axes.get(name) for name in axes},
        **{name: _median(spread) for name, spread in spreads.items()},
        **{f"least_{name}": one.low if one else None for name, one in spreads.items()},
        **{f"greatest_{name}": one.high if one else None for name, one in spreads.items()},
        "planned": cell.planned,
        "proven": len(cell.proven),
        "status": cell.status,
        "problems": " | ".join(cell.problems),
    }


def _scenario_row(cell: Cell, axes: Sequence[str]) -> dict[str, Any]:
    results = (record.measured_as(ScenarioResult) for record in cell.proven)
    found = [result for result in results if result is not None]
    gravest = next((one for one in found if one.verdict == cell.verdict), None)
    return {
        **{name: cell.axes.get(name) for name in axes},
        "verdict": cell.verdict,
        "failed_checks": _median(cell.spread),
        "first_difference": next(iter(gravest.differences), None) if gravest else None,
        "planned": cell.planned,
        "proven": len(cell.proven),
        "status": cell.status,
        "problems": " | ".join(cell.problems),
    }


def _command_row(cell: Cell, axes: Sequence[str]) -> dict[str, Any]:
    return {
        **{name: cell.axes.get(name) for name in axes},
        **{metric.name: _median(cell.by(metric).spread) for metric in COMMANDS},
        "planned": cell.planned,
        "proven": len(cell.proven),
        "status": cell.status,
        "problems": " | ".join(cell.problems),
    }


def _pair_milestones(pair: Pair, seen: Sequence[Metric]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for metric in seen:
        one = pair.by(metric)
        medians = (
            _median(spread) for spread in (one.spread_off, one.spread_on, one.improvement_pct)
        )
        found |= zip(_paired(metric), medians, strict=False)  # not every metric has a gain
    return found


def _cell_milestones(cell: Cell, seen: Sequence[Metric]) -> dict[str, float | None]:
    return {metric.name: _median(cell.by(metric).spread) for metric in seen}


def _median(spread: Spread | None) -> float | None:
    return spread.median if spread else None


def _spread_columns(name: str, unit: str, spread: Spread | None) -> dict[str, float | None]:
    return {
        f"{name}_min_{unit}": spread.low if spread else None,
        f"{name}_max_{unit}": spread.high if spread else None,
    }


def _sample_columns(name: str, sample: SampleStatistics | None) -> dict[str, float | None]:
    """Return the median's interval (it has a column itself), and the mean with its interval."""
    median = _estimate_columns(name, "ms", sample.median if sample else None)
    median.pop(f"{name}_ms")
    return {
        **median,
        **_estimate_columns(f"{name}_mean", "ms", sample.mean if sample else None),
        f"{name}_outliers": sample.outliers if sample else None,
    }


def _estimate_columns(name: str, unit: str, estimate: Estimate | None) -> dict[str, float | None]:
    interval = estimate.interval if estimate else None
    return {
        f"{name}_{unit}": estimate.value if estimate else None,
        f"{name}_ci_low_{unit}": interval.low if interval else None,
        f"{name}_ci_high_{unit}": interval.high if interval else None,
    }


def _level(estimate: Estimate | None) -> float | None:
    return estimate.interval.level * 100.0 if estimate and estimate.interval else None


def _coverage_columns(coverage: ReplayCoverage) -> dict[str, int]:
    return {
        "requests_exact": coverage.exact,
        "requests_inexact": coverage.inexact,
        "requests_missed": coverage.missed,
        "requests_not_made": coverage.not_made,
    }


def _format(column: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return trimmed(float(value), 4 if column.endswith("_pct") else 6)
    # Surrogates cannot be written, and a line break would end the row for simpler readers.
    text = str(value).encode("utf-8", "replace").decode()
    return " ".join(text.split())


def trimmed(value: float, places: int) -> str:
    """Return ``value`` with at most ``places`` decimals and no trailing zeros."""
    text = f"{value:.{places}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
