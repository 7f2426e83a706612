"""Critical paths: where the time of loads went, and what Fast Open took off their paths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

from analysis import plot
from analysis.kinds.page_load.conditions import beside
from analysis.plot.theme import FURTHER, SERIES
from analysis.records.accounts import WHOLE_MS, differences_ms, mean_account, moved
from analysis.records.cells import Block, Cell
from analysis.report.sections.sweep import (
    CONDITION,
    PAGE,
    PLT_MS,
    FigureKind,
    Panel,
    SweepRow,
    panels_of,
    spread_over,
    swept,
)
from analysis.tables.table import PAIR_AXIS
from analysis.words import axis_value, capitalised, clean, count, name_axes, number
from testbed.model.owners import OWNERS, TCP

MAX_ROWS = 12
"""Of one figure."""
MAX_HOSTS = 4
MOST_TIMES = 10
"""Handshakes are told in percent of what was saved up to so many times that."""
HOST_SUFFIX = ".p.test"
"""Behind the hosts of pages that are made from sizes."""
OWNER = "spent on"
COLOURS = dict(
    zip(OWNERS, map((*SERIES, *FURTHER).__getitem__, (4, 1, 3, 0, 6, 2, 8, 7, 5, 9)), strict=True)
)
_SOURCES = re.compile(r" \(RFC [^)]*\)")


def plan_paths(rows: Sequence[SweepRow]) -> tuple[Panel, ...]:
    """Return one figure for each page with accounts; below it a sentence or two for each pair."""
    panels = []
    for page in panels_of(rows, (PAGE,)):
        known = [row for row in page if any(account for _, account in _accounts(row))]
        shown, names = spread_over(known, MAX_ROWS), swept(known)
        if not shown:
            continue
        few = len(shown) < len(known)
        said = [f"{len(shown)} of {len(known)} rows, at even distances."] if few else []
        said += [sentence for row in shown if (sentence := describe_pair(row, names))]
        title = name_axes(page[0].axes, (PAGE,))
        panels.append(Panel(partial(_draw, shown, names), "\n".join(said), title))
    return tuple(panels)


def describe_pair(row: SweepRow, names: Sequence[str]) -> str:
    """Say what Fast Open moved, of a pair with accounts, and which handshakes left the path."""
    if row.pair is None or row.pair.off is None or row.pair.on is None:
        return ""
    (_, off), (_, on) = _accounts(row)
    differences = differences_ms(off, on)
    if not differences:
        return ""
    saved_ms = -sum(differences.values())
    what = f"{_ms(saved_ms)} {'saved' if saved_ms >= 0 else 'lost'}"
    parts = ", ".join(
        f"{_ms(ms)} {'less' if ms < 0 else 'more'} for {_OBJECTS.get(owner, owner)}"
        for owner, ms in moved(differences).items()
    )
    said = f"{_name(row, names)}: {what}{f' ({parts})' if parts else ''}."
    if not off[TCP] and not on[TCP]:
        return f"{said} No TCP handshake is on its critical path."
    before, after = (_awaited(cell, row.pair.seeds) for cell in (row.pair.off, row.pair.on))
    gone, gone_ms = [host for host in before if host not in after], -differences[TCP]
    if not gone or gone_ms <= 0:
        return said
    share = f": {number(gone_ms / saved_ms * 100, 0)} % of what it saved"
    share = share if saved_ms * MOST_TIMES > gone_ms else ""
    named = [clean(host.removesuffix(HOST_SUFFIX)) for host in gone[:MAX_HOSTS]]
    more = [f"{len(gone) - MAX_HOSTS} more"] if len(gone) > MAX_HOSTS else []
    return (
        f"{said} With Fast Open the load no longer waited for {count(len(gone), 'TCP handshake')} "
        f"({', '.join([*named, *more])}), {_ms(gone_ms)}{share}."
    )


_OBJECTS = {"look-up": "look-ups", TCP: "TCP handshakes", "TLS handshake": "TLS handshakes",
            "request": "requests", "window": "windows", "line": "the line", "queue": "queues",
            "server": "servers", "client": "the client"}  # fmt: skip


def _accounts(row: SweepRow) -> list[tuple[Cell, dict[str, float]]]:
    """Return the mean account of each arm, of a pair over the seeds that both have."""
    seeds = row.pair.seeds if row.pair else ()
    return [(cell, mean_account(cell.proven, seeds)) for cell in row.cells]


def _awaited(cell: Cell, blocks: frozenset[Block]) -> list[str]:
    """Return the hosts for whose TCP handshakes most of these loads waited."""
    loads = [r.proof.awaited for r in cell.proven
             if r.proof and (r.trial.seed, r.trial.repetition) in blocks]  # fmt: skip
    loads_by_host = Counter(host for hosts in loads for host in hosts)
    return [host for host, waited in loads_by_host.items() if 2 * waited > len(loads)]


def _draw(rows: Sequence[SweepRow], names: Sequence[str]) -> plot.Plot:
    parts = [
        {CONDITION: _name(row, names), OWNER: owner, PLT_MS: ms,
         PAIR_AXIS: axis_value(PAIR_AXIS, cell.axes.get(PAIR_AXIS)) if row.pair else ""}
        for row in rows for cell, account in _accounts(row) for owner, ms in account.items()
    ]  # fmt: skip
    looks = {owner: colour.light for owner, colour in COLOURS.items()}
    chart = plot.stacked(parts, CONDITION, PAIR_AXIS, PLT_MS, OWNER, looks)
    return chart.sized(beside([_name(row, names) for row in rows]))


def _name(row: SweepRow, names: Sequence[str]) -> str:
    return name_axes(row.axes, names) or name_axes(row.axes, (PAGE,))


def _ms(value: float) -> str:
    return f"{number(abs(value), 0 if abs(value) >= WHOLE_MS else 1)} ms"


_MEANINGS = "; ".join(f"{owner}: {_SOURCES.sub('', what)}" for owner, what in OWNERS.items())
PATHS = FigureKind(
    "critical-path",
    lambda rows: "Where the time went",
    "The load time by what it was spent on, along the critical path: back from the end, each "
    "packet sent because of the one before it. Means over proven loads; of pairs, without (off) "
    f"and with Fast Open (on), over the seeds proven both ways. {capitalised(_MEANINGS)}.",
    plan_paths,
    small=True,
)
