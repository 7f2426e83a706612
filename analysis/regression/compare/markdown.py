"""A comparison as a comment on a pull request: the verdict, the cells that changed, folded details.

GitHub Flavored Markdown; text from results is escaped, so that no name can become markup.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysis.regression.compare.comparison import CellFinding, Comparison, Verdict
from analysis.regression.compare.phrases import (
    headline,
    name_cell,
    packet_lines,
    plain,
    rule,
    sentence,
    size_of,
    under_test,
    verdict_words,
)
from analysis.words import clean, count

SIGNS: dict[Verdict, str] = {
    "different": ":x:",
    "inconclusive": ":grey_question:",
    "same": ":white_check_mark:",
}
MAX_CELLS = 50
"""A comment holds 65536 characters."""
MAX_DETAILS = 10
SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")


def render_markdown(comparison: Comparison) -> str:
    """Return the comment; equal comparisons give equal text."""
    told = [cell for cell in comparison.worst_first if cell.verdict != "same"]
    lines = [f"### {SIGNS[comparison.verdict]} Page load times: {escape(headline(comparison))}", ""]
    lines += [f"{escape(comparison.new)} against {escape(comparison.base)}.", ""]
    lines += _table(comparison, told[:MAX_CELLS])
    if len(told) > MAX_CELLS:
        lines += [f"... and {count(len(told) - MAX_CELLS, 'more cell')}.", ""]
    for cell in told[:MAX_DETAILS]:
        lines += _details(comparison, cell)
    notes = [*under_test(comparison), *comparison.notes, rule(comparison)]
    return plain("\n".join([*lines, *(f"- {escape(note)}" for note in notes)])) + "\n"


def escape(text: str) -> str:
    """``text`` so that it is shown as it is: no markup, no HTML, no mention of a user."""
    return SPECIAL.sub(r"\\\1", _html(text))


def _table(comparison: Comparison, cells: Sequence[CellFinding]) -> list[str]:
    if not cells:
        return []
    rows = [
        "| " + " | ".join(
            (
                escape(name_cell(comparison, cell)),
                *(_ms(side.median_ms if side else None) for side in (cell.base, cell.new)),
                escape(size_of(cell)) or "-",
                f"{SIGNS[comparison.counted(cell)]} {escape(verdict_words(comparison, cell))}",
            )
        ) + " |"
        for cell in cells
    ]  # fmt: skip
    heads = ["| Cell | Base ms | New ms | Difference | Verdict |", "|:--|--:|--:|--:|:--|"]
    return [*heads, *rows, ""]


def _details(comparison: Comparison, cell: CellFinding) -> list[str]:
    lines = [
        f"<details><summary>{_html(name_cell(comparison, cell))}</summary>",
        "",
        escape(sentence(comparison, cell)),
        "",
    ]
    packets = packet_lines(cell)
    if packets:
        lines += ["```", *(line.replace("`", "'") for line in packets), "```", ""]
    return [*lines, "</details>", ""]


def _html(text: str) -> str:
    entities: dict[str, str | int | None] = {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "@": "@&ZeroWidthSpace;",
    }
    return clean(text).translate(str.maketrans(entities))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
