"""A fifth kind of trial in a copy of the tree: two folders and a line, and it has what all have.

It records one number: planned, performed and judged, then shown, reported and compared.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.test_additions import COPIED, ROOT, Change, apply, ask

LEFT_OUT = ("__pycache__", "samples", "baselines", "source", "*.ipynb")
RESULTS = ROOT / "analysis"
COMMITTED = {
    "page_load": RESULTS / "baselines" / "nightly",
    "server_load": RESULTS / "samples" / "overload-establishment",
    "scenario": RESULTS / "samples" / "scenarios",
}
REGISTRY: Change = (
    "testbed/kinds/__init__.py",
    '    "testbed.kinds.command.description",\n',
    '    "testbed.kinds.command.description",\n    "testbed.kinds.number.description",\n',
)
IN_TESTBED = {
    "__init__.py": '"""Numbers: a kind of trial that does nothing but know one."""\n',
    "spec.py": '''\
"""Spec of a number: what it is multiplied by."""

from dataclasses import dataclass
from typing import Annotated, Literal

from testbed.model.knob import Knob


@dataclass(frozen=True, slots=True)
class NumberSpec:
    """A number, so many times."""

    factor: Annotated[int, Knob("How many times.", label="Factor", low=1, high=9, since=4)]
    kind: Literal["number"] = "number"

    @property
    def draws(self) -> bool:
        """A number does not depend on a seed."""
        return False
''',
    "measurement.py": '''\
"""Measurement of a number: the number."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    """A number that was measured."""

    value: int
    """The number."""
''',
    "description.py": '''\
"""Description of numbers."""

from testbed.kinds.kind import Kind
from testbed.kinds.number.measurement import Number
from testbed.kinds.number.spec import NumberSpec

KIND = Kind(
    name="number",
    package=__package__,
    spec=NumberSpec,
    measured=Number,
    kept_as="number",
    kept_words="The number; null of others.",
    trial="a number that is multiplied",
    no_draw=lambda: "a number is a number: ask for one repetition",
    needed=("factor",),
    files=("number.txt",),
    words=lambda number: f"number {number.value}",
)
''',
    "performance.py": '''\
"""Number, performed."""

from testbed.kinds.number.spec import NumberSpec


def perform(trial, site, observation):
    factor = trial.condition_as(NumberSpec).factor
    (site.out / "number.txt").write_text(str(factor))
    observation["lab"] = {"measurements": [], "knobs": {}}
    observation["number"] = {"value": 42 * factor}
''',
    "judgement.py": '''\
"""Judgement of a number: it is proven by itself."""

from dataclasses import dataclass

from testbed.kinds.judgement import Judgement
from testbed.kinds.number.measurement import Number
from testbed.model.observation import Observation
from testbed.model import Proof


@dataclass(frozen=True, slots=True)
class NumberObservation(Observation):
    number: Number | None = None


OBSERVATION = NumberObservation


def judge(trial, observed, out):
    return Judgement(observed.number, Proof(0, 0, 0, 0, 0, 0, 0, {}, {}))
''',
}
IN_ANALYSIS = {
    "__init__.py": '"""Numbers."""\n',
    "records.py": '''\
"""Metric and columns of numbers."""

from __future__ import annotations

from analysis.records.kind import RecordKind
from analysis.records.metric import Metric

METRICS = (Metric("value", "number", "number", 0.0, places=1, better="smaller"),)
DESCRIPTION = RecordKind(
    metrics=METRICS,
    holds="number",
    knobs=("factor", "kind"),
    axes=("factor",),
    offered="of numbers {}",
)
''',
    "tables.py": '''\
"""Tables of numbers."""

from __future__ import annotations

from analysis.kinds.number.records import METRICS
from analysis.tables.kind import TableKind
from analysis.tables.rows import describe_metrics

DESCRIPTION = TableKind(
    trials="numbers",
    columns={"Of numbers: a row for each condition": describe_metrics(METRICS)},
    of_trial=lambda record: {"number": {"value": METRICS[0].of(record.measured)}},
    performer="a hand",
)
''',
    "report.py": '''\
"""Report of numbers."""

from __future__ import annotations

from analysis.report.kind import ReportKind

DESCRIPTION = ReportKind(trial="number")
''',
    "report.html.jinja": """\
{% extends "report.html.jinja" %}
{% block lead %}<p class="lead">How large is the number?</p>{% endblock %}
""",
    "verdicts.py": '''\
"""Verdicts on numbers."""

from __future__ import annotations

from analysis.verdicts.compare.kind import VerdictKind

DESCRIPTION = VerdictKind()
''',
}
ROOMS = {"testbed/kinds/number": IN_TESTBED, "analysis/kinds/number": IN_ANALYSIS}

RUN = """\
import json, sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from firstflight.reference import render_knobs
from firstflight.results_reference import render_results
from testbed.base.errors import ConfigurationError
from testbed.experiment.config import Catalogue, load_experiment
from testbed.experiment.options import parse_override
from testbed.experiment.plan import plan_trials
from testbed.kernel.run.interface import RawResult
from testbed.kinds.workspace import Site
from testbed.model import OBSERVATION_FILE, TRIAL_FILE, Cost
from testbed.results.environment import Environment
from testbed.results.manifest import load_manifest, make_manifest, write_manifest
from testbed.results.progress import ProgressLines
from testbed.results.records import read_records
from testbed.setup.bundle import PROGRAMS
from testbed.runner.judge import conclude
from testbed.runner.local import RunSetup, on_this_machine
from testbed.runner.run import run_experiment
from testbed.runner.trial import main as perform

class InProcess:
    name, version, confinement = "virtual", "7.3", "none"

    def run(self, trial, page, out, slot, cancel):
        assert page is None
        (out / TRIAL_FILE).write_text(json.dumps(asdict(trial)))
        perform(Site(out, out, out, out))
        return RawResult("ended", "", "", Cost(0.0, 0.0, 0.0), out / OBSERVATION_FILE)

folder = Path(sys.argv[1])
there = Catalogue(frozenset(), frozenset(), frozenset(), {"virtual": ("7.3",)})
config = folder / "numbers.toml"
config.write_text('kind = "number"\\nrepetitions = 2\\n[sweep]\\nfactor = [1, 2]\\n')
def refused(*sets):
    try:
        load_experiment(config, there, map(parse_override, sets))
    except ConfigurationError as error:
        return error.problems
asked = load_experiment(config, there)
results = folder / "results"
results.mkdir()
environment = Environment({"kernel": "none"}, {}, {})
manifest = make_manifest(asked, environment, datetime.now(UTC), ())
write_manifest(results, manifest)
said = []
tally = run_experiment(
    results, manifest, on_this_machine(RunSetup(InProcess(), {}, conclude, 1), environment),
    ProgressLines(said.append)
)
records = read_records(results)
print(json.dumps({
    "exit": tally.exit_code,
    "read": load_manifest(results) == manifest,
    "measured": [[r.trial.condition.factor, r.measured.value, r.outcome] for r in records],
    "lines": [json.loads(line) for line in (results / "records.jsonl").read_text().splitlines()],
    "kept": [sorted(record.artefacts) for record in records],
    "said": "".join(said),
    "guest": "testbed.kinds.number.performance" in PROGRAMS,
    "listed": "`factor`" in render_knobs(),
    "described": "[Number](#number) or null" in render_results(),
    "unknown": refused('kind="numbr"'),
    "other": refused("rtt_ms=20"),
    "wrong": refused("factor=10"),
    "committed": [
        record.trial.kind for name in sys.argv[2:] for record in read_records(Path(name))
    ],
}))

"""
SHOW = """\
import json, shutil, sys
from pathlib import Path
from analysis.kinds.number.records import METRICS
from wings.papers.notebooks.show import describe_results
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
base, new = Path(sys.argv[1]) / "results", Path(sys.argv[1]) / "new"
shutil.copytree(base, new)
lines = (new / "records.jsonl").read_text()
(new / "records.jsonl").write_text(lines.replace('"value":42', '"value":63'))
results = write_reports(base)
same, more = compare_results(base, base), compare_results(base, new)
render_page(more)
print(json.dumps({
    "csv": (base / "table.csv").read_text().splitlines(),
    "summary": json.loads((base / "summary.json").read_text()),
    "report": (base / "report.html").read_text(),
    "text": render_table(base, 120).splitlines(),
    "so_far": render_so_far(load_manifest(base).experiment, results.records, 120).splitlines(),
    "frame": trial_frame(results).to_dict("list"),
    "requests": len(request_frame(results)),
    "described": describe_results(results, "why").splitlines()[-1],
    "verdicts": [same.verdict, more.verdict],
    "by": compare_results(base, new, CompareOptions(metric=METRICS[0])).metric.name,
    "effects": [cell["effect"]["ms"] for cell in describe_comparison(more)["cells"]],
    "sentences": render_text(more, 120).splitlines(),
    "baseline": sorted(draft_baseline(base, base.parent / "none").files),
    "help": metric_option(lambda **_given: None).__click_params__[0].help,
    "reference": render_results(),
}))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with a fifth kind in it."""
    tree = tmp_path_factory.mktemp("fifth") / "tree"
    for name in COPIED:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.copy(ROOT / "pyproject.toml", tree)
    apply(tree, (REGISTRY,))
    for room, files in ROOMS.items():
        (tree / room).mkdir()
        for name, text in files.items():
            (tree / room / name).write_text(text)
    return tree


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run is."""
    return tmp_path_factory.mktemp("numbers")


@pytest.fixture(scope="module")
def run(tree: Path, folder: Path) -> dict[str, Any]:
    """What becomes of an experiment of the kind."""
    return ask(tree, RUN, str(folder), *map(str, COMMITTED.values()))


@pytest.fixture(scope="module")
def shown(tree: Path, folder: Path, run: dict[str, Any]) -> dict[str, Any]:
    """What analysis makes of its results."""
    assert run["exit"] == 0
    return ask(tree, SHOW, str(folder))


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


def test_it_is_planned_performed_judged_recorded_and_read_back(run: dict[str, Any]) -> None:
    assert (run["exit"], run["read"]) == (0, True)
    assert run["measured"] == [[1, 42, "ok"], [2, 84, "ok"]] * 2
    lines = run["lines"]
    assert [line["number"] for line in lines] == [{"value": 42}, {"value": 84}] * 2
    assert all(line[name] is None for line in lines for name in ("load", "served", "executed"))
    assert run["kept"] == [["number.txt", "observation.json"]] * 4
    assert "factor=2 seed=1  number 84" in str(run["said"])
    assert run["guest"] and run["listed"] and run["described"]
    assert '"command" or "number" (did you mean' in str(run["unknown"])
    assert "trials of the kind number have no such knob" in str(run["other"])
    assert "10 is not a whole number from 1 to 9" in str(run["wrong"])


def test_what_is_committed_of_the_others_is_read_as_before(run: dict[str, Any]) -> None:
    assert run["committed"] and set(run["committed"]) == COMMITTED.keys()


def test_it_has_a_table(shown: dict[str, Any]) -> None:
    assert shown["csv"] == [
        "factor,value,planned,proven,status,problems", "1,42,2,2,proven,", "2,84,2,2,proven,",
    ]  # fmt: skip
    text = shown["text"]
    assert text[0].split() == ["factor", "number", "n", "proof"]
    assert text[2].split() == ["1", "42.0", "2/2", "proven"]
    assert "All 4 numbers are recorded as verified by packet capture." in text
    assert shown["so_far"][2].split() == text[2].split()[:-1]


def test_it_has_a_frame(shown: dict[str, Any]) -> None:
    frame = shown["frame"]
    assert sorted(zip(frame["factor"], frame["value"], strict=True)) == [
        (1, 42),
        (1, 42),
        (2, 84),
        (2, 84),
    ]
    assert shown["requests"] == 0
    assert shown["described"] == "4 of 4 numbers proven in 2 cells, n = 2 in each"


def test_it_has_a_summary(shown: dict[str, Any]) -> None:
    cells = shown["summary"]["cells"]
    assert [cell["condition"]["factor"] for cell in cells] == [1, 2]
    numbers = [trial["number"] for cell in cells for trial in cell["trials"]]
    assert numbers == [{"value": 42}] * 2 + [{"value": 84}] * 2


def test_it_has_a_report(shown: dict[str, Any]) -> None:
    report = shown["report"]
    assert "How large is the number?" in report
    assert '<td class="group strong">84.0' in report
    assert '<td class="text">a hand</td>' in report
    assert "a number is a number: ask for one repetition" in report
    assert "Waterfalls" not in report


def test_it_is_compared(shown: dict[str, Any]) -> None:
    assert (shown["verdicts"], shown["by"]) == (["same", "different"], "value")
    assert shown["effects"] == [21.0, 0.0]
    heading, _, *rows = shown["sentences"]
    assert heading.split()[:3] == ["factor", "base", "new"]
    assert ["1", "42.0", "63.0", "+21.0"] in [row.split()[:4] for row in rows]
    assert shown["baseline"] == ["manifest.json", "records.jsonl"]


def test_the_help_and_the_reference_name_it(shown: dict[str, Any]) -> None:
    assert "of numbers value" in shown["help"]
    assert "of numbers `factor`" in shown["reference"]
    assert "### Of numbers: a row for each condition" in shown["reference"]
