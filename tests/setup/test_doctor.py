from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from testbed.kernel import REGULAR_VERSIONS
from testbed.kernel.build.pin import pins
from testbed.kernel.run.jail import Hold
from testbed.setup.doctor import examine, parse_meminfo


@pytest.fixture(autouse=True)
def nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("FIRSTFLIGHT_NATIVE", "FIRSTFLIGHT_JS"):
        monkeypatch.delenv(name, raising=False)


def test_what_is_not_there_is_named_and_nothing_is_made(tmp_path: Path) -> None:
    checks = {check.name: check for check in examine(1)}
    for name in ("root debian-13", "kernel 7.3", "C programs", "part js"):
        assert not checks[name].ok
        assert checks[name].remedy
        assert not checks[name].needed
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_that_nobody_asked_for_is_not_missed() -> None:
    named = {check.name.removeprefix("kernel ") for check in examine(1)}
    assert named & set(pins()) == set(REGULAR_VERSIONS)


def refuse() -> Hold:
    raise MissingError("no Landlock")


def test_a_machine_without_a_jail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.setup.doctor.read_hold", refuse)
    (jail,) = (check for check in examine(1) if check.name == "jail")
    assert not jail.ok
    assert jail.needed
    monkeypatch.setenv("FIRSTFLIGHT_UNJAILED", "1")
    (jail,) = (check for check in examine(1) if check.name == "jail")
    assert not jail.ok
    assert not jail.needed
    assert "FIRSTFLIGHT_UNJAILED=1 lets guests run without one" in jail.found


@pytest.mark.parametrize("gaps", [(), ("it runs as root",)])
def test_a_container_that_is_named_as_the_jail_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, gaps: tuple[str, ...]
) -> None:
    monkeypatch.setattr("testbed.setup.doctor.read_hold", refuse)
    monkeypatch.setattr("testbed.setup.doctor.read_gaps", lambda: gaps)
    monkeypatch.setenv("FIRSTFLIGHT_UNJAILED", "container")
    (jail,) = (check for check in examine(1) if check.name == "jail")
    assert jail.ok == (not gaps)
    assert jail.needed
    for words in ("the container is the jail", "no Landlock", *gaps):
        assert words in jail.found


def test_what_only_recordings_take_is_shown_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = tmp_path / "node"
    node.touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("FIRSTFLIGHT_JS", str(tmp_path))
    checks = {check.name: check for check in examine(1)}
    assert (checks["tool node"].ok, checks["tool node"].found) == (True, str(node))
    assert (checks["part js"].ok, checks["part js"].found) == (True, str(tmp_path))


def test_more_jobs_need_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    available = {"MemAvailable": 64 << 30}
    monkeypatch.setattr("testbed.setup.doctor.parse_meminfo", lambda _text: available)
    few, many = ({c.name: c for c in examine(jobs)}["memory"] for jobs in (1, 100_000))
    assert few.ok
    assert not many.ok
    assert "--jobs" in many.remedy


def test_meminfo() -> None:
    text = "MemTotal:       1000 kB\nMemAvailable:    500 kB\nHugePages_Total:   3\n"
    assert parse_meminfo(text) == {"MemTotal": 1_024_000, "MemAvailable": 512_000}
