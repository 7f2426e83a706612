"""The table of promises as text: for a terminal, and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from analysis.formats.markdown import escape, make_table
from analysis.tables.columns import Column, render_columns
from analysis.words import clean, count
from wings.scenarios.analysis.promises import SETTLED, PromiseTable

MIN_WIDTH = 20
MAX_SAID = 500
LEAST_TITLE, LEAST_SOURCE = 44, 16


def render_promises(table: PromiseTable, width: int) -> str:
    """Return the table in lines of at most ``width`` characters, and why what is not kept is not.

    Where room is short sources go first.
    """
    room = max(width, MIN_WIDTH)
    columns = [
        Column("scenario", [row.name for row in table.rows], left=True),
        Column("promise", [clean(row.promise.title) for row in table.rows], 1, True, LEAST_TITLE),
        Column("source", [clean(row.promise.source) for row in table.rows], 2, True, LEAST_SOURCE),
        *(
            Column(lane.name, [row.findings[place].words for row in table.rows], left=True)
            for place, lane in enumerate(table.lanes)
        ),
    ]
    notes = [*_reasons(table), *summaries(table)]
    wrapped = (
        part
        for note in notes
        for part in textwrap.wrap(textwrap.shorten(note, MAX_SAID, placeholder=" …"), room)
    )
    return "\n".join([*render_columns(columns, room), "", *wrapped]) + "\n"


def summaries(table: PromiseTable) -> list[str]:
    """Return a sentence for each lane: how many promises came to what."""
    return [
        f"Kernel {lane.name}: of {count(len(table.rows), 'promise')} "
        + ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in reversed(counts.items()))
        + "."
        for lane, counts in zip(table.lanes, table.counts, strict=True)
    ]


def render_markdown(table: PromiseTable) -> str:
    """Return the table as GitHub Flavored Markdown, with what is not kept below it."""
    rows = (
        (f"`{row.name}`", escape(row.promise.title), escape(row.promise.source),
         *(_marked(finding.words, finding.state) for finding in row.findings))
        for row in table.rows
    )  # fmt: skip
    lanes = (escape(lane.name) for lane in table.lanes)
    lines = [f"### {escape(table.title)}", ""]
    lines += make_table(("Scenario", "Promise", "Source", *lanes), rows)
    lines += ["", *(f"- {escape(reason)}" for reason in _reasons(table))]
    lines += ["", *map(escape, summaries(table))]
    return "\n".join(lines) + "\n"


def _marked(words: str, state: str) -> str:
    return words if state == "kept" else f"*{words}*" if state in SETTLED[1:3] else f"**{words}**"


def _reasons(table: PromiseTable) -> Iterator[str]:
    """Yield a sentence for each promise that is not kept; kernels that agree are named together."""
    for row in table.rows:
        said: dict[str, list[str]] = {}
        for lane, finding in zip(table.lanes, row.findings, strict=True):
            if finding.state != "kept":
                why = row.says(finding)
                said.setdefault(f"{finding.words}{f': {why}' if why else ''}", []).append(lane.name)
        for words, names in said.items():
            where = f" on {' and '.join(names)}" if len(table.lanes) > 1 else ""
            yield f"{row.name}{where}: {words}"
