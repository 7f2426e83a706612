from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base import places
from testbed.base.errors import MissingError
from testbed.kernel import REGULAR_VERSIONS
from testbed.kernel.build.native import ensure_native
from testbed.kernel.build.pin import pins
from testbed.kernel.run.jail import Hold
from testbed.root.cache import Root
from testbed.setup.doctor import examine, parse_meminfo

CACHE = places.cache()


@pytest.fixture(autouse=True)
def nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_what_is_not_there_is_named_and_nothing_is_made(tmp_path: Path) -> None:
    checks = {check.name: check for check in examine(1)}
    for name in ("root debian-13", "kernel 7.3", "jail", "C programs", "part js"):
        assert not checks[name].ok
        assert checks[name].remedy
        assert not checks[name].needed
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_made_of_what_is_there_either(root: Root, tmp_path: Path) -> None:
    """The guest and the enclosure that it tries leave no bundle and no image in the cache."""
    there = tmp_path / "firstflight"
    there.mkdir()
    ensure_native(CACHE, print)
    for name in ("kernels", "native", "roots"):
        if (CACHE / name).is_dir():
            (there / name).symlink_to(CACHE / name)
    before = sorted(tmp_path.rglob("*"))
    checks = {check.name: check for check in examine(1)}
    assert checks["root debian-13"].found == str(root.usr)
    assert checks["C programs"].ok
    assert sorted(tmp_path.rglob("*")) == before


def test_a_kernel_that_nobody_asked_for_is_not_missed() -> None:
    named = {check.name.removeprefix("kernel ") for check in examine(1)}
    assert named & set(pins()) == set(REGULAR_VERSIONS)


def refuse() -> Hold:
    raise MissingError("no Landlock")


def forbid_jails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has the C programs, and holds no guest by them."""
    monkeypatch.setattr("testbed.setup.doctor.find_native", lambda _cache: CACHE)
    monkeypatch.setattr("testbed.setup.doctor.read_hold", refuse)


def test_a_machine_without_a_jail(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_jails(monkeypatch)
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
    forbid_jails(monkeypatch)
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
    monkeypatch.setattr("wings.pages.recorder.driver.find_driver", lambda: tmp_path)
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
