"""Findings of a run, in sentences that follow from the numbers of its table alone."""

from __future__ import annotations

import textwrap

from analysis.records.cells import NOT_RUN
from analysis.records.results import judge
from analysis.report.kind import ReportKind, report_of
from analysis.stats.estimates import LEAST_FOR_LEVEL, LEVEL, level_of_range
from analysis.tables.table import PAIR_AXIS, ResultTable
from analysis.words import clean, count, number
from testbed.kinds import KINDS

MAX_CELLS = 6


def findings(table: ResultTable, *, judged_here: bool = False) -> list[str]:
    """Return short sentences about ``table``; none is said that its numbers do not bear.

    ``judged_here`` says that what its records say of their proof is no mere word.
    """
    kind = report_of(table.kind)
    said = [
        _proven(table, kind, "" if judged_here else "recorded as "),
        *kind.findings(table),
        *_stacks(table),
    ]
    if not kind.spreads:
        return said
    return said + _lost(table) + _draws(table) + _alike_seeds(table) + _levels(table)


def _alike_seeds(table: ResultTable) -> list[str]:
    """Say where repetitions were copies, and what would make them draws."""
    repeated = [cell for cell in table.cells if cell.varies is not None]
    same = sum(cell.copied for cell in repeated)
    if not same:
        return []
    where = "here" if same == len(repeated) else f"in {same} of {count(len(repeated), 'cell')}"
    remedy = KINDS[table.kind].no_draw()
    return [f"Nothing varies between seeds {where}, so there is no interval: {remedy}."]


def _proven(table: ResultTable, kind: ReportKind, how: str) -> str:
    planned = sum(cell.planned for cell in table.cells)
    proven = sum(len(cell.proven) for cell in table.cells)
    trial = kind.trial
    if planned and proven == planned:
        all_of = f"The {trial} is" if planned == 1 else f"All {planned:,} {trial}s are"
        return f"{all_of} {how}verified by packet capture."
    verb = "is" if 1 in (proven, planned) else "are"
    return (
        f"{proven:,} of {count(planned, trial)} {verb} {how}verified by packet capture; "
        f"the other {planned - proven:,} give{'s' * (planned - proven == 1)} no {kind.answer} and "
        f"say{'s' * (planned - proven == 1)} why below."
    )


def _stacks(table: ResultTable) -> list[str]:
    """Say what answered by QUIC: unlike TCP it is the web server's own."""
    replays = (record.replay for cell in table.cells for record in cell.proven)
    stacks = sorted({replay.quic for replay in replays if replay is not None and replay.quic})
    said = f"By QUIC answered {clean('; '.join(stacks))} (initial window, algorithm)."
    return [said] if stacks else []


def _lost(table: ResultTable) -> list[str]:
    """Say of each cell that lost draws how many, why, and what its median is worth without them.

    What counts may be the lucky ones: a load that waited for a lost packet is lost more easily.
    """
    said = []
    for cell in (cell for cell in table.cells if cell.lost and cell.proven):
        name = table.name_row(cell.axes)
        if table.paired:
            name += f", with{'' if cell.axes[PAIR_AXIS] else 'out'} Fast Open"
        others = (f"{n} {what.replace('_', ' ')}" for what, n in cell.outcomes.items()
                  if what not in ("ok", NOT_RUN))  # fmt: skip
        reasons = dict.fromkeys(reason for r in cell.records if (reason := judge(r)[1]))
        why = "; ".join(textwrap.shorten(clean(each), 100, placeholder=" …") for each in reasons)
        worth = {
            True: ", and its median stays within its interval whatever these would have been",
            False: ", and with these its median might lie outside its interval: it is not safe",
            None: "",
        }[cell.is_safe]
        said.append(
            f"{name}: {len(cell.proven)} of {cell.planned} count, {', '.join(others)}"
            f"{f' ({why})' if why else ''}{worth}."
        )
    more = len(said) - MAX_CELLS
    return said if more <= 0 else [
        *said[:MAX_CELLS], f"So it is with {count(more, 'more cell')}: see table.csv."
    ]  # fmt: skip


def _levels(table: ResultTable) -> list[str]:
    """Say how sure the intervals are, and what too few loads leave open."""
    repeated = [len(cell.proven) for cell in table.cells if cell.varies]
    if not repeated:
        return []
    least = min(repeated)
    level = number(LEVEL * 100, 0)
    said = f"Each interval contains the true median with at least {level} % probability."
    if least < LEAST_FOR_LEVEL:
        reached = number(level_of_range(least) * 100, 1)
        said = (
            f"{count(least, 'seed')} {'is' if least == 1 else 'are'} too few for "
            f"intervals of {level} %: a range of the loads contains the true median with "
            f"{reached} % probability, and cannot prove a difference. From {LEAST_FOR_LEVEL} seeds "
            "on there are intervals."
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
        f"A cell with one load shows one seed, and another seed may give another time: "
        f"-n {LEAST_FOR_LEVEL} shows the spread."
    ]
