"""A published table and a published figure, and the files that they touch: tried in a copy."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from testbed.base.errors import EXIT_CONFIGURATION
from testbed.model import PageLoad
from testbed.results.folder import read_records
from tests.measured import load_of
from tests.test_additions import ROOT, ask

FIGURE = {
    "wings/papers/published/reference/survey.csv": """\
place,quantity,unit,value,low,high,page,rtt_ms
Figure 1,median_load,s,1.4,,,amazon,20
Figure 1,median_load,s,9,,,amazon,100
""",
    "wings/papers/reproductions/survey.py": '''\
"""Load time by round-trip time: Figure 1 of a survey."""

from analysis import plot
from wings.papers.reproductions.agreement import check_claims
from analysis.report.publications import Figure, Rebuilt
from wings.papers.reproductions.sweep import proven_loads


def rebuild(results, reference):
    loads = proven_loads(results).query("not tfo")
    medians = loads.groupby(["page", "rtt_ms"], as_index=False).agg(median_load=("plt_s", "median"))
    chart = plot.lines(loads, x="rtt_ms", y="plt_s", color="page")
    return Rebuilt(
        "Load time in a survey",
        figures=(Figure("survey", "Figure 1: load time", chart, "Load time over the RTT."),),
        checks=tuple(check_claims(reference, {"cells": medians})),
    )
''',
    "configs/survey.toml": """\
title = "A survey"
reference = "survey"
page = "amazon"
client = "graph"
[sweep]
rtt_ms = [20, 100]
""",
}  # fmt: skip

TABLE = """\
place,quantity,unit,value,low,high,page,rtt_ms,tfo
Table 2,plt,s,1.4,,,amazon,20,false
Table 2,plt,s,,5,9,amazon,100,true
Table 2,plt_ms,ms,1400,,,amazon,20,true
Section 3,improvement,%,,,60,wikipedia,200,
Section 3,plt,s,2,,,wikipedia,150,false
"""
ONLY_TABLE = """\
title = "A survey"
reference = "survey"
page = "amazon"
client = "graph"
[sweep]
rtt_ms = [20, 100]
"""
ASK_TABLE = """\
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from analysis.report.document import write_reports
from firstflight.cli.main import main
from firstflight.cli.services import program_services
def said(*words):
    text = io.StringIO()
    with redirect_stderr(text), redirect_stdout(io.StringIO()):
        code = main(words, program_services())
    return [code, text.getvalue()]
folder, csv = Path(sys.argv[1]), Path("wings/papers/published/reference/survey.csv")
manifest = json.loads((folder / "manifest.json").read_text())
manifest["experiment"]["reference"] = "survey"
(folder / "manifest.json").write_text(json.dumps(manifest))
right = csv.read_text()
answers = {"plan": said("plan", "configs/survey.toml")}
write_reports(folder)
answers["report"] = (folder / "report.html").read_text()
for name, old, new in json.loads(sys.argv[2]):
    csv.write_text(right.replace(old, new))
    answers[name] = [said("plan", "configs/survey.toml"), said("report", str(folder))]
print(json.dumps(answers))
"""
WRONG = {"page": ("amazon,100", "amazom,100"), "quantity": ("plt,s,2,", "ptl,s,2,"),
         "unit": ("plt,s,2,", "plt,min,2,")}  # fmt: skip

PUBLISH = """\
import json, sys
from pathlib import Path
from analysis.report.document import write_reports
from analysis.report.publications import rebuild
from analysis.records.results import read_results
from testbed.experiment.config import load_experiment
from testbed.runner.prepare import read_catalogue
asked = load_experiment(Path("configs/survey.toml"), read_catalogue())
folder = Path(sys.argv[1])
manifest = json.loads((folder / "manifest.json").read_text())
manifest["experiment"]["reference"] = asked.reference
(folder / "manifest.json").write_text(json.dumps(manifest))
results = write_reports(folder)
found = rebuild(results)
print(json.dumps({"checks": [[c.what, c.stated, c.agreement] for c in found.checks],
                  "report": (folder / "report.html").read_text()}))
"""


def test_a_published_figure_touches_its_csv_its_module_and_its_config(
    tree: Path, tmp_path: Path
) -> None:
    for name, text in FIGURE.items():
        assert not (tree / name).exists()
        (tree / name).write_text(text)
    results = tmp_path / "results"
    shutil.copytree(ROOT / "analysis" / "samples" / "paper-table1", results)
    found = ask(tree, PUBLISH, str(results))
    assert found["checks"] == [["median load", "1.4 s", "differs"],
                               ["median load", "9 s", "differs"]]  # fmt: skip
    report = str(found["report"])
    assert "Load time in a survey" in report
    assert "Figure 1: load time" in report
    (amazon_ms,) = [load_of(record).plt_ms for record in read_records(results)
                    if (record.trial.page, record.trial.linked.link.rtt_ms) == ("amazon", 20)
                    and not record.trial.linked.tcp.tfo]  # fmt: skip
    assert f">{amazon_ms / 1000:.2f} s<" in report


def test_a_published_table_is_its_csv_alone(tree: Path, tmp_path: Path) -> None:
    (tree / "wings/papers/published/reference/survey.csv").write_text(TABLE)
    (tree / "configs/survey.toml").write_text(ONLY_TABLE)
    results = tmp_path / "results"
    shutil.copytree(ROOT / "analysis" / "samples" / "paper-table1", results)
    wrong = [[name, *texts] for name, texts in WRONG.items()]
    found = ask(tree, ASK_TABLE, str(results), json.dumps(wrong))
    assert found["plan"] == [0, ""]
    report = str(found["report"])
    begin = report.index("Stated values beside ours")
    rows = re.findall("<tr>(.*?)</tr>", report[begin : report.index("</table>", begin)], re.DOTALL)
    told = [[re.sub("<[^>]+>", "", field).strip() for field in re.findall("<td.*?</td>", row)]
            for row in rows[1:]]  # fmt: skip
    ours = {
        (record.trial.linked.link.rtt_ms, record.trial.linked.tcp.tfo): load.plt_ms
        for record in read_records(results)
        if (load := record.measured_as(PageLoad)) is not None and record.trial.page == "amazon"
    }
    assert [row[:5] for row in told[:3]] == [
        ["Table 2", "page load time, amazon, RTT 20 ms, fast open off", "1.4 s",
         f"{ours[20, False] / 1000:.2f} s", "△ differs"],
        ["Table 2", "page load time, amazon, RTT 100 ms, fast open on", "5 to 9 s",
         f"{ours[100, True] / 1000:.1f} s", "△ differs"],
        ["Table 2", "page load time, amazon, RTT 20 ms, fast open on", "1400 ms",
         f"{ours[20, True]:.1f} ms", "△ differs"],
    ]  # fmt: skip
    assert told[3][1:3] == ["improvement, wikipedia, RTT 200 ms", "at most 60 %"]
    assert told[3][4] == "✓ agrees"
    assert told[4][4].endswith("not measured")
    for name, said in {
        "page": "error: survey.csv:3: page: no page is named 'amazom' (did you mean 'amazon'?); "
        "correct the name, or add that page, or say in survey.toml which of ours stands for it",
        "quantity": "error: survey.csv:6: quantity: trials of the kind page_load are not measured "
        "by 'ptl' (did you mean 'plt'?); use one of plt, ttfb,",
        "unit": "error: survey.csv:6: unit: plt is measured in ms, not in min; state it in ms or s",
    }.items():
        answers = found[name]
        assert isinstance(answers, list)
        for code, text in answers:  # before a run, and of what was run
            assert code == EXIT_CONFIGURATION
            assert text.startswith(said)
