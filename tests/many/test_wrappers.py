"""The wrappers that users copy come to what one run comes to, byte by byte."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from testbed.base import places, proc
from tests.many.hosts import Hosts
from tests.many.running import QUICK, RUN_S, assert_same, start
from tests.many.slurm import Slurm
from tests.test_workflow import command_of, commands

EXAMPLES = places.ROOT / "examples" / "many-machines"
PARTS = "4"
OPTIONS = ("-n", "4")
WORKFLOW: dict[str, Any] = YAML(typ="safe").load(EXAMPLES / "github.yml")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one machine comes to."""
    folder = tmp_path_factory.mktemp("alone") / "results"
    done = start("run", QUICK, *OPTIONS, "-o", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree of links to this one, for what leaves files where it is started."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for path in places.ROOT.iterdir():
        if path.name not in {"parts", "merged", "comment.md", ".snakemake"}:
            (tree / path.name).symlink_to(path)
    return tree


@pytest.mark.nightly
@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.root
def test_slurm(slurm: Slurm, alone: Path, tmp_path: Path) -> None:
    script = str(EXAMPLES / "slurm.sh")
    out = tmp_path / "out"
    done = slurm.ask(script, PARTS, QUICK, str(out), *OPTIONS, cwd=places.ROOT)
    logs = "\n".join(path.read_text() for path in (tmp_path / "out.parts").glob("*.log"))
    assert done.returncode == 0, done.stderr + logs + slurm.logs()
    assert "4 folders put together" in (tmp_path / "out.parts" / "merge.log").read_text()
    assert_same(out, alone)


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.root
def test_parallel(hosts: Hosts, alone: Path, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("\n".join((*hosts.names, "")))
    argv = (str(EXAMPLES / "parallel.sh"), str(tmp_path / "hosts"), PARTS, QUICK)
    done = proc.run(
        (*argv, str(tmp_path / "out"), *OPTIONS),
        cwd=places.ROOT,
        env=os.environ | hosts.environment,
        check=False,
        timeout_s=RUN_S,
    )
    assert done.returncode == 0, done.stderr
    assert "4 folders put together" in done.stderr
    assert_same(tmp_path / "out", alone)


@pytest.mark.nightly
@pytest.mark.guest
@pytest.mark.slow
def test_the_steps_of_github(tree: Path, alone: Path, tmp_path: Path) -> None:
    """The shell of each job, as the service runs it."""
    summary = tmp_path / "summary"
    environment = os.environ | WORKFLOW["env"] | {"GITHUB_STEP_SUMMARY": str(summary)}
    part, merge = WORKFLOW["jobs"]["part"], WORKFLOW["jobs"]["merge"]
    assert WORKFLOW["env"]["PARTS"] == len(part["strategy"]["matrix"]["part"])
    environment |= {name: str(value) for name, value in WORKFLOW["env"].items()}
    assert (environment["CONFIG"], environment["OPTIONS"]) == (QUICK, " ".join(OPTIONS))

    def act(job: dict[str, Any], **more: str) -> None:
        for step in job["steps"]:
            if "run" in step and "gh " not in step["run"]:
                shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
                proc.run(shell, cwd=tree, env=environment | more, timeout_s=RUN_S)

    for number in part["strategy"]["matrix"]["part"]:
        act(part, PART=str(number))
    act(merge)
    assert_same(tree / "merged", alone)
    assert "wikipedia" in summary.read_text()
    assert (tree / "comment.md").read_text() == summary.read_text()


def test_the_actions_of_github_are_pinned_and_its_commands_are_ours() -> None:
    text = (EXAMPLES / "github.yml").read_text()
    used = [step["uses"] for job in WORKFLOW["jobs"].values() for step in job["steps"]
            if "uses" in step]  # fmt: skip
    owned = ("actions/checkout@", "actions/cache@", "actions/upload-artifact@",
             "actions/download-artifact@")  # fmt: skip
    assert [name for name in used if not name.startswith(owned)] == []
    assert [name for name in used if len(name.partition("@")[2]) != 40] == []
    for words in commands(text):
        command, rest = command_of(words)
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in rest if word.startswith("-")} <= options, words


@pytest.mark.nightly
@pytest.mark.guest
@pytest.mark.slow
def test_snakemake(snakemake: Path, tree: Path, alone: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = (f"parts={PARTS}", f"experiment={QUICK}", f"out={out}", f"options={' '.join(OPTIONS)}")
    argv = (str(snakemake), "-s", str(EXAMPLES / "Snakefile"), "--cores", "2", "--nolock")
    own = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(places.cache().parent)}
    done = proc.run(
        (*argv, "--config", *given), cwd=tree, env=os.environ | own, check=False,
        timeout_s=RUN_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert_same(out, alone)
