"""Which kernels there are, in which versions, and how many trials at once they run."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import EXIT_MISSING, ConfigurationError, MissingError
from testbed.kernel import (
    KERNELS,
    REGULAR_VERSIONS,
    KernelPlace,
    ensure_build,
    kernel_versions,
    open_kernel,
)
from testbed.kernel.build import cache
from testbed.kernel.build.cache import KernelBuild, KernelIdentity
from testbed.kernel.build.pin import DEFAULT_VERSION, pins, read_pin
from testbed.kernel.run.host import HostKernel
from testbed.kernel.run.interface import Kernel
from testbed.model import in_real_time
from testbed.runner.prepare import fitting_jobs, read_catalogue
from tests.fake_kernel import FakeKernel


def test_versions() -> None:
    assert kernel_versions("virtual") == pins()
    assert kernel_versions("virtual")[0] == DEFAULT_VERSION
    assert kernel_versions("host") == (os.uname().release,)
    assert set(read_catalogue().kernels) == set(KERNELS)


def test_regular_kernels_are_pinned_the_default_first() -> None:
    assert tuple(one for one in pins() if one in REGULAR_VERSIONS) == REGULAR_VERSIONS
    assert REGULAR_VERSIONS[0] == DEFAULT_VERSION
    assert read_catalogue().regular == REGULAR_VERSIONS


def test_a_kernel_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="one of virtual, host"):
        open_kernel("hots", "1", KernelPlace(tmp_path, tmp_path, tmp_path, print))


@pytest.fixture
def unjailed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with a kernel, and without Landlock; its cache."""
    fake = tmp_path / "jail"
    fake.write_text("#!/bin/sh\necho 'jail: Landlock is not there' >&2\nexit 125\n")
    fake.chmod(0o755)
    monkeypatch.setattr("testbed.kernel.run.jail.program_file", lambda: tmp_path / "jail")
    words = ["", "", "", "", "", {}, "", "", ""]
    built = KernelBuild(tmp_path / "linux", KernelIdentity(*words), ())  # type: ignore[arg-type]
    monkeypatch.setattr("testbed.kernel.build.cache.find_kernel", lambda *_, **__: built)
    return tmp_path


def open_virtual(folder: Path) -> Kernel:
    """The default kernel, with one folder for all that it is given."""
    return open_kernel("virtual", DEFAULT_VERSION, KernelPlace(folder, folder, folder, print))


@pytest.mark.parametrize("asked", ["", "0", "no"])
def test_no_guest_runs_unjailed_unasked(
    unjailed: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setenv("FIRSTFLIGHT_UNJAILED", asked)
    with pytest.raises(MissingError, match="Landlock is not there") as caught:
        open_virtual(unjailed)
    assert caught.value.exit_code == EXIT_MISSING == 3
    for words in ("FIRSTFLIGHT_UNJAILED=1", "Linux 5.13", "docs/security.md"):
        assert words in str(caught.value)


def test_a_guest_runs_unjailed_when_asked_by_name(
    unjailed: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FIRSTFLIGHT_UNJAILED", "1")
    kernel = open_virtual(unjailed)
    assert kernel.confinement == "none"
    assert "FIRSTFLIGHT_UNJAILED=1: guests run without a jail" in caplog.text


@pytest.mark.parametrize("gaps", [(), ("it runs as root", "it has no system call filter")])
def test_a_container_is_the_jail_where_it_holds(
    unjailed: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    gaps: tuple[str, ...],
) -> None:  # fmt: skip
    caplog.set_level(logging.INFO, "testbed")
    monkeypatch.setenv("FIRSTFLIGHT_UNJAILED", "container")
    monkeypatch.setattr("testbed.kernel.run.container.read_gaps", lambda: gaps)
    if gaps:
        with pytest.raises(MissingError, match="runs as root; it has no system call") as caught:
            open_virtual(unjailed)
        assert "Landlock is not there" in str(caught.value)
        assert "docs/containers.md" in str(caught.value)
        return
    kernel = open_virtual(unjailed)
    assert kernel.confinement == "container"
    assert "the container is the jail of guests" in caplog.text


def test_a_jail_is_taken_where_a_container_allows_one(
    unjailed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (unjailed / "jail").write_text("#!/bin/sh\necho landlock 7, namespaces\n")
    monkeypatch.setenv("FIRSTFLIGHT_UNJAILED", "container")
    kernel = open_virtual(unjailed)
    assert kernel.confinement == "jail"


@pytest.mark.parametrize(("version", "held"), [(5, "jail-but-signals"), (6, "jail")])
def test_a_jail_that_lets_signals_out_is_called_so(
    unjailed: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, version: int,
    held: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("testbed.kernel.run.jail.jail_user", lambda _slot: None)
    (unjailed / "jail").write_text(f"#!/bin/sh\necho landlock {version}, no namespaces\n")
    kernel = open_virtual(unjailed)
    assert kernel.confinement == held
    assert ("can signal this user's processes" in caplog.text) == (held != "jail")


def test_the_host_runs_in_real_time(tmp_path: Path) -> None:
    assert in_real_time(HostKernel("1", tmp_path, tmp_path, {}).name)


@pytest.mark.parametrize(("name", "jobs", "fitting"), [("virtual", 4, 4), ("host", 4, 1)])
def test_jobs(
    name: str, jobs: int, fitting: int, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.INFO, "testbed")
    assert fitting_jobs(FakeKernel(name=name), jobs) == fitting
    logged = ["kernel host measures in real time: one trial at a time"] if name == "host" else []
    assert caplog.messages == logged


def test_a_newer_source_than_is_pinned_is_said_at_each_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = read_pin("7.3")
    same = cache.identify(pin, "gcc", "0" * 64)
    newer = replace(same, package_version="7.3.9-1", source_sha256="1" * 64)
    told: dict[str, list[str]] = {}
    for identity in (same, newer):
        said = told[identity.package_version] = []
        build = cache.KernelBuild(tmp_path, identity, ())
        monkeypatch.setattr(cache, "ensure_kernel", lambda *_asked, build=build: build)
        assert ensure_build("7.3", tmp_path, tmp_path, said.append) is build
    assert told == {
        pin.package_version: [],
        "7.3.9-1": [
            f"kernel 7.3: linux-source-7.3 7.3.9-1 is newer than the pinned {pin.package_version}, "
            "which was gone when it was built"
        ],
    }
