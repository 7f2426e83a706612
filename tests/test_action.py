"""The action for other repositories: its steps are run as a runner does, in a folder of their own.

Of a runner there are its files and variables, and a server in place of its API.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from ruamel.yaml import YAML

from firstflight.pull_request import LARGEST, comment
from testbed.base import places, proc
from tests.docker.context import copy_context
from tests.web import Handler, Server, running

ACTION = places.ROOT / "action.yml"
BASELINE = places.ROOT / "analysis" / "baselines" / "nightly"
TOKEN = "a-token"  # noqa: S105
STUB = """#!/bin/sh
# In place of the program: loads are not run, but copied.
printf '%s\\n' "$@" >>"$RUNNER_TEMP/said"
case $1 in
  run) for out in "$@"; do [ "$last" != -o ] || break; last=$out; done
       cp -r "$RUNNER_TEMP/loads" "$out"; exit "$(cat "$RUNNER_TEMP/status")" ;;
  pages) exit 0 ;;
  *) exec PROGRAM "$@" ;;
esac
"""


class Api(Handler):
    """Comments of a pull request, as the service keeps them."""

    comments: list[dict[str, Any]]
    forbidden = False

    def get(self) -> None:
        page = int(parse_qs(urlsplit(self.path).query)["page"][0])
        self._answer(self.comments[100 * (page - 1) : 100 * page])

    def post(self) -> None:
        self._write({"id": len(self.comments) + 1, "user": {"type": "Bot"}})

    def do_PATCH(self) -> None:  # noqa: N802 - the server's name
        self._write(self.comments[int(self.path.rpartition("/")[2]) - 1])

    def _write(self, told: dict[str, Any]) -> None:
        told["body"] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        if told not in self.comments:
            self.comments.append(told)
        self._answer(told)

    def _answer(self, told: Any) -> None:
        if self.forbidden or self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.send_error(403)
            return
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@dataclass
class Runner:
    """A runner: what a job has of it, and the steps of an action in order."""

    folder: Path
    action_path: Path
    event: dict[str, Any] = field(default_factory=lambda: {"pull_request": {"number": 7}})
    api: str = ""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    used: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("workspace", "temp"):
            (self.folder / name).mkdir(parents=True)
        self.workspace, self.temp = self.folder / "workspace", self.folder / "temp"
        self.summary = self.folder / "summary"
        self.summary.touch()

    def perform(self, **inputs: str) -> bool:
        """Perform all steps; whether the job then goes on."""
        action = YAML(typ="safe").load(ACTION)
        assert set(inputs) <= set(action["inputs"])
        defaults = {name: each["default"] for name, each in action["inputs"].items()}
        given = {f"inputs.{name}": text for name, text in {**defaults, **inputs}.items()}
        given |= {"github.token": TOKEN}
        given = {name: self._fill(text, given) for name, text in given.items()}
        good = True
        for step in action["runs"]["steps"]:
            if not self._wanted(step.get("if", ""), given) or not (
                good or "cancelled" in step.get("if", "")
            ):
                continue
            if "uses" in step:
                filled = {name: self._fill(text, given) for name, text in step["with"].items()}
                self.used.append((step["uses"], filled))
            else:
                good &= self._run(step, given) == 0
        return good

    def _fill(self, text: str, given: dict[str, str]) -> str:
        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name.startswith("steps."):
                _, step, _, output = name.split(".")
                return self.outputs[step].get(output, "")
            return given[name]

        return re.sub(r"\$\{\{ ([a-z.]+) \}\}", value, text)

    def _wanted(self, condition: str, given: dict[str, str]) -> bool:
        words = condition.removeprefix("${{").removesuffix("}}").split("&&")
        for word in filter(None, map(str.strip, words)):
            compared = re.fullmatch(r"([a-z.]+) != ''", word)
            assert compared or word == "!cancelled()", word
            if compared and not self._fill(f"${{{{ {compared[1]} }}}}", given):
                return False
        return True

    def _run(self, step: dict[str, Any], given: dict[str, str]) -> int:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]  # what somebody else wrote is never part of a script
        script, output = self.folder / "script", self.folder / "output"
        script.write_text(step["run"])
        output.write_text("")
        (self.folder / "event.json").write_text(json.dumps(self.event))
        env = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "XDG_CACHE_HOME")
            if name in os.environ
        }
        env |= {"GITHUB_ACTION_PATH": str(self.action_path), "GITHUB_API_URL": self.api,
                "GITHUB_EVENT_PATH": str(self.folder / "event.json"), "GITHUB_OUTPUT": str(output),
                "GITHUB_REPOSITORY": "somebody/website", "RUNNER_TEMP": str(self.temp),
                "GITHUB_STEP_SUMMARY": str(self.summary),
                "GITHUB_WORKSPACE": str(self.workspace)}  # fmt: skip
        env |= {name: self._fill(text, given) for name, text in step.get("env", {}).items()}
        done = proc.run(("bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)), env=env,
                        cwd=self.workspace, check=False, timeout_s=600)  # fmt: skip
        lines = [line.partition("=") for line in output.read_text().splitlines()]
        self.outputs[step.get("id", "")] = {name: value for name, _, value in lines}
        self.said[step["name"]] = done.stdout + done.stderr
        self.statuses[step["name"]] = done.returncode
        return done.returncode


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Firstflight as a runner has it: a copy without git."""
    folder = tmp_path_factory.mktemp("action") / "firstflight"
    copy_context(folder)
    return folder


@pytest.fixture
def api() -> Iterator[tuple[str, type[Api]]]:
    Own = type("Own", (Api,), {"comments": []})  # noqa: N806 - a class
    with running(Server(Own)) as server:
        yield f"http://127.0.0.1:{server.server_port}", Own


@pytest.fixture
def runner(tmp_path: Path, tree: Path, api: tuple[str, type[Api]]) -> Runner:
    """A runner on which no load is run."""
    stubbed = tmp_path / "stubbed"
    stubbed.mkdir()
    for path in tree.iterdir():
        if path.name != "run.sh":
            shutil.copytree(path, stubbed / path.name) if path.name in (
                "bootstrap",
                "pages",
                "roots",
                "testbed",
            ) else (stubbed / path.name).symlink_to(path)
    (stubbed / "run.sh").write_text(STUB.replace("PROGRAM", str(tree / "run.sh")))
    (stubbed / "run.sh").chmod(0o755)
    made = Runner(tmp_path / "job", stubbed, api=api[0])
    shutil.copytree(BASELINE, made.temp / "loads")
    (made.temp / "status").write_text("0")
    shutil.copytree(BASELINE, made.workspace / "perf" / "baseline")
    (made.workspace / "perf" / "mine.toml").write_text("# an experiment")
    return made


def test_a_run_that_is_the_same_is_told_once_and_kept_current(
    runner: Runner, api: tuple[str, type[Api]]
) -> None:
    given = {"config": "perf/mine.toml", "baseline": "perf/baseline",
             "budgets": "plt_ms <= 4000\n\nplt_ms <= 900 page=tum-website,rtt_ms=20\n",
             "arguments": "--jobs\n2\n"}  # fmt: skip
    assert runner.perform(**given), runner.said
    out = runner.temp / "firstflight" / "page-loads"
    said = (runner.temp / "said").read_text().splitlines()
    assert said[: said.index("compare")] == [
        "run", "perf/mine.toml", "--no-store", "-o", str(out / "results"), "--jobs", "2"
    ]  # fmt: skip
    assert "::" not in "".join(runner.said.values())
    summary = runner.summary.read_text()
    assert ":white_check_mark:" in summary and "All budgets kept" in summary
    assert [each["body"] for each in api[1].comments] == [
        f"<!-- firstflight: page-loads -->\n{(out / 'comment.md').read_text()}"
    ]
    for name in ("compare.xml", "budgets.xml"):
        assert 'failures="0"' in (out / name).read_text()
    cache, upload = runner.used
    assert "~/.cache/firstflight/kernels/7.*" in cache[1]["path"]
    assert re.fullmatch("firstflight-[0-9a-f]{32}", cache[1]["key"])
    assert upload[1] == {"name": "page-loads", "path": str(out)}
    # The next push: the same comment, with what is then true.
    assert runner.perform(**{**given, "budgets": ""})
    assert [("budgets" in each["body"]) for each in api[1].comments] == [False]


def test_the_key_of_the_cache_is_that_of_what_makes_its_parts(runner: Runner) -> None:
    assert runner.perform()
    (runner.action_path / "firstflight").unlink()
    (runner.action_path / "firstflight").mkdir()
    runner.perform(comment="false")
    (runner.action_path / "testbed" / "kernel" / "more.patch").write_text("other")
    runner.perform(comment="false")
    keys = [given["key"] for used, given in runner.used if "cache@" in used]
    assert keys[0] == keys[1] != keys[2]


def test_what_moved_and_what_is_over_budget_is_annotated_and_fails(
    runner: Runner, api: tuple[str, type[Api]]
) -> None:
    records = runner.temp / "loads" / "records.jsonl"
    loads = [json.loads(line) for line in records.read_text().splitlines()]
    for load in loads:
        load["load"]["plt_ms"] += 200 * (load["trial"]["condition"]["page"] == "wikipedia")
    records.write_text("".join(f"{json.dumps(load)}\n" for load in loads[:-1]))
    (runner.temp / "status").write_text("4")  # as loads that are missing end a run
    assert not runner.perform(config="perf/mine.toml", baseline="perf/baseline",
                              budgets="plt_ms <= 900")  # fmt: skip
    assert list(runner.statuses.values()) == [0, 4, 1, 0]
    (held,) = (said for name, said in runner.said.items() if name.startswith("Hold them"))
    assert "::error file=perf/mine.toml,line=1,title=page=wikipedia rtt_ms=20 tfo=false::" in held
    assert re.search("::error file=perf/mine.toml.*over 900 ms", held)
    assert re.search("::error file=perf/mine.toml.*not measured: 1 of 2 count", held)
    assert ":x:" in runner.summary.read_text()
    assert [each["body"].count(":x:") > 1 for each in api[1].comments] == [True]
    assert len(runner.used) == 2  # the report is kept all the more


def test_a_page_of_ones_own(runner: Runner) -> None:
    shutil.copytree(places.PAGES / "wsj", runner.workspace / "home-page")
    (runner.workspace / "shop.har").write_text("{}")
    assert runner.perform(page="home-page", comment="false")
    assert (runner.action_path / "pages" / "of-the-workflow" / "page.toml").is_file()
    assert runner.perform(page="shop.har", comment="false")
    assert runner.perform(page="wikipedia", comment="false")
    said = (runner.temp / "said").read_text()
    assert said.count("page=of-the-workflow\n") == 2 and said.count("page=wikipedia\n") == 1
    assert "pages\nimport\nshop.har\n--name\nof-the-workflow\n--replace\n" in said
    assert said.count(f"run\n{runner.action_path}/configs/quick.toml\n") == 3


def test_a_run_without_results_says_nothing_more(runner: Runner) -> None:
    (runner.temp / "status").write_text("2")
    (runner.temp / "loads" / "records.jsonl").unlink()
    assert not runner.perform(baseline="perf/baseline", budgets="plt_ms <= 1")
    assert list(runner.statuses.values()) == [0, 2, 0, 0]
    assert runner.summary.read_text() == ""


def test_a_name_that_is_no_word_is_refused(runner: Runner) -> None:
    assert not runner.perform(name="../x")
    assert "name: letters, digits and hyphens" in runner.said["What is needed"]
    assert not (runner.temp / "said").exists()


def environment_of(runner: Runner) -> dict[str, str]:
    event = runner.folder / "event.json"
    event.write_text(json.dumps(runner.event))
    return {"GITHUB_EVENT_PATH": str(event), "GITHUB_API_URL": runner.api, "TOKEN": TOKEN,
            "GITHUB_REPOSITORY": "somebody/website"}  # fmt: skip


def test_a_comment_of_a_person_is_left_alone(runner: Runner, api: tuple[str, type[Api]]) -> None:
    mark = "<!-- firstflight: a -->\n"
    api[1].comments += [{"id": n, "user": {"type": "User"}, "body": mark} for n in range(1, 102)]
    environment = environment_of(runner)
    assert comment("a", "x" * LARGEST, environment) == "commented on the pull request"
    assert len(api[1].comments[-1]["body"]) == LARGEST
    assert "up to date" in comment("a", "second", environment)
    assert "commented" in comment("b", "other", environment)
    assert [each["body"] for each in api[1].comments[101:]] == [
        f"{mark}second", "<!-- firstflight: b -->\nother"
    ]  # fmt: skip
    assert {each["body"] for each in api[1].comments[:101]} == {mark}


def test_who_may_not_comment_is_told_and_has_not_failed(
    runner: Runner, api: tuple[str, type[Api]]
) -> None:
    api[1].forbidden = True
    assert runner.perform(baseline="perf/baseline")
    said = runner.said["Summary, and comment on the pull request"]
    assert "::warning::no comment on the pull request: HTTP Error 403" in said
    runner.event = {"schedule": "17 2 * * *"}
    assert runner.perform(baseline="perf/baseline")
    assert "of no pull request" in runner.said["Summary, and comment on the pull request"]


@pytest.mark.guest
@pytest.mark.thorough
def test_its_steps_give_the_committed_numbers_from_another_repository(
    tmp_path: Path, tree: Path, api: tuple[str, type[Api]]
) -> None:
    runner = Runner(tmp_path / "job", tree, api=api[0])
    shutil.copytree(BASELINE, runner.workspace / "perf" / "baseline")
    shutil.copy(places.CONFIGS / "nightly.toml", runner.workspace / "perf" / "mine.toml")
    assert runner.perform(config="perf/mine.toml", baseline="perf/baseline",
                          budgets="plt_ms <= 5000", name="mine"), runner.said  # fmt: skip
    (told,) = api[1].comments
    assert told["body"].startswith("<!-- firstflight: mine -->\n### :white_check_mark:")
    assert "All budgets kept" in told["body"]
    assert (runner.temp / "firstflight" / "mine" / "results" / "report.html").is_file()
