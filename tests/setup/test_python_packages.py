"""Python packages of the program: one environment for each lock, whole or not there."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.setup import python_packages
from testbed.setup.python_packages import (
    ensure_packages,
    find_authorities,
    find_packages,
    interpreter,
)


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Locks of nothing, and of what no index has."""
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "absent.txt").write_text(f"no-such-package==1 --hash=sha256:{'0' * 64}\n")
    monkeypatch.setattr(python_packages, "LOCKS", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path


def test_an_environment_is_made_once_and_runs_from_where_it_is(tmp_path: Path) -> None:
    cache, said = tmp_path / "cache", list[str]()
    assert find_packages("empty", cache) is None
    folder = ensure_packages("empty", cache, said.append)
    assert ensure_packages("empty", cache, said.append) == find_packages("empty", cache) == folder
    assert len(said) == 2
    ask = "import sys; print(sys.prefix, sys._base_executable)"
    there = proc.run((str(folder / "bin" / "python"), "-I", "-c", ask)).stdout.split()
    assert there[0] == str(folder)
    assert Path(there[1]).parent == Path(interpreter()).parent


def test_another_lock_makes_another_environment(tmp_path: Path, locks: Path) -> None:
    first = ensure_packages("empty", tmp_path / "cache", lambda _said: None)
    (locks / "empty.txt").write_text("# still nothing\n")
    assert ensure_packages("empty", tmp_path / "cache", lambda _said: None) != first


def test_packages_that_cannot_be_had_leave_their_log_and_nothing_else(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(MissingError, match="no-such-package"):
        ensure_packages("absent", cache, lambda _said: None)
    assert find_packages("absent", cache) is None
    assert [path.name for path in (cache / "venv").iterdir()] == ["lock"]
    assert "no-such-package" in (cache / "logs" / "venv.log").read_text()


def test_one_that_was_not_finished_is_made_again(tmp_path: Path) -> None:
    folder = ensure_packages("empty", tmp_path / "cache", lambda _said: None)
    (folder / ".whole").unlink()
    assert find_packages("empty", tmp_path / "cache") is None
    assert ensure_packages("empty", tmp_path / "cache", lambda _said: None) == folder


def test_the_tests_run_on_the_locked_python() -> None:
    assert sys.version_info[:2] == (3, 13)
    assert Path(interpreter()).parent.parent.name == "usr"


def test_authorities_are_there_also_where_the_machine_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(python_packages, "_AUTHORITIES", ("/nowhere/ca.crt",))
    ours = find_authorities()
    assert Path(ours).is_relative_to(sys.base_prefix)
    assert len(ssl.create_default_context(cafile=ours).get_ca_certs()) > 100
    monkeypatch.setattr(python_packages, "_AUTHORITIES", ("/nowhere/ca.crt", __file__))
    assert find_authorities() == __file__
