"""What engines and clouds read of ours, as far as schemas tell without an engine or a cloud."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from testbed.base import places, proc
from testbed.base.debian import private_apt
from testbed.kernel.enclosure import CAPABILITIES, WISHED
from testbed.kernel.seccomp import ALLOWED, NARROWED

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
    assert text.count("FROM ${BASE} ") == 2
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
    apt = private_apt("bookworm", folder)
    package = apt.download("cloud-init", apt.offered("cloud-init")[0])
    proc.run(("dpkg-deb", "--extract", str(package), str(folder / "there")))
    (schema,) = (folder / "there").rglob("schema-cloud-config-v1.json")
    return jsonschema.Draft4Validator(json.loads(schema.read_text()))


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


@pytest.mark.parametrize("status", [0, 1])
def test_the_cloud_machine_runs_once_and_keeps_the_status(
    once: Path, tmp_path: Path, status: int
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    run = project / "run.sh"
    run.write_text(
        f'#!/bin/bash\nmkdir -p "${{@: -1}}"\necho "$*" >"${{@: -1}}/said"\nexit {status}\n'
    )
    run.chmod(0o755)
    git = ("git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "a")):
        proc.run((*git, *words))
    settings = once.with_name("firstflight-once.conf")
    settings.write_text(
        settings.read_text()
        .replace("https://git.example/firstflight.git", str(project))
        .replace("AFTERWARDS=true", "AFTERWARDS='cat said >told'")
    )
    place = tmp_path / "place"
    done = proc.run((str(once), str(settings), str(place)), check=False)
    results = place / "results" / "once"
    assert done.returncode == status
    assert f"status {status}, report: {results}/report.html" in done.stdout
    assert (results / "told").read_text() == f"run configs/paper-table1.toml -o {results}\n"
    assert (results / "status").read_text() == f"{status}\n"


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
    assert {*ALLOWED, *NARROWED} <= sometimes
    assert {*ALLOWED, *NARROWED} - always == {"personality", "socket"}
