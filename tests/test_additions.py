"""Additions and the files that they touch: tried in a copy of the tree, which then has to work."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from testbed.base import proc
from testbed.results.folder import read_records
from testbed.root.cache import Root

ROOT = Path(__file__).parent.parent
COPIED = ("analysis", "bench", "configs", "docs", "firstflight", "pages", "testbed", "wings")
Change = tuple[str, str, str]
"""A file, a text in it, and what it is replaced by."""

KNOB: tuple[Change, ...] = (
    (
        "testbed/model/asked.py",
        '''    qdisc: Annotated[str, Knob(''',
        '''    jitter_ms: Annotated[float, Knob(
        "By how much a packet's delay varies, up and down.",
        label="Jitter", unit="ms", low=0, high=1000, since=4, draws=True,
    )] = 0.0  # fmt: skip
    qdisc: Annotated[str, Knob(''',
    ),
    (
        "testbed/lab/link/netem.py",
        "knobs: frozenset[str] = COMMON_KNOBS | TRACE_KNOBS | KNOBS",
        'knobs: frozenset[str] = COMMON_KNOBS | TRACE_KNOBS | KNOBS | {"jitter_ms"}',
    ),
)  # fmt: skip
"""A knob of the link that draws: its declaration, and that one backend has it."""

CLIENT = '''\
"""The curl client: one file."""

from __future__ import annotations

from testbed.client.program import Program
from testbed.client.interface import LoadError, LoadOrder
from testbed.model import PageLoad


class Curl:
    """Fetches the root and nothing else."""

    name = "curl"
    programs = (Program("curl", packages="curl"),)
    tcp_alone = True
    honours = frozenset()

    def load(self, order: LoadOrder) -> PageLoad:
        raise LoadError("this test never loads")
'''

ASK = """\
import json, sys
from analysis.records.kind import records_of
from analysis.shortflow import predict_fetch_ms
from analysis.words import axis_name, axis_value
from tests.closed_form import ColdFetch, fetch_ms
from firstflight.reference import render_knobs
from pathlib import Path
from testbed.experiment.config import Catalogue, load_experiment
from testbed.experiment.knobs import explain, paths
from testbed.experiment.stopping import draws_nothing
from testbed.kinds import KINDS
from testbed.lab.link.netem import NETEM
from testbed.lab.link.protocol import require_emulated
from testbed.lab.link.tap import Tap
from testbed.experiment.label import label, varying
from wings.server_loads.spec import ArrivalSpec, ServerLoad, ServerSpec
from testbed.model import LinkSpec, TcpSpec
from testbed.results.manifest import read_manifest
from testbed.experiment.options import parse_override, select
from testbed.experiment.plan import plan_trials
from testbed.results.folder import read_records
there = Catalogue(frozenset({"amazon"}), frozenset({"graph"}), frozenset(), {"virtual": ("7.3",)})
config = Path(sys.argv[1])
config.write_text('page = "amazon"\\nclient = "graph"\\n')
def load(*sets):
    return load_experiment(config, there, [parse_override(one) for one in sets])
def said(do, *words):
    try:
        do(*words)
    except Exception as error:
        return str(error)
    return ""
asked = load("jitter_ms=[0, 2]")
conditions = asked.conditions
trials, plain = plan_trials(asked), plan_trials(load())
link = conditions[1].link
ids = {}
for folder in map(Path, sys.argv[2:]):
    for record in read_records(folder):
        ids[record.trial_id] = record.trial.id
    read_manifest(folder)
print(json.dumps({
    "ids": ids,
    "same": trials[0].id == plain[0].id, "other": trials[1].id != plain[0].id,
    "labels": [label(t, varying(conditions)) for t in trials],
    "selected": len(select(asked, "jitter_ms=2").conditions),
    "column": "jitter_ms" in records_of("page_load").knobs,
    "word": axis_name("jitter_ms") + " " + axis_value("jitter_ms", 2),
    "knob": explain(paths()["link", "jitter_ms"]),
    "listed": "`jitter_ms`" in render_knobs(),
    "refused": [said(require_emulated, one, link) for one in (NETEM, Tap())],
    "wrong": said(load, "link.jitter_ms=-1"),
    "draws": [condition.draws for condition in conditions],
    "served": [ServerLoad(ServerSpec(), ArrivalSpec(), one).draws for one in (LinkSpec(), link)],
    "copies": [draws_nothing(load()), draws_nothing(load("jitter_ms=2"))],
    "remedies": [KINDS[kind].no_draw() for kind in ("page_load", "server_load", "command")],
    "cannot": [said(predict_fetch_ms, link, TcpSpec(), 400, 9000),
               said(fetch_ms, ColdFetch(link, 400, 9000, False))],
}))
"""

CLIENT_ASK = """\
import json, sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from analysis.verdicts.compare.attribution import tcp_alone
from firstflight.completion import complete
from firstflight.usage import read_verbs
from testbed.client import CLIENTS
from testbed.experiment.config import load_experiment
from testbed.results.environment import Environment
from testbed.setup.programs import find, package_names, programs_of
from testbed.runner import launch
from testbed.runner.prepare import read_catalogue
(curl,) = (one for one in programs_of(("curl",)) if one.name == "curl")
config = Path(sys.argv[1])
config.write_text('page = "amazon"\\n[sweep]\\nclient = ["chromium", "wget2", "curl"]\\n')
experiment = load_experiment(config, read_catalogue())
launch._prepare = lambda *_: (SimpleNamespace(traces={}), Environment({}, {}))
_, (lane,) = launch.open_lanes(
    None, [experiment], 1, config.parent, config.parent / "results", lambda: datetime.now(UTC))
print(json.dumps({
    "named": "curl" in CLIENTS, "found": str(find(curl, Path(sys.argv[2]))),
    "wanted": [package for one in programs_of(tuple(CLIENTS)) for package in package_names(one)],
    "completed": complete(["run", "--client", "cu"], read_verbs()),
    "alone": sorted(tcp_alone(asdict(lane.manifest))), "older": sorted(tcp_alone({})),
}))
"""


IMPORTER = '''\
"""Line importer: a made-up log of one request a line: URL, media type, body."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from testbed.base.errors import ConfigurationError
from wings.pages.importing.importer import Claim, Importer, Reading
from wings.pages.importing.notes import Notes


def read_lines(path: Path, *, url: str | None = None, page: str | None = None) -> Reading:
    """Read one page of a log, whose pages are numbered from 1."""
    pages = path.read_text().split("LINES\\n")[1:]
    number = int(page or 1)
    if number > len(pages):
        raise ConfigurationError([f"no page {number}"])
    claims = []
    for line in pages[number - 1].splitlines():
        asked, mime, body = line.split(" ", 2)
        headers = (("Content-Type", mime),)
        claims.append(Claim(url=asked, headers=headers, body=body.encode(), mime=mime))
    return Reading("Lines", url, date(2026, 1, 2), "A log.", tuple(claims), Notes())


IMPORTER = Importer(
    "lines",
    "a log of lines",
    lambda sample: sample.text.startswith("LINES"),
    read_lines,
    has_pages=True,
)
'''
LINES = """\
LINES
http://www.a.test/ text/html <p>one
LINES
http://www.b.test/ text/html <p>two
http://www.b.test/a.css text/css p{}
"""

IMPORT = """\
import json, sys
from click.testing import CliRunner
from wings.pages.verbs.import_page import import_command
from testbed.archive.reading import read_archive
from testbed.base import places
def run(*words):
    result = CliRunner().invoke(import_command, words, standalone_mode=False)
    return result.output if result.exception is None else str(result.exception)
first, second, wrong = (run(*words.split()) for words in (
    f"{sys.argv[1]} --name one", f"{sys.argv[1]} --name two --page 2",
    f"{sys.argv[1]} --name three --page 3"))
pages = [read_archive(places.PAGES / name) for name in ("one", "two")]
print(json.dumps({"first": first, "second": second, "wrong": wrong,
                  "urls": [[entry.url for entry in page.entries] for page in pages],
                  "unknown": run(sys.argv[2], "--name", "x"), "help": run("--help"),
                  "missing": run(sys.argv[2] + ".not", "--name", "x")}))
"""


VERB = '''\
"""Verb of pages by their size: ``largest``."""

from __future__ import annotations

import click

from firstflight.cli.services import Services, pass_services
from testbed.base.errors import EXIT_OK


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write the name as JSON.")
@pass_services
def largest(services: Services, /, as_json: bool) -> int:
    """Name the last page of the catalogue."""
    name = max(services.catalogue().pages)
    click.echo(f'"{name}"' if as_json else name)
    return EXIT_OK
'''
VERB_LINES: tuple[Change, ...] = (
    (
        "firstflight/cli/main.py",
        '    "plan": "run",\n',
        '    "largest": "largest",\n    "plan": "run",\n',
    ),
    ("pyproject.toml", "| links | machine |", "| links | largest | machine |"),
)
VERB_ASK = """\
import io, json
from contextlib import redirect_stdout
from firstflight.cli.main import main
from firstflight.cli.services import program_services
from firstflight.completion import complete
from firstflight.usage import answer, read_verbs
sections = read_verbs()
text = io.StringIO()
with redirect_stdout(text):
    code = main(["largest", "--json"], program_services())
print(json.dumps({"said": [code, text.getvalue().strip()],
                  "completed": complete(["larg"], sections),
                  "option": complete(["largest", "--j"], sections),
                  "goes on": answer(["largest"], sections) is None,
                  "help": answer(["largest", "--help"], sections).text,
                  "wrong": answer(["largets"], sections).text}))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the program is made of."""
    tree = tmp_path / "tree"
    for name in COPIED:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tree)
    return tree


def apply(tree: Path, changes: tuple[Change, ...]) -> set[str]:
    """Make ``changes``; returns the files that they touch."""
    for name, old, new in changes:
        text = (tree / name).read_text()
        assert text.count(old) == 1, (name, old)
        (tree / name).write_text(text.replace(old, new))
    return {name for name, _, _ in changes}


def ask(tree: Path, script: str, *words: str) -> dict[str, object]:
    """What ``script`` prints as JSON, run with the modules of the copy."""
    code = f"import sys; sys.path.insert(0, {str(tree)!r})\n{script}"
    answer: dict[str, object] = json.loads(
        proc.run((sys.executable, "-P", "-c", code, *words), cwd=tree, timeout_s=120).stdout
    )
    return answer


def test_a_link_knob_touches_two_files_and_renames_no_trial(tree: Path) -> None:
    committed = [*(ROOT / "analysis" / "baselines").iterdir(),
                 *(ROOT / "analysis" / "samples").iterdir()]  # fmt: skip
    folders = [folder for folder in committed if (folder / "records.jsonl").is_file()]
    before = {r.trial_id for folder in folders for r in read_records(folder)}
    assert len(folders) >= 6
    assert len(apply(tree, KNOB)) == 2
    found = ask(tree, ASK, str(tree / "knob.toml"), *map(str, folders))
    ids = found.pop("ids")
    assert isinstance(ids, Mapping)
    assert set(ids) == set(ids.values()) == before
    knob = found.pop("knob")
    assert isinstance(knob, Mapping)
    assert (knob["default"], knob["swept"], knob["since"]) == ("0.0", True, 4)
    assert "-1 is not a number of milliseconds from 0 to 1000" in str(found.pop("wrong"))
    refused = found.pop("refused")
    assert isinstance(refused, list)
    assert refused[0] == ""
    assert refused[1].startswith("the tap link cannot emulate link.jitter_ms = 2.0; ")
    cannot = found.pop("cannot")
    assert cannot == [
        "jitter_ms is 2.0, which the model of short flows does not know: measure this cell",
        "the closed form does not know jitter_ms of the link",
    ]
    remedies = found.pop("remedies")
    assert isinstance(remedies, list)
    assert [remedy for remedy in remedies if "jitter_ms" not in remedy] == []
    assert found == {
        "same": True,
        "other": True,
        "labels": ["page=amazon jitter_ms=0", "page=amazon jitter_ms=2"],
        "selected": 1,
        "column": True,
        "word": "Jitter 2 ms",
        "listed": True,
        "draws": [False, True],
        "served": [False, True],
        "copies": [True, False],
    }


SHOWS: Change = (
    "testbed/model/asked.py",
    'label="Jitter", unit="ms",',
    'label="Jitter", unit="ms", shown="line",',
)


RETRIES = "net.ipv4.tcp_retries2"
MECHANISM = f'''\
"""Retries: how often an end sends data again."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.lab.acting import Acting
from testbed.model import Linked


class Retries(Acting):
    def sysctls(self, condition: Linked) -> dict[str, str]:
        return {{"{RETRIES}": "14"}}

    def expect(self, condition: Linked) -> Iterator[tuple[str, str | None]]:
        yield "client.{RETRIES}", "14"


RETRIES = Retries()
'''
MECHANISM_LINES: tuple[Change, ...] = (
    (
        "testbed/mechanisms/acting.py",
        "\nACTING = (",
        "from testbed.mechanisms.retries.lab import RETRIES\n\nACTING = (RETRIES, ",
    ),
)


@pytest.fixture
def whole(tree: Path) -> Path:
    """A copy in which a load can run."""
    for name in ("bootstrap", "kernels", "profiles", "roots", "scenarios", "traces"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tree


def load(tree: Path, out: str, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the record of a load by the copy."""
    folder = tree / "results" / out
    argv = ("run", "configs/quick.toml", "--only", "tfo=false", "-o", str(folder), *words)
    done = proc.run(
        (sys.executable, "-P", "-m", "firstflight", *argv),
        cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, timeout_s=300, check=False,
    )  # fmt: skip
    (line,) = (folder / "records.jsonl").read_text().splitlines()
    return done.returncode, json.loads(line)


@pytest.mark.guest
@pytest.mark.slow
def test_a_link_knob_on_which_nobody_acts_is_unproven_in_a_real_lab(whole: Path) -> None:
    """The guide's knob, declared and never performed; with a check that claims it, it is proven."""
    apply(whole, KNOB)
    number = count()

    def run(jitter_ms: int) -> tuple[int, str | None]:
        code, record = load(whole, str(next(number)), "--set", f"jitter_ms={jitter_ms}")
        return code, record["reason"]

    assert run(0) == (0, None)
    assert run(30) == (1, "nothing shows that link.jitter_ms = 30.0 was performed")
    apply(whole, (SHOWS,))
    assert run(30) == (0, None)


@pytest.mark.guest
@pytest.mark.slow
def test_a_mechanism_that_acts_touches_its_folder_and_one_list(whole: Path) -> None:
    folder = whole / "testbed" / "mechanisms" / "retries"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""Retries."""\n')
    (folder / "lab.py").write_text(MECHANISM)
    assert len(apply(whole, MECHANISM_LINES)) == 1
    code, record = load(whole, "set")
    assert (code, record["reason"]) == (0, None)
    knobs = record["lab"]["knobs"]
    assert [knobs[f"{end}.{RETRIES}"] for end in ("client", "server")] == ["14", "14"]
    (folder / "lab.py").write_text(MECHANISM.replace("def sysctls", "def forgotten"))
    code, record = load(whole, "forgotten")
    assert (code, record["outcome"]) == (1, "lab_mismatch")
    assert record["reason"].endswith(f"client.{RETRIES} was not read back")


def make_reference(tree: Path) -> None:
    """``make reference`` in the copy."""
    code = f"import sys; sys.path.insert(0, {str(tree)!r}); import runpy; "
    code += "runpy.run_module('firstflight.reference', run_name='__main__')"
    proc.run((sys.executable, "-P", "-c", code), cwd=tree, timeout_s=120)


def test_a_client_of_an_external_program_touches_two_files(tree: Path, root: Root) -> None:
    (tree / "testbed" / "client" / "curl.py").write_text(CLIENT)
    line = '    "graph": ("testbed.client.graph", "Graph"),\n'
    added = '    "curl": ("testbed.client.curl", "Curl"),\n'
    apply(tree, (("testbed/client/__init__.py", line, line + added),))
    make_reference(tree)
    found = ask(tree, CLIENT_ASK, str(tree / "client.toml"), str(root.usr))
    assert (found["found"], found["named"]) == (str(root.usr / "bin" / "curl"), True)
    assert "curl" in str(found["wanted"])  # `root update` locks it
    assert found["completed"] == ["curl"]
    assert found["alone"] == ["curl", "wget2"]  # a manifest that says so
    assert found["older"] == ["graph", "wget2"]


def test_an_importer_touches_its_module_and_the_registry(tree: Path, tmp_path: Path) -> None:
    folder = tree / "wings" / "pages" / "importing"
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    (folder / "lines.py").write_text(IMPORTER)
    apply(
        tree,
        (
            (
                "wings/pages/importing/registry.py",
                '    "resources",\n',
                '    "resources",\n    "lines",\n',
            ),
        ),
    )
    touched = {p.name for p in folder.iterdir() if p.is_file() and before.get(p) != p.read_bytes()}
    assert touched == {"lines.py", "registry.py"}
    file, unknown = tmp_path / "load.log", tmp_path / "unknown"
    file.write_text(LINES)
    unknown.write_text("nothing")
    found = ask(tree, IMPORT, str(file), str(unknown))
    assert str(found["first"]).startswith("one: 1 request to 1 host")
    assert str(found["second"]).startswith("two: 2 requests to 1 host")
    urls = [["http://www.a.test/"], ["http://www.b.test/", "http://www.b.test/a.css"]]
    assert found["urls"] == urls
    assert found["wrong"] == f"{file}: no page 3"
    for message in ("unknown", "missing", "help"):
        assert "a resource table (CSV), or a log of lines" in " ".join(str(found[message]).split())


def test_a_verb_touches_its_module_and_two_lines(tree: Path) -> None:
    (tree / "firstflight" / "cli" / "largest.py").write_text(VERB)
    assert apply(tree, VERB_LINES[:1]) == {"firstflight/cli/main.py"}
    layers = ("lint-imports", "--cache-dir", str(tree / "cache"))
    refused = proc.run(layers, cwd=tree, timeout_s=120, check=False)
    assert refused.returncode != 0
    assert "firstflight.cli.largest" in refused.stdout  # and who adds it learns where it belongs
    assert apply(tree, VERB_LINES[1:]) == {"pyproject.toml"}
    assert "largest" not in proc.run(layers, cwd=tree, timeout_s=120, check=False).stdout
    make_reference(tree)
    found = ask(tree, VERB_ASK)
    last = max(path.name for path in (ROOT / "pages").iterdir() if path.is_dir())
    assert found.pop("said") == [0, f'"{last}"']
    assert "Name the last page of the catalogue." in str(found.pop("help"))
    assert "(did you mean 'largest'?)" in str(found.pop("wrong"))
    assert found == {
        "completed": ["largest"],
        "option": ["--json"],
        "goes on": True,
    }
