"""Findings of a run, in sentences that follow from the numbers of its table alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from analysis.records.cells import spread_of
from analysis.records.coverage import describe
from analysis.stats.estimates import LEAST_FOR_LEVEL, LEVEL, level_of_range
from analysis.tables.table import Pair, ResultTable
from analysis.words import count, number, signed
from testbed.kinds import KINDS

SEEDS = 5
"""As many as `./run.sh` takes of Table 1."""


def findings(table: ResultTable) -> list[str]:
    """Return short sentences about ``table``; none is said that its numbers do not bear."""
    if table.kind == "scenario":
        return [_proven(table), *_promised(table)]
    said = [_proven(table), *_replayed(table)]
    if table.paired and table.metric.unit:  # of what is almost nothing a share says nothing
        measured = [pair for pair in table.pairs if pair.improvement_pct is not None]
        different = [pair for pair in measured if _shown(pair) is not False]
        if different:
            said += [_gain(table, measured, different)]
            said += _growth(measured) if len(different) == len(measured) else []
            said += _beside_paper(measured)
        said += _alike(measured, different)
    return said + _draws(table) + _alike_seeds(table) + _levels(table)


def _alike_seeds(table: ResultTable) -> list[str]:
    """Say where repetitions were copies, and what would make them draws."""
    repeated = [cell for cell in table.cells if cell.varies is not None]
    same = sum(cell.copied for cell in repeated)
    if not same:
        return []
    where = "here" if same == len(repeated) else f"in {same} of {count(len(repeated), 'cell')}"
    remedy = KINDS[table.kind].no_draw()
    return [f"Nothing varies between seeds {where}, so there is no interval: {remedy}."]


def _proven(table: ResultTable) -> str:
    planned = sum(cell.planned for cell in table.cells)
    proven = sum(len(cell.proven) for cell in table.cells)
    load = "scenario" if table.kind == "scenario" else "load"
    if planned and proven == planned:
        return f"All {count(planned, f'{load} is', f'{load}s are')} verified by packet capture."
    none = "verdict" if table.kind == "scenario" else "number"
    return (
        f"{proven:,} of {count(planned, load)} are verified by packet capture; "
        f"the other {planned - proven:,} give{'s' * (planned - proven == 1)} no {none} and "
        f"say{'s' * (planned - proven == 1)} why below."
    )


def _promised(table: ResultTable) -> list[str]:
    """Say how many promises came to what."""
    verdicts = [cell.verdict for cell in table.cells]
    said = {
        "kept": "{} kept.",
        "changed": "{} kept no longer: kernels do something else since, which these do, too.",
        "broken": "{} broken.",
    }
    return [
        words.format(count(verdicts.count(verdict), "promise is", "promises are"))
        for verdict, words in said.items()
        if verdict in verdicts
    ]


def _replayed(table: ResultTable) -> list[str]:
    coverage = table.coverage
    return [] if coverage.whole and not coverage.sockets else [f"Replay: {describe(coverage)}"]


def _gain(table: ResultTable, measured: Sequence[Pair], different: Sequence[Pair]) -> str:
    """Say how far ``different`` rows changed; of ``every`` page only where all ``measured`` did."""
    ordered = sorted(different, key=_gain_of)
    least, most = ordered[0], ordered[-1]
    metric = table.metric
    what = f"Fast Open changed the {metric.label} by"
    if len(different) < len(measured):
        rows = f"{len(different)} of {count(len(measured), 'row')}"
        what = f"In {rows} Fast Open changed the {metric.label} by"
    elif _gain_of(least) > 0:
        what = f"Fast Open made every measured {metric.thing} {metric.better}, by"
    elif _gain_of(most) <= 0:
        what = f"Fast Open made no measured {metric.thing} {metric.better}; the change is"
    if len(ordered) == 1:
        return f"{what} {number(_gain_of(most), 1)} % ({table.name_row(most.axes)})."
    return (
        f"{what} {number(_gain_of(least), 1)} % ({table.name_row(least.axes)}) "
        f"to {number(_gain_of(most), 1)} % ({table.name_row(most.axes)})."
    )


def _alike(measured: Sequence[Pair], different: Sequence[Pair]) -> list[str]:
    """Say in how many rows the arms do not differ, as in an A/A run."""
    alike = len(measured) - len(different)
    if not alike:
        return []
    return [
        f"No difference between the arms is shown in {alike} of {count(len(measured), 'row')}: "
        f"the interval of the time saved holds zero there. By chance alone 1 row in 20 would show "
        "one."
    ]


def _levels(table: ResultTable) -> list[str]:
    """Say how sure the intervals are, and what too few loads leave open."""
    repeated = [len(cell.proven) for cell in table.cells if cell.varies]
    if not repeated:
        return []
    least = min(repeated)
    said = f"Intervals hold the true value with {number(LEVEL * 100, 0)} %."
    if least < LEAST_FOR_LEVEL:
        reached = number(level_of_range(least) * 100, 1)
        said = (
            f"With {count(least, 'seed')} there are only ranges, which hold the true value with "
            f"{reached} % and prove no difference; from {LEAST_FOR_LEVEL} seeds on there are "
            f"intervals of {number(LEVEL * 100, 0)} %."
        )
    outliers = sum(cell.sample.outliers for cell in table.cells if cell.sample)
    if outliers:
        kept = f"{count(outliers, 'outlier')} {'is' if outliers == 1 else 'are'} counted and kept."
        said = f"{said} {kept}"
    return [said]


def _draws(table: ResultTable) -> list[str]:
    """Say where a cell has one load, and another seed would have given another."""
    loaded = [cell.proven[0].trial.condition for cell in table.cells if len(cell.proven) == 1]
    if not any(condition.draws for condition in loaded):
        return []
    return [
        f"A cell with one load is a draw and no estimate: -n {SEEDS} shows how far seeds spread."
    ]


def _shown(pair: Pair) -> bool | None:
    return pair.shift.shown if pair.shift else None


def _growth(pairs: Sequence[Pair]) -> list[str]:
    ladders: dict[str, list[tuple[float, float]]] = {}
    for pair in pairs:
        rest = repr({n: v for n, v in pair.axes.items() if n != "rtt_ms"})
        ladders.setdefault(rest, []).append((float(pair.axes["rtt_ms"]), _gain_of(pair)))
    climbs = [sorted(steps) for steps in ladders.values() if len(steps) > 1]
    if not climbs:
        return []
    growing = sum(all(a[1] < b[1] for a, b in pairwise(steps)) for steps in climbs)
    what = "page" if len(climbs) <= len({pair.axes["page"] for pair in pairs}) else "condition"
    return [
        "The improvement grows with every step of the round-trip time for "
        f"{growing} of {count(len(climbs), what)}."
    ]


def _beside_paper(pairs: Sequence[Pair]) -> list[str]:
    gaps = spread_of(
        _gain_of(pair) - pair.paper.improvement_pct for pair in pairs if pair.paper is not None
    )
    if gaps is None:
        return []
    return [
        f"Ours minus the paper's improvement: median {signed(gaps.median, 1)}, "
        f"from {signed(gaps.low, 1)} to {signed(gaps.high, 1)} percentage points "
        f"over {count(gaps.n, 'row')}."
    ]


def _gain_of(pair: Pair) -> float:
    return pair.improvement_pct.median if pair.improvement_pct else 0.0
