"""The results table of a run as plain text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from analysis.records.cells import cells_of, describe_absence
from analysis.records.kernel_warnings import find_kernel_warnings
from analysis.records.kind import default_beside, is_default
from analysis.records.metric import PLT, Metric
from analysis.records.results import Identity, Results, gather_results, read_results
from analysis.report.evidence import trial_lines
from analysis.report.kind import report_of
from analysis.report.provenance import origins_of
from analysis.report.publications import find_publication, rebuild
from analysis.report.verdict import findings
from analysis.stats.estimates import LEVEL, Estimate
from analysis.tables.columns import Column, render_columns
from analysis.tables.rows import median_of
from analysis.tables.table import Pair, ResultTable, make_table
from analysis.words import MISSING, axis_value, axis_word, capitalised, clean, count, number, signed
from testbed.model import Experiment, Record

MIN_WIDTH = 20
MAX_REASONS = 10
MAX_ROWS = 60
LEAST_VALUE = 12
"""Characters of a knob's value that stay where room is short."""


def render_table(
    results_dir: Path, width: int, read: Results | None = None, metric: Metric = PLT
) -> str:
    """Return the table of ``results_dir`` in lines of at most ``width`` characters.

    Columns that do not fit are left out, spreads and the paper's load times first.  Of more than
    MAX_ROWS rows the first are shown, and where the others are.  ``read`` is what was read of the
    folder already.  Numbers are of ``metric``; what was published is a load time, and stands beside
    no other.

    Raises:
        ConfigurationError: the records must not be pooled, or the manifest is not a run's.
        StorageError: the folder cannot be read.
    """
    results = read or read_results(results_dir)
    table = _make_table(results, metric)
    room = max(width, MIN_WIDTH)
    own_text = report_of(table.kind).text
    if own_text is not None:
        notes = [*origins_of(results.manifest), _identity(results.identity, table.kind)]
        wrapped = (part for note in notes for part in _wrap(note, room))
        return "\n".join([own_text(results, room).rstrip(), *wrapped, ""])
    columns = table_columns(table)
    rows = max(len(column.cells) for column in columns)
    notes = [*describe_absence(table.cells), *findings(table, judged_here=results.judged_here),
             *(_claims(results) if metric == PLT else ()), *_reasons(table), *_complaints(results),
             *origins_of(results.manifest), _identity(results.identity, table.kind)]  # fmt: skip
    if rows > MAX_ROWS:
        columns = [replace(column, cells=column.cells[:MAX_ROWS]) for column in columns]
        notes.insert(0, f"... and {count(rows - MAX_ROWS, 'more row')}: table.csv has all of them.")
    wrapped = (part for note in notes for part in _wrap(note, room))
    return (
        "\n".join([*_heading(table.metric, room), *render_columns(columns, room), "", *wrapped])
        + "\n"
    )


def render_so_far(
    experiment: Experiment, records: Sequence[Record], width: int, metric: Metric = PLT
) -> str:
    """Return the table of the records that a run has so far, without proof and identity.

    Raises:
        ConfigurationError: the records must not be pooled.
    """
    manifest = {"experiment": asdict(replace(experiment, repetitions=1))}
    results = gather_results(Path(), records, manifest)
    table = _make_table(results, metric)
    columns, room = table_columns(table), max(width, MIN_WIDTH)
    return "\n".join([*_heading(table.metric, room), *render_columns(columns[:-1], room)])


def table_columns(table: ResultTable) -> list[Column]:
    """Return all columns of ``table``."""
    rows = table.pairs if table.paired else table.cells
    axes = [
        Column(axis_word(name), [axis_value(name, row.axes.get(name)) for row in rows],
               left=name in ("page", "mechanism"), least=None if name == "page" else LEAST_VALUE)
        for name in table.axes
    ]  # fmt: skip
    status = [row.status.replace("_", " ") for row in rows]
    measured = _pair_columns(table) if table.paired else _cell_columns(table)
    if not table.coverage.plain:
        measured.append(Column("recording %", [row.coverage.covered for row in rows], left=True))
    return [*axes, *measured, Column("proof", status, left=True, least=24)]


def _claims(results: Results) -> list[str]:
    """Say how many claims of an experiment of our own hold, and which do not."""
    reference = find_publication(results)
    if reference is None or reference.stated:
        return []  # of a publication the report tells: there its reasons are
    rebuilt = rebuild(results)
    assert rebuilt is not None  # noqa: S101 - whatever is referred to is rebuilt
    checks = [check for check in rebuilt.checks if check.agreement != "not measured"]
    others = [check for check in checks if check.agreement != "agrees"]
    return [
        f"{len(checks) - len(others)} of {count(len(checks), 'claim')} agree.",
        *(f"{check.where}: {check.what}: {check.agreement}: {check.ours}." for check in others),
    ]


def _make_table(results: Results, metric: Metric) -> ResultTable:
    reference = find_publication(results) if metric == PLT else None
    return make_table(cells_of(results, metric), reference)


def _heading(metric: Metric, room: int) -> list[str]:
    """Say of which metric the numbers are, unless it is the load time."""
    if is_default(metric):
        return []
    usual = default_beside(metric).label
    return _wrap(f"{capitalised(metric.label)} ({metric.name}), not {usual}:", room)


def _pair_columns(table: ResultTable) -> list[Column]:
    pairs, metric = table.pairs, table.metric
    unit, per, places = (" s", 1000.0, 3) if metric.is_time else ("", 1.0, metric.places)
    samples = [pair.samples for pair in pairs]
    gains = [pair.shift.percent if pair.shift else None for pair in pairs]
    arms = []
    for name, own in zip(("off", "on"), zip(*samples, strict=True), strict=True):
        medians = [sample.median if sample else None for sample in own]
        times = [number(median.value / per if median else None, places) for median in medians]
        arms.append((Column(f"{name}{unit}", times), _interval_column(medians, places, 3, per)))
    gain = (
        Column("gain %", [number(median_of(p.improvement_pct), 1) for p in pairs]),
        _interval_column(gains, 1, 1),
    )
    groups = (*arms, gain) if metric.unit else arms  # of almost nothing a share says nothing
    columns = [column for group in groups for column in group[: 1 + table.repeated]]
    if len({len(pair.seeds) for pair in pairs}) > 1:
        columns.append(Column("n", [str(len(pair.seeds)) for pair in pairs]))
    if any(p.paper for p in pairs):
        paper = [pair.paper for pair in pairs]
        columns += [
            Column("paper off", [number(p.plt_off_s if p else None, 2) for p in paper], 5),
            Column("on", [number(p.plt_on_s if p else None, 2) for p in paper], 5),
            Column("paper %", [number(p.improvement_pct if p else None, 0) for p in paper], 1),
            Column("diff", [signed(_difference(pair), 1) for pair in pairs], 4),
        ]
    return columns


def _cell_columns(table: ResultTable) -> list[Column]:
    cells, metric = table.cells, table.metric
    medians = [cell.sample.median if cell.sample else None for cell in cells]
    return [
        Column(metric.with_unit(metric.short),
               [number(m.value if m else None, metric.places) for m in medians]),
        *([_interval_column(medians, metric.places, 2)] if table.repeated else []),
        *(
            Column(other.with_unit(other.short),
                   [number(median_of(cell.by(other).spread), other.places) for cell in cells])
            for other in table.further
        ),
        Column("n", [f"{len(c.by_seed)}/{c.planned}" for c in cells], 1),
    ]  # fmt: skip


def _interval_column(
    estimates: Sequence[Estimate | None], places: int, rank: int, per: float = 1.0
) -> Column:
    """Return the intervals of ``estimates``, divided by ``per``; of few values, their range."""
    intervals = [estimate.interval if estimate else None for estimate in estimates]
    levels = {interval.level for interval in intervals if interval}
    cells = [
        f"{number(interval.low / per, places)}..{number(interval.high / per, places)}"
        if interval
        else MISSING
        for interval in intervals
    ]
    return Column("range" if levels and max(levels) < LEVEL else "interval", cells, rank)


def _difference(pair: Pair) -> float | None:
    if pair.improvement_pct is None or pair.paper is None:
        return None
    return pair.improvement_pct.median - pair.paper.improvement_pct


def _reasons(table: ResultTable) -> list[str]:
    lines = [line for line in trial_lines(table) if line.outcome != "ok"]
    reasons = [
        f"{line.name}{f', Fast Open {line.arm}' if line.arm else ''}, seed {line.seed}: "
        f"{line.outcome.replace('_', ' ')}{f': {clean(line.reason)}' if line.reason else ''}"
        for line in lines[:MAX_REASONS]
    ]
    if len(lines) > MAX_REASONS:
        reasons.append(f"... and {len(lines) - MAX_REASONS} more: see report.html")
    return reasons


def _complaints(results: Results) -> list[str]:
    """Return what a kernel of the user's own complained of: of names that begin with a letter."""
    if not (results.identity.kernel_version or "")[:1].isalpha():
        return []
    return [
        f"The kernel says, in {count(warning.trials, 'trial')}: {warning.title}"
        for warning in find_kernel_warnings(results.folder, results.records)[:MAX_REASONS]
    ]


def _identity(identity: Identity, kind: str) -> str:
    clients = ", ".join(f"{name} {version}" for name, version in identity.clients.items())
    client = f"client: {clients or 'none'}; " if report_of(kind).names_client else ""
    return clean(
        f"Kernel: {identity.kernel or 'none'} {identity.kernel_version or ''}; "
        f"{client}environment {identity.environment or 'none'}."
    )


def _wrap(note: str, room: int) -> list[str]:
    return textwrap.wrap(textwrap.shorten(note, 400, placeholder=" …"), room)
