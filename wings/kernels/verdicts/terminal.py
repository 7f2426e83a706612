"""The table of kernels in words: for a terminal, for a mail, and for a commit message.

The mail is Markdown as well: its table and packets are indented by four, which shows them as they
are.  All of it is ASCII.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from analysis.formats.lines import join_lines
from analysis.records.metric import Metric
from analysis.tables.columns import GAP, Column, axis_columns, render_columns
from analysis.verdicts.compare.attribution import (
    CLOCK_READ_NS,
    HARMLESS_PCT,
    HARMLESS_THREADS_PCT,
    LEAST_SEEDS,
)
from analysis.verdicts.compare.comparison import CellFinding
from analysis.verdicts.compare.sentences import label_cell, moved_of, packet_lines
from analysis.words import capitalised, clean, count
from wings.kernels.verdicts.answer import answer, describe_family, others
from wings.kernels.verdicts.table import Attribution, FailRule, LaneVerdicts, came_to, size_of

MAIL_WIDTH = 76
"""Columns of a line in a mail, as lists of the kernel have them."""
INDENT = "    "
COMMIT_WIDTH, COMMIT_INDENT = 72, "  "
COMMIT_CELLS = 6
"""Of so many cells, those that moved most, a commit message gives the metric before and after."""
WIDTH = 100
MAX_SHOWN = 3
"""Of so many cells of a kernel the first packet that differs is shown."""
MAX_COUNTERS = 6
MAX_WARNINGS = 3
"""So many complaints of a kernel are shown for a cell."""
MISSING = "-"
MEANINGS = (
    f"no effect: captures equal to the bit. phase only: the same packets, shifted by clock reads "
    f"of {CLOCK_READ_NS} ns. other packets: the load time is the same. graph asks in an order that "
    "only the network decides: what differs is TCP's. wget2 is judged alike, but for what the "
    f"order of its threads gives (spread, up to {HARMLESS_THREADS_PCT:g} %). Other clients, and "
    f"lost packets, are slower or faster where the shift over {LEAST_SEEDS} seeds or more is not "
    f"0, above {HARMLESS_PCT:g} % for other clients, which a harmless change gives, and where all "
    "such cells together show more than chance; else it is spread."
)


def render_text(attribution: Attribution, rule: FailRule, width: int = WIDTH) -> str:
    """Return the table, what differs first in the cells that changed most, and the summary."""
    lines = [*_table(attribution, width), ""]
    for lane in attribution.lanes:
        for cell in _telling(lane)[:MAX_SHOWN]:
            lines += textwrap.wrap(describe(attribution, lane, cell), width)
            lines += [f"  {line}" for line in evidence(cell)]
    lines += [
        part for sentence in summary(attribution, rule) for part in textwrap.wrap(sentence, width)
    ]
    return join_lines(lines)


def render_markdown(attribution: Attribution, rule: FailRule) -> str:
    """Return the same for a mail: lines of at most 76 characters, the summary first."""
    metric = attribution.metric
    names = ", ".join(lane.name for lane in attribution.lanes)
    label = capitalised(metric.labels)
    head = f"{label} on {names} against {attribution.base_name}, in virtual time:"
    lines = [*textwrap.wrap(head, MAIL_WIDTH), ""]
    for sentence in summary(attribution, rule):
        lines += textwrap.wrap(sentence, MAIL_WIDTH)
    room = MAIL_WIDTH - len(INDENT)
    lines += ["", *(f"{INDENT}{line}" for line in _table(attribution, room)), ""]
    for lane in attribution.lanes:
        for cell in _telling(lane)[:1]:
            lines += [*textwrap.wrap(describe(attribution, lane, cell), MAIL_WIDTH), ""]
            for line in evidence(cell):
                lines += textwrap.wrap(line, MAIL_WIDTH, initial_indent=INDENT,
                                       subsequent_indent=f"{INDENT}    ",
                                       break_on_hyphens=False)  # fmt: skip
            lines.append("")
    lines += textwrap.wrap(MEANINGS, MAIL_WIDTH)
    return join_lines(lines)


def render_commit(attribution: Attribution) -> str:
    """Return a paragraph for each later kernel, in the columns that git and checkpatch.pl want."""
    lines: list[str] = []
    for lane in attribution.lanes:
        lines += [""] * bool(lines) + [*_paragraph(attribution, lane)]
    return join_lines(lines)


def _paragraph(attribution: Attribution, lane: LaneVerdicts) -> Iterator[str]:
    label = attribution.metric.labels
    head = (f"Firstflight, {label} in virtual time, {attribution.base_name} before and "
            f"{lane.name} after: {answer(lane)}.")  # fmt: skip
    yield from textwrap.wrap(head, COMMIT_WIDTH, break_on_hyphens=False)
    moved = sorted(
        (cell for cell in lane.cells if came_to(cell).verdict in ("slower", "faster")),
        key=size_of,
        reverse=True,
    )
    if not moved:
        return
    yield ""
    for cell in moved[:COMMIT_CELLS]:
        yield from _commit_row(name_row(attribution, cell), cell, attribution.metric)
    if len(moved) > COMMIT_CELLS:
        yield f"{COMMIT_INDENT}and {len(moved) - COMMIT_CELLS} more"
    first = next((cell for cell in moved if came_to(cell).counters), None)
    if first is not None:
        counters = _counters(first)[:MAX_COUNTERS]
        yield ""
        where = f"Counters of one load ({name_row(attribution, first)}): "
        yield from textwrap.wrap(where + ", ".join(counters), COMMIT_WIDTH)


def _commit_row(name: str, cell: CellFinding, metric: Metric) -> list[str]:
    before, after = (f"{side.median_ms:.{metric.places}f}" if side and side.median_ms is not None
                     else "-" for side in (cell.base, cell.new))  # fmt: skip
    pct = came_to(cell).pct
    size = f" ({pct.value:+.2f}%)" if pct is not None else ""
    spent = moved_of(cell).partition(": ")[2]
    text = f"{name}: {before} -> {metric.with_unit(after)}{size}{': ' if spent else ''}{spent}"
    return textwrap.wrap(text, COMMIT_WIDTH, initial_indent=COMMIT_INDENT,
                         subsequent_indent=COMMIT_INDENT * 2, break_on_hyphens=False)  # fmt: skip


def summary(attribution: Attribution, rule: FailRule) -> list[str]:
    """Return a sentence or two for each kernel, and one on what failed."""
    return [*(_of_lane(attribution, lane) for lane in attribution.lanes),
            *([_failed(attribution, rule)] if rule.on != "none" else []), *_of_base(attribution),
            *(f"{lane.name} has not all of what was changed: {lane.comparison.misses}."
              for lane in attribution.lanes if lane.comparison.misses)]  # fmt: skip


def describe_lane(lane: LaneVerdicts) -> str:
    """Return how many cells came to what, and the median change."""
    counts = ", ".join(f"{n} {verdict}" for verdict, n in lane.counts.items())
    median = f"; median {lane.median_pct:+.2f} %" if lane.median_pct is not None else ""
    return f"Cells: {counts}{median}"


def name_row(attribution: Attribution, cell: CellFinding) -> str:
    """Return a cell by the axes that tell it apart."""
    return label_cell(attribution.names, cell.axes)


def describe(attribution: Attribution, lane: LaneVerdicts, cell: CellFinding) -> str:
    """Return everything about a cell on a kernel but its packets and counters."""
    came, size = came_to(cell), ""
    if came.pct is not None:
        size = f", {came.pct.value:+.3f} %"
        if inside := came.pct.interval:
            level = f"{inside.level * 100:.0f} % interval"
            size += f" ({level} {inside.low:+.2f}..{inside.high:+.2f} %)"
    name = f"{lane.name}: {name_row(attribution, cell)}"
    return f"{name}: {came.verdict}{size}; {clean(came.reason)}."


def evidence(cell: CellFinding) -> list[str]:
    """Return the first packet that differs, retransmissions, and the counters that part."""
    warnings = came_to(cell).kernel_warnings
    lines = [line for warning in warnings[:MAX_WARNINGS] for line in warning.lines]
    if len(warnings) > MAX_WARNINGS:
        lines.append(f"and {len(warnings) - MAX_WARNINGS} more on its console")
    lines += packet_lines(cell)
    if cell.change is not None and len({*cell.change.retransmits}) > 1:
        lines.append("Retransmitted: {} in base, {} in new.".format(*cell.change.retransmits))
    if spent := moved_of(cell):
        lines.append(f"Spent: {spent}.")
    if named := _counters(cell):
        more = f" and {len(named) - MAX_COUNTERS} more" if len(named) > MAX_COUNTERS else ""
        lines.append(f"Counters: {', '.join(named[:MAX_COUNTERS])}{more}.")
    return lines


def _counters(cell: CellFinding) -> list[str]:
    """Return the counters that part in the first load that differs."""
    return [f"{each.end} {clean(each.name)} {each.base} -> {each.new}"
            for each in came_to(cell).counters]  # fmt: skip


def _table(attribution: Attribution, room: int) -> list[str]:
    """Return the table; kernels for which there is no room come in further ones below it."""
    rows, metric = attribution.rows, attribution.metric
    left = axis_columns(attribution.names, [row.axes for row in rows])
    base = metric.with_unit(attribution.base_name)
    values = [MISSING if r.base is None else f"{r.base:.{metric.places}f}" for r in rows]
    left.append(Column(base, values))
    used = sum(column.width + len(GAP) for column in left)
    lines: list[str] = []
    for block in _blocks(attribution, room - used):
        lines += [""] * bool(lines) + render_columns([*left, *block], room)
    return lines


def _blocks(attribution: Attribution, room: int) -> Iterator[list[Column]]:
    block: list[Column] = []
    for place, lane in enumerate(attribution.lanes):
        cells = [row.cells[place] for row in attribution.rows]
        words = [came_to(cell).words if cell else MISSING for cell in cells]
        column = Column(lane.name, words, left=True)
        used = sum(each.width + len(GAP) for each in (*block, column)) - len(GAP)
        if block and used > room:
            yield block
            block = []
        block.append(column)
    yield block


def _telling(lane: LaneVerdicts) -> Sequence[CellFinding]:
    """Return the cells with other packets, what failed first, then by the size of the change."""
    order = list(lane.counts)
    cells = [
        cell for cell in lane.cells if came_to(cell).verdict not in ("no effect", "phase only")
    ]
    return sorted(cells, key=lambda cell: (order.index(came_to(cell).verdict), -size_of(cell)))


def _of_lane(attribution: Attribution, lane: LaneVerdicts) -> str:
    head = f"{lane.name} against {attribution.base_name}: {answer(lane)}."
    text = " ".join([head, *others(lane), describe_lane(lane)])
    extreme = lane.extreme
    pct = came_to(extreme).pct if extreme is not None else None
    if extreme is None or pct is None or not round(pct.value, 2):
        return f"{text}."
    return f"{text}, most {pct.value:+.2f} % in {name_row(attribution, extreme)}."


def _of_base(attribution: Attribution) -> list[str]:
    """Return what the first kernel complains of itself."""
    found = {warning.title: cells for lane in attribution.lanes[:1]
             for warning, cells in lane.base_kernel_warnings.items()}  # fmt: skip
    return [
        f"{attribution.base_name} itself says {title} ({count(cells, 'cell')}): not held against "
        "the others."
        for title, cells in found.items()
    ]


def _failed(attribution: Attribution, rule: FailRule) -> str:
    n = attribution.flagged(rule)
    least = f" by {rule.least_pct:g} % or more" if rule.least_pct else ""
    what = "another packet" if rule.on == "any" else f"slower{least}"
    if any("broken" in lane.counts for lane in attribution.lanes):
        what += ", or broken" if rule.on == "slower" else ", or fail"
    cells = sum(len(lane.cells) for lane in attribution.lanes)
    together = [f"; {describe_family(family)}" for lane in attribution.lanes
                for family in lane.families if rule.flags_family(family)]  # fmt: skip
    how = "have" if n != 1 else "has"
    if rule.on == "slower":
        how = "are" if n != 1 else "is"
    return f"Flagged: {n} of {count(cells, 'cell')} {how} {what}{''.join(together)}."
