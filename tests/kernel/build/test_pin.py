"""The pin folders that are committed, and what is said about a wrong one."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from testbed.kernel.build.compiler import parse_config
from testbed.kernel.build.pin import PINS, Pin, pins, read_pin


@pytest.fixture(params=pins())
def pin(request: pytest.FixtureRequest) -> Pin:
    return read_pin(request.param)


def test_default_comes_first() -> None:
    assert pins() == ("7.3", "6.1", "6.12")


def test_committed_pin_is_complete(pin: Pin) -> None:
    assert pin.package == f"linux-source-{pin.version}"
    assert pin.package_version.startswith(f"{pin.version}.")
    assert pin.package_version in pin.file.path
    assert len(pin.tarball_sha256) == 64
    assert pin.patches
    assert "CONFIG_UML_TIME_TRAVEL_SUPPORT=y" in pin.config.read_text()
    assert "CONFIG_STATIC_LINK=y" in pin.config.read_text()  # it runs with any C library


def test_seccomp_is_asked_for_where_it_exists() -> None:
    assert "seccomp=on" in read_pin("7.3").boot
    assert read_pin("6.12").boot == read_pin("6.1").boot == ()


def test_kernels_are_configured_alike() -> None:
    newest, older = (parse_config(read_pin(one).config.read_text()) for one in ("7.3", "6.12"))
    assert newest.items() - older.items() == {
        ("CONFIG_UML_MAX_USERSPACE_ITERATIONS", "10000"),  # not there yet
        ("CONFIG_NET_SCH_DUALPI2", "y"),  # nor this
        ("CONFIG_SMP", "n"),
        ("CONFIG_TIME_NS", "y"),
        ("CONFIG_SYSCTL", "y"),  # chosen by PROC_SYSCTL
    }
    assert older.items() - newest.items() == {("CONFIG_PROC_SYSCTL", "y")}


def test_patches_are_licensed_explained_and_ordered(pin: Pin) -> None:
    numbers = [patch.name.partition("-")[0] for patch in pin.patches]
    assert all(number.isdecimal() and len(number) == 4 for number in numbers)
    assert len(set(numbers)) == len(numbers)
    for patch in pin.patches:
        head, _, diff = patch.read_text().partition("\n---\n")
        assert head.splitlines()[0] == "SPDX-License-Identifier: GPL-2.0-only"
        assert len(head.split()) > 30, "a patch says why it is there"
        assert diff.startswith(("--- a/", "--- /dev/null\n+++ b/"))


def test_hashes_are_those_of_the_files(pin: Pin) -> None:
    assert pin.config_sha256 == hashlib.sha256(pin.config.read_bytes()).hexdigest()
    assert list(pin.patch_sha256) == [patch.name for patch in pin.patches]
    for patch in pin.patches:
        assert pin.patch_sha256[patch.name] == hashlib.sha256(patch.read_bytes()).hexdigest()


def test_unknown_version_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"'7\.33'.*did you mean '7\.3'.*7\.3, 6\.1"):
        read_pin("7.33")


def test_every_problem_of_a_pin_is_reported_at_once(tmp_path: Path) -> None:
    shutil.copytree(PINS / "7.3", tmp_path / "7.3")
    file = tmp_path / "7.3" / "pin.toml"
    file.write_text(file.read_text().replace("suite =", "suit =").replace("seccomp=on", "a b"))
    file.write_text(file.read_text().replace("size = 1", "size = -1").replace('"pool', '"/pool'))
    (tmp_path / "7.3" / "kernel.config").unlink()
    with pytest.raises(ConfigurationError) as caught:
        read_pin("7.3", tmp_path)
    text = str(caught.value)
    assert "suite: not a text" in text
    assert "unknown key 'suit' (did you mean 'suite'?)" in text
    assert "boot: not a list of words without spaces" in text
    assert "kernel.config: missing" in text
    assert "file: size is -1" in text
    assert "file: path is '/pool/" in text
