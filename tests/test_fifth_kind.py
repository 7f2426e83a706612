"""A fifth kind of trial in a copy of the tree: two folders and a line, and it has what all have.

It records one number.  What performs and judges it is no part of the stub: nothing runs here.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.base import proc

ROOT = Path(__file__).parent.parent
COPIED = ("analysis", "firstflight", "testbed")
LEFT_OUT = ("__pycache__", "samples", "baselines", "source", "*.ipynb")
Change = tuple[str, str, str]
"""A file, a text in it, and what it is replaced by."""

IN_TESTBED = {
    "__init__.py": '"""Probes: how long an echo takes over a distance."""\n',
    "spec.py": '''\
"""Spec of a probe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from testbed.model.knob import Knob


@dataclass(frozen=True, slots=True)
class Probe:
    """One distance."""

    distance_km: Annotated[int, Knob(
        "How far the echo is.", label="Distance", unit="km", low=1, high=40_000, since=3,
    )]
    kind: Literal["probe"] = "probe"
    """What tells it from other kinds where it is stored."""

    @property
    def draws(self) -> bool:
        """Whether a probe depends on its seed."""
        return True
''',
    "measurement.py": '''\
"""Measurement of a probe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe measured."""

    echo_ms: float
    """The time of the echo."""
''',
    "description.py": '''\
"""Description of probes."""

from __future__ import annotations

from testbed.kinds.kind import Kind
from testbed.kinds.probe.measurement import Probed
from testbed.kinds.probe.spec import Probe

KIND = Kind(
    name="probe",
    spec=Probe,
    measured=Probed,
    kept_as="probed",
    kept_words="The echo of a probe; null of others.",
    no_draw=lambda: "it is one echo",
    needed=("distance_km",),
)
''',
}
REGISTRY: Change = (
    "testbed/kinds/__init__.py",
    '    "testbed.kinds.command.description",\n',
    '    "testbed.kinds.command.description",\n    "testbed.kinds.probe.description",\n',
)

IN_ANALYSIS = {
    "__init__.py": '"""Probes."""\n',
    "records.py": '''\
"""Metric and columns of probes."""

from __future__ import annotations

from analysis.records.kind import RecordKind
from analysis.records.metric import Metric

METRICS = (Metric("echo_ms", "echo time", "echo", 0.01, places=2),)
DESCRIPTION = RecordKind(
    metrics=METRICS,
    holds="echo",
    knobs=("distance_km", "kind"),
    offered="of probes {}",
)
''',
    "tables.py": '''\
"""Tables of probes."""

from __future__ import annotations

from analysis.kinds.probe.records import METRICS
from analysis.tables.kind import TableKind
from analysis.tables.rows import describe_metrics

DESCRIPTION = TableKind(
    axes=("distance_km",),
    trials="probes",
    columns={"Of probes: a row for each condition": describe_metrics(METRICS)},
    of_trial=lambda record: {"probed": {"echo_ms": METRICS[0].of(record.measured)}},
    performer="prober",
)
''',
    "report.py": '''\
"""Report of probes."""

from __future__ import annotations

from analysis.report.kind import ReportKind

DESCRIPTION = ReportKind(trial="probe")
''',
    "report.html.jinja": """\
{% extends "report.html.jinja" %}
{% block lead %}<p class="lead">How far is the echo?</p>{% endblock %}
""",
    "verdicts.py": '''\
"""Verdicts on probes."""

from __future__ import annotations

from analysis.verdicts.kind import VerdictKind

DESCRIPTION = VerdictKind()
''',
}
ROOMS = {"testbed/kinds/probe": IN_TESTBED, "analysis/kinds/probe": IN_ANALYSIS}

WRITE = """\
import json, sys
from dataclasses import asdict, replace
from pathlib import Path
from testbed.model import Experiment, LabReading, Measurement, Proof, Trial
from testbed.results.environment import Environment
from testbed.results.manifest import Manifest, write_manifest
from testbed.kinds.probe.spec import Probe
def write(folder, slower_ms=0.0, captured="0"):
    asked = Experiment("probes", "Echoes", (Probe(10), Probe(2000)), 2, kind="probe")
    environment = Environment(parts={"code.testbed": "ab" * 32}, pages={}, facts={})
    lines = []
    for spec in asked.conditions:
        for seed in range(2):
            trial = Trial(spec, seed, seed, "virtual", "7.3")
            lines.append(json.dumps({
                "trial_id": trial.id, "trial": asdict(trial), "outcome": "ok",
                "environment": environment.id, "schema": 3,
                "lab": asdict(LabReading((Measurement("rtt", "ms", 2.001, 2.0, 0.1),), {})),
                "probed": {"echo_ms": spec.distance_km / 100 + seed + slower_ms},
                "proof": asdict(Proof(1, 1, 0, 0, 0, 0, 0, {}, {})),
                "cost": {"cpu_s": 1.0, "wall_s": 2.0, "virtual_s": 3.0},
                "artefacts": {"client.pcap": captured * 64},
            }) + "\\n")
    folder.mkdir()
    (folder / "records.jsonl").write_text("".join(lines))
    ids = tuple(json.loads(line)["trial_id"] for line in lines)
    write_manifest(folder, Manifest(asked, environment, ids, "2026-11-20T23:59:00Z", ("run", "x")))
    return folder
"""
ASK = """\
from analysis.kinds.probe import records
from analysis.notebooks.show import describe_results
from analysis.records.frame import request_frame, trial_frame
from analysis.report.document import write_reports
from analysis.report.terminal import render_so_far, render_table
from analysis.verdicts.baseline import draft_baseline
from analysis.verdicts.compare.comparison import CompareOptions
from analysis.verdicts.compare.documents import describe_comparison, render_page
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import render_text
from firstflight.cli.metric import metric_option
from firstflight.results_reference import render_results
from testbed.results.manifest import load_manifest
base, new = write(Path(sys.argv[1]) / "base"), write(Path(sys.argv[1]) / "new", 1.5, "1")
results = write_reports(base)
same, slower = compare_results(base, base), compare_results(base, new)
metric = compare_results(base, new, CompareOptions(metric=records.METRICS[0]))
render_page(slower)
print(json.dumps({
    "csv": (base / "table.csv").read_text().splitlines(),
    "summary": json.loads((base / "summary.json").read_text()),
    "report": (base / "report.html").read_text(),
    "text": render_table(base, 120).splitlines(),
    "so_far": render_so_far(load_manifest(base).experiment, results.records, 120).splitlines(),
    "frame": trial_frame(results).to_dict("list"),
    "requests": len(request_frame(results)),
    "described": describe_results(results, "why").splitlines()[-1],
    "same": same.verdict,
    "slower": slower.verdict,
    "metric": metric.metric.name,
    "document": describe_comparison(slower)["cells"][0]["effect"],
    "sentences": render_text(slower, 120),
    "baseline": sorted(draft_baseline(base, base.parent / "none").files),
    "help": metric_option(lambda **kwargs: None).__click_params__[0].help,
    "reference": "".join(render_results().values()),
}))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with a fifth kind in it."""
    tree = tmp_path_factory.mktemp("fifth") / "tree"
    for name in COPIED:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns(*LEFT_OUT))
    path, old, new = REGISTRY
    text = (tree / path).read_text()
    assert text.count(old) == 1
    (tree / path).write_text(text.replace(old, new))
    for room, files in ROOMS.items():
        (tree / room).mkdir()
        for name, text in files.items():
            (tree / room / name).write_text(text)
    return tree


@pytest.fixture(scope="module")
def shown(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What analysis makes of results of the kind."""
    script = f"import sys; sys.path.insert(0, {str(tree)!r})\n{WRITE}{ASK}"
    folder = tmp_path_factory.mktemp("results")
    command = (sys.executable, "-P", "-c", script, str(folder))
    answer: dict[str, Any] = json.loads(proc.run(command, cwd=tree, timeout_s=300).stdout)
    return answer


def test_it_is_two_folders_and_a_line(tree: Path) -> None:
    def files(root: Path) -> dict[str, bytes]:
        below = (p for name in COPIED for p in (root / name).rglob("*.*"))
        kept = (p for p in below if p.suffix in (".py", ".jinja") and "source" not in p.parts)
        return {str(path.relative_to(root)): path.read_bytes() for path in kept}

    before, after = files(ROOT), files(tree)
    touched = {path for path in after if before.get(path) != after[path]}
    assert touched == {
        REGISTRY[0], *(f"{room}/{name}" for room, names in ROOMS.items() for name in names),
    }  # fmt: skip
    assert before.keys() <= after.keys()


def test_it_has_a_table(shown: dict[str, Any]) -> None:
    assert shown["csv"] == [
        "distance_km,echo_ms,planned,proven,status,problems",
        "10,0.6,2,2,proven,", "2000,20.5,2,2,proven,",
    ]  # fmt: skip
    text = shown["text"]
    assert text[0].split()[:4] == ["distance", "echo", "ms", "range"]
    assert text[2].split() == ["10", "km", "0.60", "0.10..1.10", "2/2", "proven"]
    assert "All 4 probes are verified by packet capture." in text
    so_far = shown["so_far"]
    assert so_far[2].split() == text[2].split()[:-1]


def test_it_has_a_frame(shown: dict[str, Any]) -> None:
    frame = shown["frame"]
    assert sorted(frame["echo_ms"]) == [0.1, 1.1, 20.0, 21.0]
    assert sorted(frame["distance_km"]) == [10, 10, 2000, 2000]
    assert shown["requests"] == 0
    assert shown["described"] == "4 of 4 probes proven in 2 cells, n = 2 in each"


def test_it_has_a_summary(shown: dict[str, Any]) -> None:
    summary = shown["summary"]
    assert [cell["condition"]["distance_km"] for cell in summary["cells"]] == [10, 2000]
    assert [
        trial["probed"]["echo_ms"] for cell in summary["cells"] for trial in cell["trials"]
    ] == [0.1, 1.1, 20.0, 21.0]


def test_it_has_a_report(shown: dict[str, Any]) -> None:
    report = shown["report"]
    assert "How far is the echo?" in report
    assert '<td class="group strong">20.50' in report
    assert "prober" in report
    assert "Waterfalls" not in report


def test_it_is_compared(shown: dict[str, Any]) -> None:
    assert (shown["same"], shown["slower"], shown["metric"]) == ("same", "different", "echo_ms")
    effect = shown["document"]
    assert effect["ms"] == 1.5
    heading, _, first, *_ = shown["sentences"].splitlines()
    assert heading.split()[:5] == ["distance", "base", "ms", "new", "ms"]
    assert first.split()[:5] == ["10", "km", "0.60", "2.10", "+1.50"]
    assert shown["baseline"] == ["manifest.json", "records.jsonl"]


def test_the_help_and_the_reference_name_it(shown: dict[str, Any]) -> None:
    assert "of probes echo_ms" in shown["help"]
    reference = shown["reference"]
    assert "of probes `distance_km`" in reference
    assert "### Of probes: a row for each condition" in reference
