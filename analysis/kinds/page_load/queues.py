"""Queues before the line: what packets waited over a load, and a queue that hurts a lone page.

A queue that keeps the wait near a target takes a single packet for congestion where that packet is
longer on the line than the target: 47 ms at 256 kbit/s, against CoDel's 5 ms (RFC 8289 section
4.4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from analysis import plot
from analysis.records.cells import Cell
from analysis.report.sections.sweep import (
    PAGE,
    PLOT_PX,
    FigureKind,
    Panel,
    SweepRow,
    panels_of,
    swept,
)
from analysis.tables.table import PAIR_AXIS, ResultTable
from analysis.words import count, name_axes, number, signed
from testbed.model import Condition, LinkSpec, Queueing, Record
from testbed.model.line import line_ms
from testbed.model.traffic import NO_TRAFFIC

QUEUES = ("qdisc", "qdisc_down", "qdisc_up")
WAIT_MS, LOAD_S = "longest_wait_ms", "time_in_the_load_s"
SHOWN_MS = 1.0
"""A queue in which no packet waits for longer is not drawn."""
MAX_LINES = 6
MAX_FIGURES = 12
MAX_PLAIN = 4
"""Figures of a run whose every queue is a plain FIFO."""
MAX_CELLS = 6
_TARGET = re.compile(r" target ([0-9.]+)(us|ms)\b")
_CAKE = re.compile(r"^cake bandwidth unlimited .* rtt ([0-9.]+)(us|ms)\b")
_CAKE_SHARE = 20
"""CAKE's target is so small a part of its `rtt` (tc-cake(8))."""


def plan_waits(rows: Sequence[SweepRow]) -> tuple[Panel, ...]:
    """Return one figure for each direction of each condition, a line for each queue.

    Of more than MAX_FIGURES, or of MAX_PLAIN plain ones, those with the longest waits.
    """
    shown = swept(rows)
    rest = [name for name in shown if name not in QUEUES]
    panels: list[tuple[float, Panel]] = []
    for panel in panels_of(rows, (PAGE, *rest)):
        for way in ("down", "up"):
            drawn = panel[:MAX_LINES]
            firsts = (next(_queueing(cell, way), None) for row in drawn for cell in row.cells)
            longest_ms = max((found[1].peak_ms for found in firsts if found), default=0.0)
            longest_ms = round(longest_ms * 1000) / 1000  # as it is drawn
            if longest_ms > SHOWN_MS:
                title = f"{name_axes(panel[0].axes, (PAGE, *rest))}: {way}"
                panels.append((longest_ms, Panel(partial(_draw, drawn, way, shown), title=title)))
    plain = all(_link(record).is_plain for row in rows for cell in row.cells
                for record in cell.proven)  # fmt: skip
    most = MAX_PLAIN if plain else MAX_FIGURES
    least_ms = sorted((longest_ms for longest_ms, _ in panels), reverse=True)[:most][-1:]
    return tuple(panel for longest_ms, panel in panels if [longest_ms] >= least_ms)[:most]


def _points(row: SweepRow, way: str, shown: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the peaks of the first proven load of each arm."""
    queues = [name for name in shown if name in QUEUES]
    for cell in row.cells:
        found = next(_queueing(cell, way), None)
        for place, peak_us in enumerate(found[1].peaks_us if found else ()):
            yield {
                "queue": name_axes(row.axes, queues, bare=queues) or None,
                PAIR_AXIS: cell.axes.get(PAIR_AXIS),
                LOAD_S: place * found[1].slice_ms / 1000 if found else 0.0,
                WAIT_MS: peak_us / 1000,
            }


def _draw(rows: Sequence[SweepRow], way: str, shown: Sequence[str]) -> plot.Plot:
    points = [point for row in rows for point in _points(row, way, shown)]
    several = {name: len({point[name] for point in points}) > 1 for name in ("queue", PAIR_AXIS)}
    parts = [name for name in ("queue", PAIR_AXIS) if several[name]]
    color, dash = (*parts, None, None)[:2]
    return plot.lines(points, LOAD_S, WAIT_MS, color=color, dash=dash).sized(*PLOT_PX)


def _queueing(cell: Cell, way: str) -> Iterator[tuple[Record, Queueing]]:
    for record in cell.proven:
        if record.proof is not None and way in record.proof.queueing:
            yield record, record.proof.queueing[way]


def _link(record: Record) -> LinkSpec:
    return record.trial.linked.link


def describe_queues(table: ResultTable) -> list[str]:
    """Return a sentence for each queue with a target that hurts a page alone on the line.

    Of more than MAX_CELLS the first are named.
    """
    hurt = [(cell, way) for cell in table.cells for way in ("down", "up") if _hurts(cell, way)]
    said = [_describe(table, cell, way) for cell, way in hurt[:MAX_CELLS]]
    more = len(hurt) - MAX_CELLS
    return [*said, f"So it is with {count(more, 'more queue')}."] if more > 0 else said


def _hurts(cell: Cell, way: str) -> bool:
    """Return whether a packet is longer on the line than a queue's target, and was hit for it."""
    loads = list(_queueing(cell, way))
    if not loads or loads[0][0].lab is None:
        return False
    if loads[0][0].trial.condition_as(Condition).traffic != NO_TRAFFIC:
        return False  # beside others a queue may well drop
    link, queue = _link(loads[0][0]), loads[0][0].lab.knobs.get(f"{way}.qdisc", "")
    packet_ms = line_ms(link, way, link.mtu_bytes)  # with a trace 0, which no target is below
    target_ms = read_target_ms(queue)
    hit = any(found.hit_bytes is not None for _, found in loads)
    return target_ms is not None and target_ms < packet_ms and hit


def _describe(table: ResultTable, cell: Cell, way: str) -> str:
    loads = list(_queueing(cell, way))
    lab = loads[0][0].lab
    link, queue = _link(loads[0][0]), lab.knobs.get(f"{way}.qdisc", "") if lab else ""
    rate_kbit = link.up_kbit if way == "up" else link.down_kbit
    packet_ms = line_ms(link, way, link.mtu_bytes)
    target_ms = read_target_ms(queue)
    hits = [found for _, found in loads if found.hit_bytes is not None]
    dropped, marked, passed = (
        sum(getattr(found, name) for _, found in loads) for name in ("dropped", "marked", "packets")
    )
    behind = sorted(found.hit_bytes or 0.0 for found in hits)[len(hits) // 2]
    return (
        f"{table.name_row(cell.axes)}: {way} the line a packet of {link.mtu_bytes:,} bytes takes "
        f"{number(packet_ms, 1)} ms at {rate_kbit} kbit/s, longer than the target of "
        f"{queue.split()[0]}, {number(target_ms, 1)} ms. It dropped {dropped:,} and marked "
        f"{marked:,} of {count(dropped + passed, 'packet')} in {count(len(loads), 'load')}, "
        f"half of them behind {behind:,.0f} bytes or less"
        f"{_cost(table, cell)}. A target of {number(packet_ms * 1.5, 0)} ms is one and a half "
        "packets."
    )


def _cost(table: ResultTable, cell: Cell) -> str:
    """Say how much longer loads take than those of the same condition with a plain FIFO."""
    rest = {name: value for name, value in cell.axes.items() if name not in QUEUES}
    for other in table.cells:
        fifo = all(_link(record).is_plain for record in other.proven)
        same = {n: value for n, value in other.axes.items() if n not in QUEUES} == rest
        if same and fifo and other.spread and cell.spread and other.spread.median:
            more = (cell.spread.median / other.spread.median - 1) * 100
            return f"; the {cell.metric.label} differs from that with a FIFO by {signed(more, 1)} %"
    return ""


def read_target_ms(queue: str) -> float | None:
    """Return the wait that a queue aims at by what tc says of it; ``None``: it has none."""
    for pattern, share in ((_TARGET, 1), (_CAKE, _CAKE_SHARE)):
        found = pattern.search(queue)
        if found:
            return float(found[1]) * (1.0 if found[2] == "ms" else 1e-3) / share
    return None


WAITS = FigureKind(
    "queues",
    lambda rows: "What packets waited before the line",
    "The longest wait of the packets that were sent in each 64th of a load, by the captures at "
    "both ends: beyond the propagation and a packet's own time on the line. Of each condition the "
    "first proven load; of many figures those with the longest waits.",
    plan_waits,
    small=True,
)
