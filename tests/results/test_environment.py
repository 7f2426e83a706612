from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.results.environment import Environment, differences, read_environment, read_facts


def test_the_id_depends_on_parts_and_pages_but_not_on_facts() -> None:
    one = Environment({"a": "1"}, {"p": "2"}, {"user": "root"})
    assert one.id == replace(one, facts={}).id
    others = [replace(one, parts={"a": "2"}), replace(one, pages={}), Environment({"p": "2"}, {})]
    assert len({one.id, *(other.id for other in others)}) == 4
    assert len(one.id) == 16


def test_what_the_caller_knows_is_part_of_it(tmp_path: Path) -> None:
    kernel = {"name": "fake"}
    programs = {"package.nginx": "1"}
    environment = read_environment(
        kernel, programs, {"bundle": "b"}, {"y": "2", "x": "1"}, tmp_path
    )
    assert environment.parts["kernel.name"] == "fake"
    assert environment.parts["code.bundle"] == "b"
    assert environment.parts["package.nginx"] == "1"
    assert environment.pages == {"x": "1", "y": "2"}
    again = read_environment(kernel, programs, {"bundle": "b"}, {"x": "1", "y": "2"}, tmp_path)
    assert again.id == environment.id
    other = read_environment(kernel, programs, {"bundle": "c"}, environment.pages, tmp_path)
    assert other.id != again.id


def test_facts_tell_revision_and_changes(tmp_path: Path) -> None:
    assert read_facts(tmp_path)["git_revision"] == "unknown"
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b")
    proc.run((*git, "init", "-q"))
    assert read_facts(tmp_path)["git_revision"] == "unknown"
    proc.run((*git, "commit", "-q", "--allow-empty", "-m", "x"))
    facts = read_facts(tmp_path)
    assert facts["git_revision"] == proc.run((*git, "rev-parse", "HEAD")).stdout.strip()
    assert facts["git_dirty"] == "no"
    (tmp_path / "new").touch()
    assert read_facts(tmp_path)["git_dirty"] == "yes"
    assert int(facts["cores"]) >= 1
    assert int(facts["memory_bytes"]) > 1 << 20


@pytest.mark.parametrize(
    ("parts", "pages", "reported"),
    [({"a": "1"}, {"p": "1"}, []), ({"a": "2"}, {"p": "1"}, ["a: 1 then, 2 now"]),
     ({}, {"p": "1", "q": "1"}, ["a: 1 then, absent now", "page q: absent then, 1 now"])],
)  # fmt: skip
def test_differences_are_named(
    parts: dict[str, str], pages: dict[str, str], reported: list[str]
) -> None:
    assert differences(Environment(parts, pages), Environment({"a": "1"}, {"p": "1"})) == reported
