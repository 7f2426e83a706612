"""The report of a results folder: table.csv, summary.json, report.html and what is rebuilt."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from analysis import plot, words
from analysis.records.cells import NOT_RUN, cells_of, experiment_of
from analysis.records.results import Results, no_collection, read_results
from analysis.report.drawings import Drawing, make_sections
from analysis.report.evidence import calibrations, cost_lines, ecn_lines, hello_lines, trial_lines
from analysis.report.kind import report_of
from analysis.report.provenance import (
    cite_tool,
    command_of,
    manifest_sections,
    origins_of,
    revision_of,
)
from analysis.report.publications import Publication, Rebuilt, find_publication, rebuild
from analysis.report.rendering import TEMPLATES, open_templates
from analysis.report.settling import wide_intervals
from analysis.report.verdict import findings
from analysis.tables.rows import render_csv
from analysis.tables.summary import render_summary, summarise
from analysis.tables.table import ResultTable, make_table
from testbed.base.whole_file import write_whole

SCRIPTS = ("waterfall.js", "tables.js")
NO_WATERFALLS: dict[str, list[Any]] = {"urls": [], "loads": []}


def write_reports(results_dir: Path) -> Results:
    """Write the three files and those of the rebuilt publication, each whole or not at all.

    Returns the results that they were made of.

    Raises:
        ConfigurationError: the records must not be pooled, or the manifest is not a run's.
        StorageError: the folder cannot be read or written.
    """
    with no_collection():
        results = read_results(results_dir)
        files = _render(results)
    remedy = (
        "the records are intact: make room or check the permissions, "
        f"then run ./run.sh report {results_dir}"
    )
    for name, text in files.items():
        write_whole(results_dir / name, text, remedy)
    return results


def _render(results: Results) -> dict[str, str]:
    """Return every file as text, by name; the rebuilt ones first."""
    reference = find_publication(results)
    table = make_table(cells_of(results), reference)
    rebuilt = rebuild(results)
    return {**(rebuilt.files if rebuilt else {}), "table.csv": render_csv(table),
            "summary.json": render_summary(summarise(results, table)),
            "report.html": render_html(results, table, reference, rebuilt)}  # fmt: skip


def render_html(
    results: Results, table: ResultTable, reference: Publication | None, rebuilt: Rebuilt | None
) -> str:
    """Return the report as one page without external resources; equal records, equal page."""
    lines = trial_lines(table)
    own = report_of(table.kind).parts(results, table, lines)
    experiment = experiment_of(results.manifest)
    asked_pct = experiment.get("until_ci_pct")
    figures = [
        Drawing(figure.chart, figure.caption, figure.title)
        for figure in (rebuilt.figures if rebuilt else ())
    ]
    sections = make_sections(table)
    script = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS)
    return (
        open_templates()
        .get_template(f"{table.kind}/report.html.jinja")
        .render(
            title=words.clean(str(experiment.get("title") or experiment.get("name") or "Results")),
            experiment=experiment, identity=results.identity, table=table, pages=_pages(table),
            reference=reference, rebuilt=rebuilt, figures=figures, sections=sections,
            findings=findings(table, judged_here=results.judged_here), trials=lines,
            not_counted=[line for line in lines if line.outcome != "ok"],
            not_run=sum(cell.outcomes.get(NOT_RUN, 0) for cell in table.cells),
            calibrations=calibrations(results.records), hellos=hello_lines(table.cells),
            ecns=ecn_lines(table), costs=cost_lines(table.cells), warm_ups=results.warm_ups,
            **{"waterfall_data": NO_WATERFALLS, **own},
            unsettled=wide_intervals(table, float(asked_pct)) if asked_pct else (),
            manifest=manifest_sections(results.manifest), command=command_of(results.manifest),
            origins=origins_of(results.manifest),
            citations=[cite_tool(revision_of(results.manifest)),
                       *([reference.entry] if reference and reference.entry else [])],
            folder=words.clean(results.folder.resolve().name),
            style=plot.style_sheet() + (TEMPLATES / "report.css").read_text(encoding="utf-8"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )  # fmt: skip


def _pages(table: ResultTable) -> list[str]:
    names = (c.axes["page"] for c in table.cells if "page" in c.axes)
    return list(dict.fromkeys(words.axis_value("page", name) for name in names))
