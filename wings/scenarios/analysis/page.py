"""Promises in a report: each with its sentence, ladder and script, and what each kernel did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis import plot
from analysis.report.rendering import TEMPLATES, open_templates
from testbed.base.errors import ConfigurationError
from wings.scenarios.analysis.ladder import draw_ladder
from wings.scenarios.analysis.promises import Finding, Lane, PromiseRow, PromiseTable
from wings.scenarios.analysis.terminal import summaries
from wings.scenarios.measurement import ScenarioResult

BADGES = {"kept": ("good", "✓"), "changed": ("warn", "△"), "unsupported": ("none", "○")}
BAD = ("bad", "✗")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A ladder of the lane ``kernel`` as an ``<svg>`` element, or why there is none."""

    kernel: str
    svg: str = ""
    problem: str = ""


def make_entries(table: PromiseTable) -> list[tuple[PromiseRow, list[Drawn]]]:
    """Return every promise with its ladders: the first kernel's, and those with another outcome."""
    return [(row, list(_drawn(row, table.lanes))) for row in table.rows]


def render_promises_page(table: PromiseTable) -> str:
    """Return the table of several kernels as one HTML page without scripts."""
    return (
        open_templates()
        .get_template("scenario/page.html.jinja")
        .render(table=table, entries=make_entries(table), badges=BADGES, bad=BAD,
                summaries=summaries(table),
                style=plot.style_sheet() + (TEMPLATES / "report.css").read_text(encoding="utf-8"))
    )  # fmt: skip


def _drawn(row: PromiseRow, lanes: Sequence[Lane]) -> Iterator[Drawn]:
    shown: list[Finding] = []
    for lane, finding in zip(lanes, row.findings, strict=True):
        record = finding.record
        if record is None or record.measured_as(ScenarioResult) is None:
            continue
        if shown and all(
            (finding.state, finding.evidence) == (other.state, other.evidence) for other in shown
        ):
            continue
        shown.append(finding)
        try:
            yield Drawn(lane.name, draw_ladder(lane.results.folder, record).to_svg())
        except ConfigurationError as error:
            yield Drawn(lane.name, problem="; ".join(error.problems))
