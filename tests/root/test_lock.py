"""A lock is read as it was written; all that is wrong with one is said at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from testbed.root.lock import Lock, describe_changes, format_lock, read_lock
from testbed.root.spec import read_spec, root_names
from tests.root.debs import locked

ONE, TWO = locked("one", b"1"), locked("two", b"22", "debian-security")
LOCK = Lock("20261124T120000Z", (ONE, TWO))


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "lock.toml"
    file.write_text(format_lock(LOCK))
    assert read_lock(file) == LOCK
    assert LOCK.size == 3
    assert format_lock(Lock(LOCK.taken, (TWO, ONE))) == format_lock(LOCK)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("taken =", "taken = 7\nbefore =", ["unknown: before", "taken is 7"]),
        (ONE.sha256, "0" * 63, ["package 1: sha256 is"]),
        ('name = "two"', 'name = "one"', ["package 2: one is there twice"]),
        ("size = 1,", 'size = "1",', ["package 1: size is '1'"]),
        ("pool/main/o", "pool/../o", ["package 1: path is"]),
        ('archive = "debian"', 'archive = "ours"', ["package 1: archive is 'ours'"]),
        ("size = 1, ", "", ["package 1: it has not just"]),
        ("package =", "packages =", ["unknown: packages", "it names no package"]),
        ("taken =", "taken", ["lock.toml: "]),
    ],
)
def test_all_that_is_wrong_is_said(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    file = tmp_path / "lock.toml"
    text = format_lock(LOCK)
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(ConfigurationError) as raised:
        read_lock(file)
    for word in words:
        assert any(word in problem for problem in raised.value.problems), raised.value.problems


def test_changes_are_described() -> None:
    newer = replace(TWO, version="2.0", sha256="0" * 64)
    elsewhere = replace(ONE, path="pool/elsewhere.deb")
    assert describe_changes(LOCK, Lock(LOCK.taken, (newer, locked("new", b"")))) == (
        "new: absent -> 1.0", "one: 1.0 -> absent", "two: 1.0 -> 2.0",
    )  # fmt: skip
    assert describe_changes(Lock("", (ONE,)), Lock("", (elsewhere,))) == ()


@pytest.mark.parametrize("name", root_names())
def test_the_locks_of_this_tree_are_whole(name: str) -> None:
    spec = read_spec(name)
    names = {package.name for package in read_lock(spec.lock_file).packages}
    assert spec.packages.keys() <= names
    assert not spec.without.keys() & names


def test_an_unknown_root_is_refused_with_the_near_one() -> None:
    said = r"no root 'debian13' \(did you mean 'debian-13'\?\); there are build, debian-12"
    with pytest.raises(ConfigurationError, match=said):
        read_spec("debian13")
