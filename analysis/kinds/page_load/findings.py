"""Findings of page loads: what Fast Open changed, where, and how that is beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from analysis.kinds.page_load.fragile import describe_fragile
from analysis.kinds.page_load.queues import describe_queues
from analysis.records.cells import Cell, spread_of
from analysis.records.replay_coverage import describe
from analysis.tables.table import PAIR_AXIS, Pair, ResultTable
from analysis.words import count, name_axes, number, signed

MAX_CONDITIONS = 6


def findings(table: ResultTable) -> list[str]:
    """Return sentences on how requests were answered, and on pairs without and with Fast Open."""
    coverage = table.coverage
    plain = coverage.plain and not (coverage.sockets or coverage.talks)
    said = [] if plain else [f"Replay: {describe(coverage)}"]
    said += [*describe_fragile(table), *describe_queues(table), *_chosen(table), *_pages(table)]
    if table.paired and table.metric.unit:  # of what is almost nothing a share says nothing
        measured = [pair for pair in table.pairs if pair.improvement_pct is not None]
        different = [pair for pair in measured if _shown(pair) is not False]
        if different:
            said += [_gain(table, measured, different)]
            said += _growth(measured) if len(different) == len(measured) else []
            said += _beside_paper(measured)
        said += [*_deviations(table, measured), *_alike(measured, different)]
    return said


def _chosen(table: ResultTable) -> list[str]:
    """Say which IP clients chose that were offered both, in the first load of each row."""
    said: dict[str, str] = {}
    for cell in table.cells:
        ip = next((record.proof.ip for record in cell.proven if record.proof), {})
        if not ip:
            continue
        ways = [f"{count(int(ip[version]), 'connection')} over IPv{version}" for version in "46"]
        tried = f", {int(ip['6.unanswered'])} over IPv6 in vain" if ip["6.unanswered"] else ""
        fallback_ms = ip.get("fallback_ms")
        after = f"; IPv4 followed after {number(fallback_ms, 1)} ms" if fallback_ms else ""
        name = table.name_row(cell.axes)
        said.setdefault(name, f"{name}: {' and '.join(ways)}{tried}{after}.")
    return list(said.values())


def _pages(table: ResultTable) -> list[str]:
    """Say of two pages which one is better, and by how much, under each condition of both."""
    if len({cell.axes.get("page") for cell in table.cells}) != 2 or not table.metric.unit:
        return []
    metric, said = table.metric, []
    names = [name for name in (*table.axes, *([PAIR_AXIS] * table.paired)) if name != "page"]
    conditions: dict[str, list[Cell]] = {}
    for cell in table.cells:
        conditions.setdefault(name_axes(cell.axes, names), []).append(cell)
    for where, cells in conditions.items():
        samples = [(cell.sample.median, cell.axes["page"]) for cell in cells if cell.sample]
        if len(samples) != 2:
            continue
        # A smaller value first, if that is the better one.
        (best, winner), (other, loser) = sorted(
            samples, key=lambda each: each[0].value, reverse=metric.more
        )
        shown = [best.value, other.value]
        told = " against ".join(metric.with_unit(number(each, metric.places)) for each in shown)
        word = metric.better if not metric.more else "better"
        low, high = sorted((best, other), key=lambda each: each.value)
        apart = not (low.interval and high.interval) or low.interval.high < high.interval.low
        gain = number(abs(other.value - best.value) / (other.value or 1.0) * 100, 1)
        said.append(
            f"{winner} is {gain} % {word} than {loser}: {told} ({where})."
            if apart and best.value != other.value
            else f"{winner} and {loser} show no difference: {told} ({where})."
        )
    more = len(said) - MAX_CONDITIONS
    rest = [f"And under {count(more, 'more condition')}: see table.csv."] if more > 0 else []
    return [*said[:MAX_CONDITIONS], *rest]


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


def _deviations(table: ResultTable, pairs: Sequence[Pair]) -> list[str]:
    """Say how far single loads scatter, beside what the paper says of its own."""
    stated = {table.name_row(pair.axes): pair.paper.deviation_pct for pair in pairs
              if pair.paper and pair.paper.deviation_pct is not None}  # fmt: skip
    ours = [
        (cell.deviation_pct, table.name_row(pair.axes))
        for pair in pairs if table.name_row(pair.axes) in stated
        for _, cell in pair.arms if cell and cell.deviation_pct is not None
    ]  # fmt: skip
    if not ours:
        return []
    most, where = max(ours)
    usual = min(stated.values())
    above = [f"{name}: {number(pct, 0)} %" for name, pct in stated.items() if pct > usual]
    more = f" ({'; '.join(above)})" if above else ""
    return [
        f"Standard deviations of our load times are within {number(most, 1)} % of the mean "
        f"({where}), the paper's within {number(usual, 0)} %{more}."
    ]


def _gain_of(pair: Pair) -> float:
    return pair.improvement_pct.median if pair.improvement_pct else 0.0
