"""Write table.csv, summary.json and report.html into a results folder."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from analysis import words
from analysis.calibration import calibrations
from analysis.cells import NOT_RUN, cells_of, experiment_of
from analysis.charts import draw_table
from analysis.coverage import describe, list_not_exact
from analysis.load import Results, read_results
from analysis.provenance import command_of, manifest_sections
from analysis.reference import Reference, read_reference
from analysis.rendering import TEMPLATES, open_templates
from analysis.rows import render_csv
from analysis.settling import wide_intervals
from analysis.summary import render_summary, summarise
from analysis.table import Table, make_table
from analysis.trials import cost_lines, hello_lines, trial_lines
from analysis.verdict import findings
from analysis.waterfall import Waterfalls, gather_waterfalls
from analysis.whole_file import write_whole


def write_reports(results_dir: Path) -> None:
    """Write the three files, each one whole or not at all.

    Raises:
        ConfigurationError: the records must not be pooled, or the manifest is not a run's.
        StorageError: the folder cannot be read or written.
    """
    results = read_results(results_dir)
    reference = find_reference(results)
    table = make_table(cells_of(results), reference)
    falls = gather_waterfalls(results_dir, table.cells)
    remedy = (
        "the records are intact: make room or check the permissions, "
        f"then run ./run.sh report {results_dir}"
    )
    write_whole(results_dir / "table.csv", render_csv(table), remedy)
    write_whole(results_dir / "summary.json", render_summary(summarise(results, table)), remedy)
    page = render_html(results, table, reference, falls)
    write_whole(results_dir / "report.html", page, remedy)


def find_reference(results: Results) -> Reference | None:
    """Return the published table that the experiment names, if it names one.

    Raises:
        ConfigurationError: it names one that does not exist.
    """
    name = experiment_of(results.manifest).get("reference")
    return read_reference(str(name)) if name else None


def render_html(
    results: Results, table: Table, reference: Reference | None, falls: Waterfalls
) -> str:
    """Return the report as one page without external resources."""
    environment = open_templates()
    script = (TEMPLATES / "waterfall.js").read_text(encoding="utf-8")
    lines = trial_lines(table)
    experiment = experiment_of(results.manifest)
    asked_pct = experiment.get("until_ci_pct")
    not_exact, more_not_exact = list_not_exact(results.records)
    return environment.get_template("report.html.jinja").render(
        title=words.clean(str(experiment.get("title") or experiment.get("name") or "Results")),
        experiment=experiment,
        identity=results.identity,
        table=table,
        reference=reference,
        findings=findings(table),
        chart=draw_table(table),
        calibrations=calibrations(results.records),
        trials=lines,
        not_counted=[line for line in lines if line.outcome != "ok"],
        not_run=sum(cell.outcomes.get(NOT_RUN, 0) for cell in table.cells),
        coverage=describe(table.coverage),
        not_exact=not_exact,
        more_not_exact=more_not_exact,
        hellos=hello_lines(table.cells),
        costs=cost_lines(table.cells),
        warm_ups=results.warm_ups,
        unsettled=wide_intervals(table, float(asked_pct)) if asked_pct else (),
        waterfalls=falls,
        waterfall_data=_waterfall_data(falls, table),
        manifest=manifest_sections(results.manifest),
        command=command_of(results.manifest),
        folder=words.clean(results.folder.resolve().name),
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _waterfall_data(falls: Waterfalls, table: Table) -> dict[str, Any]:
    lines = {line.trial_id: (place, line) for place, line in enumerate(trial_lines(table))}
    loads = []
    for load in falls.loads:
        place, line = lines[load["id"]]
        arm = {None: "", "off": "without Fast Open", "on": "with Fast Open"}.get(line.arm, "")
        verdict = "" if line.outcome == "ok" else f" ({line.outcome}: does not count)"
        loads.append(
            {
                **load,
                "pair": f"{line.name}, seed {line.seed}",
                "arm": f"{arm}{verdict}".strip(),
                "place": place,
            }
        )
    return {"urls": falls.urls, "loads": loads}
