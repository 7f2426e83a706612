"""What engines and clouds read of ours, as far as schemas tell without an engine or a cloud."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from testbed.base import places, proc
from testbed.base.debian import MAIN
from testbed.kernel.run.enclosure import CAPABILITIES, WISHED
from testbed.kernel.run.seccomp import ALLOWED, IGNORED, NARROWED
from testbed.root.download import download, list_sources, package_file
from testbed.root.package import open_content
from testbed.root.release import read_index

ROOT = places.ROOT
TOOLS = Path(sys.executable).parent
COMPOSE = ROOT / "docker" / "compose.yaml"
DOCKERFILE = ROOT / "docker" / "Dockerfile"
USER_DATA = ROOT / "cloud" / "user-data.yaml"
DEVCONTAINER = ROOT / ".devcontainer" / "devcontainer.json"
PROFILE = Path("/usr/share/containers/seccomp.json")
# Of the properties that containers.dev/implementors/json_reference lists.
DEVCONTAINER_WORDS = {
    *("name", "build", "remoteUser", "runArgs", "onCreateCommand", "postCreateCommand"),
    "forwardPorts",
}


def read_yaml(path: Path) -> Any:
    return YAML(typ="safe").load(path)


def stages() -> set[str]:
    return set(re.findall(r"^FROM .* AS (\S+)$", DOCKERFILE.read_text(), re.MULTILINE))


def test_the_dockerfile_names_no_server_and_takes_its_base_as_an_argument() -> None:
    text = DOCKERFILE.read_text()
    assert text.count("FROM ${BASE} ") == 3
    assert not re.search(r"https?:|\.(org|com|io|net)/", text)


def test_what_is_copied_is_there_and_in_the_context() -> None:
    wanted = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines()
              if line.startswith("!")}  # fmt: skip
    copied = re.findall(r"^COPY (?!--from|\. )(.*) \S+$", DOCKERFILE.read_text(), re.MULTILINE)
    for name in (name for words in copied for name in words.split()):
        assert (ROOT / name).exists(), name
        assert name.split("/")[0] in wanted, name
    assert {name for name in wanted if not (ROOT / name).exists()} == set()


def test_compose_is_of_the_published_schema() -> None:
    tool = str(TOOLS / "check-jsonschema")
    argv = (tool, "--builtin-schema", "vendor.compose-spec", str(COMPOSE))
    done = proc.run(argv, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_builds_stages_that_there_are_and_gives_nothing_by_default() -> None:
    services = read_yaml(COMPOSE)["services"]
    for name, service in services.items():
        if "build" in service:
            assert service["build"]["target"] in stages()
            assert (COMPOSE.parent / service["build"]["context"] / "run.sh").is_file()
        if "profiles" not in service:
            assert not {"cap_add", "privileged", "devices", "user"} & set(service), name
            assert service["cap_drop"] == ["ALL"]


def test_the_host_kernel_gets_the_rights_that_an_enclosure_asks_for() -> None:
    given = read_yaml(COMPOSE)["services"]["host-kernel"]["cap_add"]
    assert {f"CAP_{name}" for name in given} == {*CAPABILITIES, *WISHED}


def test_the_devcontainer_is_of_the_documented_form() -> None:
    described = json.loads(DEVCONTAINER.read_text())
    assert set(described) <= DEVCONTAINER_WORDS
    build = described["build"]
    assert (DEVCONTAINER.parent / build["dockerfile"]).resolve() == DOCKERFILE
    assert (DEVCONTAINER.parent / build["context"]).resolve() == ROOT
    assert build["target"] in stages()


@pytest.fixture(scope="module")
def cloud_schema(tmp_path_factory: pytest.TempPathFactory) -> jsonschema.Draft4Validator:
    """The schema in Debian's package of cloud-init.

    The package is read and not installed: that would configure the machine at its next boot.
    """
    folder = tmp_path_factory.mktemp("cloud-init")
    package = read_index({MAIN: ("bookworm",)}).offered("cloud-init")[0]
    download((package,), folder, list_sources(), lambda said: None)
    with open_content(package_file(folder, package)) as archive:
        (schema,) = (
            archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive
            if member.isreg() and member.name.endswith("/schema-cloud-config-v1.json")
        )
    return jsonschema.Draft4Validator(json.loads(schema))


@pytest.mark.nightly
def test_user_data_is_of_cloud_inits_schema(cloud_schema: jsonschema.Draft4Validator) -> None:
    assert USER_DATA.read_text().startswith("#cloud-config\n")
    data = read_yaml(USER_DATA)
    assert [error.message for error in cloud_schema.iter_errors(data)] == []
    for wrong in ({"package_update": [1]}, {"write_files": [{"content": "x"}]}, {"packages": 3}):
        assert list(cloud_schema.iter_errors({**data, **wrong})) != [], wrong


@pytest.fixture
def once(tmp_path: Path) -> Path:
    """The script that a cloud machine is given, with the settings beside it."""
    for file in read_yaml(USER_DATA)["write_files"]:
        path = tmp_path / f"{Path(file['path']).name}{'' if 'sbin' in file['path'] else '.conf'}"
        path.write_text(file["content"])
        path.chmod(int(file["permissions"], 8))
    return tmp_path / "firstflight-once"


def test_the_script_of_the_cloud_machine_is_clean(once: Path) -> None:
    done = proc.run(("shellcheck", str(once)), check=False)
    assert done.returncode == 0, done.stdout


class Machine:
    """A cloud machine with a project whose run ends with ``status``."""

    def __init__(self, once: Path, status: int = 0, writes: bool = True) -> None:
        home = once.parent
        self.once, self.place, self.status = once, home / "place", status
        self.results = self.place / "results" / "once"
        self.settings = once.with_name("firstflight-once.conf")
        self.project, tools = home / "project", home / "tools"
        for folder in (self.project, tools):
            folder.mkdir()
        said = 'mkdir -p "${@: -1}"\necho "$*" >"${@: -1}/said"\n' if writes else ""
        self._script(self.project / "run.sh", f"{said}exit {status}\n")
        self._script(tools / "shutdown", f'echo "$*" >>"{home}/shutdown"\n')
        self._off = home / "shutdown"
        self._path = f"{tools}:{os.environ['PATH']}"
        self.git("init", "-q", "-b", "main")
        self.commit()
        self.set("https://git.example/firstflight.git", str(self.project))

    @staticmethod
    def _script(path: Path, text: str) -> None:
        path.write_text(f"#!/bin/bash\n{text}")
        path.chmod(0o755)

    def git(self, *words: str) -> str:
        """Give git a command in the project."""
        argv = ("git", "-C", str(self.project), "-c", "user.name=a", "-c", "user.email=a@b.example")
        return proc.run((*argv, *words)).stdout.strip()

    def commit(self) -> str:
        """Commit what is there, and return the commit."""
        self.git("add", "-A")
        self.git("commit", "-qm", "a")
        return self.git("rev-parse", "HEAD")

    def set(self, old: str, new: str) -> None:
        """Change the settings."""
        text = self.settings.read_text()
        assert old in text
        self.settings.write_text(text.replace(old, new))

    def start(self) -> tuple[int, str]:
        """Start it; the status and what was said."""
        argv = (str(self.once), str(self.settings), str(self.place))
        done = proc.run(argv, check=False, env={**os.environ, "PATH": self._path})
        return done.returncode, done.stdout

    def powers_off(self) -> bool:
        """Return whether it was told to, once."""
        return self._off.exists() and self._off.read_text() == "-h +1\n"


@pytest.mark.parametrize("status", [0, 1])
def test_the_cloud_machine_runs_once_and_keeps_the_status(once: Path, status: int) -> None:
    machine = Machine(once, status)
    machine.set("AFTERWARDS=true", "AFTERWARDS='cat said >told'")
    code, said = machine.start()
    results = machine.results
    assert code == status
    assert f"status {status}, report: {results}/report.html" in said
    assert (results / "told").read_text() == f"run configs/paper-table1.toml -o {results}\n"
    assert (results / "status").read_text() == f"{status}\n"
    assert not machine.powers_off()


def test_a_second_start_leaves_the_results_of_the_first(once: Path) -> None:
    machine = Machine(once)
    machine.set("POWER_OFF=no", "POWER_OFF=yes")
    assert machine.start()[0] == 0
    before = {path: path.stat().st_mtime_ns for path in machine.results.rglob("*")}
    code, said = machine.start()
    assert code == 2
    assert "give it another name first" in said
    assert {path: path.stat().st_mtime_ns for path in machine.results.rglob("*")} == before
    assert machine.powers_off()


@pytest.mark.parametrize("kind", ["branch", "tag", "commit"])
def test_the_cloud_machine_takes_any_revision(once: Path, kind: str) -> None:
    machine = Machine(once)
    machine.git("checkout", "-q", "-b", "other")
    (machine.project / "mark").touch()
    wanted = machine.commit()
    machine.git("tag", "v1")
    if kind != "branch":
        (machine.project / "more").touch()
        machine.commit()
    machine.git("checkout", "-q", "main")
    revision = {"branch": "other", "tag": "v1", "commit": wanted}[kind]
    machine.set("REVISION=main", f"REVISION={revision}")
    assert machine.start()[0] == 0
    assert (machine.place / "mark").exists()
    assert not (machine.place / "more").exists()


@pytest.mark.parametrize("off", ["yes", "no"])
@pytest.mark.parametrize("failing", ["clone", "revision", "results", "afterwards"])
def test_a_cloud_machine_that_fails_powers_off_if_it_was_asked_to(
    once: Path, failing: str, off: str
) -> None:
    machine = Machine(once, 4, writes=failing != "results")
    machine.set("POWER_OFF=no", f"POWER_OFF={off}")
    if failing == "clone":
        machine.set(str(machine.project), f"{machine.project}-nowhere")
    elif failing == "revision":
        machine.set("REVISION=main", "REVISION=nothing-like-this")
    elif failing == "afterwards":
        machine.set("AFTERWARDS=true", "AFTERWARDS=false")
    code, said = machine.start()
    assert machine.powers_off() == (off == "yes")
    assert code != 0
    if failing == "results":
        assert "no results (status 4)" in said
    if failing == "afterwards":
        assert code == 4
        assert "AFTERWARDS failed (status 1)" in said
        assert "firstflight: status 4, report: " in said


def test_runtimes_allow_what_guests_ask_of_the_kernel() -> None:
    """Of the filter that podman and buildah install; one argument of `personality` is refused."""
    if not PROFILE.is_file():
        pytest.skip("buildah's filter is not installed; run `make test`")
    rules = [
        rule
        for rule in json.loads(PROFILE.read_text())["syscalls"]
        if rule["action"] == "SCMP_ACT_ALLOW" and not (rule.get("includes") or {}).get("caps")
    ]
    always = {name for rule in rules if not rule.get("args") for name in rule["names"]}
    sometimes = {name for rule in rules for name in rule["names"]}
    landlock = {f"landlock_{name}" for name in ("create_ruleset", "add_rule", "restrict_self")}
    assert {*ALLOWED, *IGNORED, *NARROWED} <= sometimes
    assert {*ALLOWED, *IGNORED, *NARROWED, *landlock} - always == {"personality"}
