"""A comparison as plain text for a terminal: the worst cells first, what to do last."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from analysis.regression.compare.comparison import CellFinding, Comparison, Side
from analysis.regression.compare.estimated import DISTANCE, RANKS
from analysis.regression.compare.phrases import (
    headline,
    packet_lines,
    plain,
    rule,
    sentence,
    under_test,
    verdict_words,
)
from analysis.words import axis_value, axis_word

WIDTH = 100
MIN_WIDTH = 20
GAP = "  "
MAX_ROWS = 60
MAX_SENTENCES = 10
MAX_PACKETS = 3
MISSING = "-"

# How readily a column is left out (0 = never), then its heading and cells; "<" aligns left.
Column = tuple[int, list[str]]


def render_text(comparison: Comparison, width: int = WIDTH) -> str:
    """Return the comparison in lines of at most ``width`` characters, all of them ASCII.

    Columns that do not fit are left out, tests and intervals first; packets are never cut.
    """
    room = max(width, MIN_WIDTH)
    cells = comparison.worst_first
    lines = _table(comparison, cells[:MAX_ROWS], room)
    if len(cells) > MAX_ROWS:
        lines.append(f"... and {len(cells) - MAX_ROWS} more cells: see --json")
    lines.append("")
    told = [cell for cell in cells if cell.verdict != "same" or cell.packets is not None]
    for place, cell in enumerate(told[:MAX_SENTENCES]):
        lines += _wrap(sentence(comparison, cell), room)
        lines += _packets(cell, room) if place < MAX_PACKETS else []
    if len(told) > MAX_SENTENCES:
        lines.append(f"... and {len(told) - MAX_SENTENCES} more: see --json")
    notes = [*under_test(comparison), *comparison.notes, rule(comparison), headline(comparison)]
    lines += [part for note in notes for part in _wrap(note, room)]
    return "".join(f"{plain(line).rstrip()}\n" for line in lines)


def _table(comparison: Comparison, cells: Sequence[CellFinding], room: int) -> list[str]:
    columns = _columns(comparison, cells)
    for level in (5, 4, 3, 2, 1):
        kept = [column for rank, column in columns if rank < level]
        lines = _align(kept)
        if max(map(len, lines)) <= room:
            return lines
    names = [column[0].lstrip("<") for column in kept]
    rows = zip(*(column[1:] for column in kept), strict=True)
    said = (", ".join(f"{n} {text}" for n, text in zip(names, row, strict=True)) for row in rows)
    return [line for one in said for line in _wrap(one, room)]


def _columns(comparison: Comparison, cells: Sequence[CellFinding]) -> list[Column]:
    columns: list[Column] = [
        (0, [("<" if name == "page" else "") + axis_word(name)]
         + [axis_value(name, cell.axes.get(name)) for cell in cells])
        for name in comparison.names
    ]  # fmt: skip
    effects = [cell.effect for cell in cells]
    columns += [
        (2, ["base ms", *map(_median, (cell.base for cell in cells))]),
        (2, ["new ms", *map(_median, (cell.new for cell in cells))]),
        (1, ["diff ms", *(_number(e.ms if e else None, "+.1f") for e in effects)]),
        (0, ["diff %", *(_number(e.pct if e else None, "+.2f") for e in effects)]),
    ]
    if comparison.kernel != "virtual":
        columns += [
            (3, ["interval ms", *map(_interval, cells)]),
            (4, ["p MW", *(_chance(cell, RANKS) for cell in cells)]),
            (4, ["p KS", *(_chance(cell, DISTANCE) for cell in cells)]),
        ]
    columns.append((3, ["n", *map(_counts, cells)]))
    return [*columns, (0, ["<verdict", *(verdict_words(comparison, cell) for cell in cells)])]


def _median(side: Side | None) -> str:
    return _number(side.median_ms if side else None, ".1f")


def _number(value: float | None, how: str) -> str:
    return MISSING if value is None else f"{value:{how}}"


def _interval(cell: CellFinding) -> str:
    interval = cell.effect.interval_ms if cell.effect else None
    return f"{interval.low:+.1f}..{interval.high:+.1f}" if interval else MISSING


def _chance(cell: CellFinding, test: str) -> str:
    return f"{cell.chances[test].corrected:.2g}" if test in cell.chances else MISSING


def _counts(cell: CellFinding) -> str:
    sides = (len(side.plt_ms) if side else 0 for side in (cell.base, cell.new))
    return "/".join(map(str, sides))


def _align(columns: Sequence[Sequence[str]]) -> list[str]:
    padded = []
    for column in columns:
        left = column[0].startswith("<")
        cells = [column[0].lstrip("<"), *column[1:]]
        size = max(map(len, cells))
        cells.insert(1, "-" * size)
        padded.append([cell.ljust(size) if left else cell.rjust(size) for cell in cells])
    return [GAP.join(row).rstrip() for row in zip(*padded, strict=True)]


def _packets(cell: CellFinding, room: int) -> list[str]:
    lines = packet_lines(cell)
    if cell.packets is None:
        lines = [part for line in lines for part in _wrap(line, room - 2)]
    return [f"  {line}" for line in lines]


def _wrap(note: str, room: int) -> list[str]:
    return textwrap.wrap(plain(note), room, break_on_hyphens=False)
