"""Debian packages of the machine: what is missing, who may install it, what is said otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from testbed.client.program import Program
from testbed.setup import machine_packages
from testbed.setup.develop import PACKAGES
from testbed.setup.machine_packages import ensure_packages, find_missing, read_list
from testbed.setup.programs import package_names


class Machine:
    """A machine with fake programs, which note what they are asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()

    def fake(self, name: str, script: str) -> Path:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Has bash 5.2 and an old nodejs; its installer adds what it is asked for."""
    machine = Machine(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    machine.fake(
        "dpkg-query",
        f"echo 'bash installed 5.2'; echo 'nodejs installed 12.1'; cat {tmp_path}/added || true",
    )
    machine.fake("apt-get", "exit 0")
    installer = machine.fake(
        "installer", f'for name in "$@"; do echo "$name installed 99" >>{tmp_path}/added; done'
    )
    monkeypatch.setattr(machine_packages, "INSTALLER", installer)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return machine


@pytest.mark.usefixtures("machine")
def test_what_is_absent_or_too_old_is_missing() -> None:
    wanted = ["bash", "zsh", "bash >= 5.1", "nodejs >= 18"]
    assert find_missing(wanted) == ("zsh", "nodejs")
    assert find_missing([]) == ()


@pytest.mark.usefixtures("machine")
def test_root_installs_what_is_missing() -> None:
    said: list[str] = []
    ensure_packages(["bash", "zsh"], "recording", said.append)
    assert said == ["recording: installing Debian packages: zsh"]
    ensure_packages(["bash", "zsh"], "recording", said.append)
    assert len(said) == 1


def test_without_root_every_missing_package_is_in_one_message(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    machine.fake("sudo", "exit 1")
    with pytest.raises(MissingError, match=r"apt-get update && apt-get install .* zsh nodejs"):
        ensure_packages(["zsh", "bash", "nodejs >= 18"], "recording", print)


def test_sudo_is_taken_where_it_asks_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    machine.fake("sudo", f'echo "$*" >>{machine.folder}/sudo; shift; "$@"')
    ensure_packages(["zsh"], "development", lambda _said: None)
    asked, installed = (machine.folder / "sudo").read_text().splitlines()
    assert asked == "-n true"
    assert installed.endswith("/installer zsh")


def test_an_installation_that_fails_names_what_is_still_missing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_packages, "INSTALLER", machine.fake("fails", "exit 100"))
    with pytest.raises(MissingError, match="could not be installed: zsh;"):
        ensure_packages(["zsh"], "development", lambda _said: None)


def test_another_system_than_debian_is_told_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(MissingError, match="missing Debian packages: zsh"):
        ensure_packages(["zsh"], "development", print)


def test_lists_have_a_reason_for_each_package() -> None:
    lines = PACKAGES.read_text().splitlines()
    named = [line for line in lines if line and not line.startswith("#")]
    assert all(line.partition("#")[2].strip() for line in named)
    assert len(read_list(PACKAGES)) == len(named)
    assert package_names(Program("node", "nodejs >= 18, npm")) == ("nodejs >= 18", "npm")
