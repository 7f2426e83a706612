"""Report of page loads: pairs, what a visitor sees, neighbours, waterfalls and replay."""

from __future__ import annotations

from typing import Any

from analysis.kinds.page_load.closed_forms import list_closed_forms
from analysis.kinds.page_load.figures import FIGURES
from analysis.kinds.page_load.findings import findings
from analysis.kinds.page_load.opening import describe_openings
from analysis.kinds.page_load.records import FIRST_PLT
from analysis.kinds.page_load.visitor import describe_visitor
from analysis.kinds.page_load.waterfall import Waterfalls, gather_waterfalls
from analysis.records.cells import further_metrics
from analysis.records.replay_coverage import describe, list_not_exact
from analysis.records.results import Results
from analysis.report.evidence import TrialLine
from analysis.report.kind import Parts, ReportKind
from analysis.report.neighbours import list_flows
from analysis.tables.table import ResultTable

ARMS = {None: "", "off": "without Fast Open", "on": "with Fast Open"}


def _parts(results: Results, table: ResultTable, lines: list[TrialLine]) -> Parts:
    falls = gather_waterfalls(results.folder, table)
    not_exact, more_not_exact = list_not_exact(results.records)
    return {"visitor": describe_visitor(table.cells), "openings": describe_openings(table.cells),
            "neighbours": list_flows(table.cells),
            "closed_forms": list_closed_forms(results.folder, table.cells), "waterfalls": falls,
            "revisited": FIRST_PLT in further_metrics(table.cells),
            "waterfall_data": _waterfall_data(falls, lines), "coverage": describe(table.coverage),
            "not_exact": not_exact, "more_not_exact": more_not_exact}  # fmt: skip


def _waterfall_data(falls: Waterfalls, lines: list[TrialLine]) -> dict[str, Any]:
    known = {line.trial_id: (place, line) for place, line in enumerate(lines)}
    loads = []
    for load in falls.loads:
        place, line = known[load["id"]]
        arm = ARMS.get(line.arm, "")
        verdict = "" if line.outcome == "ok" else f" ({line.outcome}: does not count)"
        loads.append({**load, "pair": f"{line.name}, seed {line.seed}",
                      "arm": f"{arm}{verdict}".strip(), "place": place})  # fmt: skip
    return {"urls": falls.urls, "loads": loads}


DESCRIPTION = ReportKind(figures=FIGURES, findings=findings, parts=_parts, names_client=True)
