"""The results table as plain text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from analysis.records.cells import Spread, cells_of
from analysis.records.results import Identity, Results, read_results
from analysis.report.document import find_reference
from analysis.report.trials import trial_lines
from analysis.report.verdict import findings
from analysis.stats.estimates import Estimate
from analysis.tables.table import Pair, Table, make_table
from analysis.words import axis_value, axis_word, clean, count, number, seconds, signed

MIN_WIDTH = 20
GAP = "  "
MAX_REASONS = 10
MAX_ROWS = 60


def render_table(results_dir: Path, width: int, read: Results | None = None) -> str:
    """Return the table of ``results_dir`` in lines of at most ``width`` characters.

    Columns that do not fit are left out, spreads and the paper's load times first; what stays is
    whole.  Where not even the result fits, each row becomes a sentence.  Of more than MAX_ROWS rows
    the first are shown, and where the others are.  ``read`` is what was read of the folder already.

    Raises:
        ConfigurationError: the records must not be pooled, or the manifest is not a run's.
        StorageError: the folder cannot be read.
    """
    results = read or read_results(results_dir)
    table = make_table(cells_of(results), find_reference(results))
    room = max(width, MIN_WIDTH)
    columns = table_columns(table)
    rows = max(len(column) - 1 for _, column in columns)
    columns = [(rank, column[: MAX_ROWS + 1]) for rank, column in columns]
    lines = align(_fit(columns, room))
    if max(map(len, lines)) > room:
        lines = _list(columns, room)
    notes = [*findings(table), *_reasons(table), _identity(results.identity)]
    if rows > MAX_ROWS:
        notes.insert(0, f"... and {count(rows - MAX_ROWS, 'more row')}: table.csv has all of them.")
    return "\n".join([*lines, "", *(part for note in notes for part in _wrap(note, room))]) + "\n"


# A column: how readily it is left out (0 = never), then its heading and its cells.
Column = tuple[int, list[str]]


def table_columns(table: Table) -> list[Column]:
    """All columns of ``table``."""
    return _pair_columns(table) if table.paired else _cell_columns(table)


def _pair_columns(table: Table) -> list[Column]:
    pairs = table.pairs
    columns = _axis_columns(table, [pair.axes for pair in pairs])
    columns += [
        (0, ["off s", *(seconds(_median(p.plt_off)) for p in pairs)]),
        (0, ["on s", *(seconds(_median(p.plt_on)) for p in pairs)]),
        (0, ["gain %", *(number(_median(p.improvement_pct), 1) for p in pairs)]),
    ]
    if table.repeated:
        columns += [
            (2, ["saved ms", *(number(p.shift.ms.value if p.shift else None, 1) for p in pairs)]),
            (2, ["interval", *(_interval(p.shift.ms if p.shift else None, 1) for p in pairs)]),
            (5, ["spread %", *(_range(p.improvement_pct, 1) for p in pairs)]),
        ]
    if any(p.paper for p in pairs):
        columns += [
            (3, ["paper off", *(number(p.paper.plt_off_s if p.paper else None, 2) for p in pairs)]),
            (3, ["on", *(number(p.paper.plt_on_s if p.paper else None, 2) for p in pairs)]),
            (
                1,
                [
                    "paper %",
                    *(number(p.paper.improvement_pct if p.paper else None, 0) for p in pairs),
                ],
            ),
            (2, ["diff", *(signed(_difference(p), 1) for p in pairs)]),
        ]
    return [*columns, (0, ["<proof", *(p.status.replace("_", " ") for p in pairs)])]


def _cell_columns(table: Table) -> list[Column]:
    cells = table.cells
    columns = _axis_columns(table, [cell.axes for cell in cells])
    return [
        *columns,
        (0, ["PLT ms", *(number(_median(c.plt_ms), 1) for c in cells)]),
        *_interval_columns(table),
        (3, ["spread", *(_range(c.plt_ms, 1) for c in cells)]),
        (1, ["n", *(f"{len(c.proven)}/{c.planned}" for c in cells)]),
        (0, ["<proof", *(c.status.replace("_", " ") for c in cells)]),
    ]


def _interval_columns(table: Table) -> list[Column]:
    if not table.repeated:
        return []
    intervals = (_interval(c.sample.median if c.sample else None, 1) for c in table.cells)
    return [(2, ["interval", *intervals])]


def _axis_columns(table: Table, axes: Sequence[dict[str, object]]) -> list[Column]:
    return [
        (0, [("<" if name == "page" else "") + axis_word(name)]
         + [axis_value(name, one.get(name)) for one in axes])
        for name in table.axes
    ]  # fmt: skip


def _fit(columns: list[Column], room: int) -> list[list[str]]:
    for level in (6, 5, 4, 3, 2, 1):
        kept = [cells for rank, cells in columns if rank < level]
        if sum(map(_width, kept)) + len(GAP) * (len(kept) - 1) <= room:
            return kept
    return [cells for rank, cells in columns if rank == 0]


def _list(columns: list[Column], room: int) -> list[str]:
    """Each row as a sentence, for a terminal too narrow for a table."""
    names = [column[0].lstrip("<") for _, column in columns]
    rows = zip(*(column[1:] for _, column in columns), strict=True)
    sentences = (
        ", ".join(f"{name} {text}" for name, text in zip(names, row, strict=True)) for row in rows
    )
    return [line for sentence in sentences for line in textwrap.wrap(sentence, room)]


def align(columns: list[list[str]]) -> list[str]:
    """The lines of a table of ``columns``, each its heading (``<``: to the left) and its cells."""
    padded = []
    for column in columns:
        left, size = column[0].startswith("<"), _width(column)
        cells = [column[0].lstrip("<"), "-" * size, *column[1:]]
        padded.append([cell.ljust(size) if left else cell.rjust(size) for cell in cells])
    return [GAP.join(row).rstrip() for row in zip(*padded, strict=True)]


def _width(column: list[str]) -> int:
    return max(len(cell.lstrip("<")) for cell in column)


def _median(spread: Spread | None) -> float | None:
    return spread.median if spread else None


def _range(spread: Spread | None, places: int) -> str:
    if spread is None:
        return number(None, places)
    return f"{number(spread.low, places)}..{number(spread.high, places)}"


def _interval(estimate: Estimate | None, places: int) -> str:
    interval = estimate.interval if estimate else None
    if interval is None:
        return number(None, places)
    return f"{number(interval.low, places)}..{number(interval.high, places)}"


def _difference(pair: Pair) -> float | None:
    if pair.improvement_pct is None or pair.paper is None:
        return None
    return pair.improvement_pct.median - pair.paper.improvement_pct


def _reasons(table: Table) -> list[str]:
    lines = [line for line in trial_lines(table) if line.outcome != "ok"]
    reasons = [
        f"{line.name}{f', Fast Open {line.arm}' if line.arm else ''}, seed {line.seed}: "
        f"{line.outcome.replace('_', ' ')}{f': {clean(line.reason)}' if line.reason else ''}"
        for line in lines[:MAX_REASONS]
    ]
    if len(lines) > MAX_REASONS:
        reasons.append(f"... and {len(lines) - MAX_REASONS} more: see report.html")
    return reasons


def _identity(identity: Identity) -> str:
    clients = ", ".join(f"{name} {version}" for name, version in identity.clients.items())
    return clean(
        f"Kernel: {identity.kernel or 'none'} {identity.kernel_version or ''}; "
        f"client: {clients or 'none'}; environment {identity.environment or 'none'}."
    )


def _wrap(note: str, room: int) -> list[str]:
    return textwrap.wrap(textwrap.shorten(note, 400, placeholder=" …"), room)
