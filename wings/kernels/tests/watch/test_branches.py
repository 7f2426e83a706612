"""Lists of branches: what is read, what is refused, which branch is the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import ConfigurationError
from tests.kernel.small_tree import git, make_repository
from wings.kernels.watch.branches import (
    ListError,
    fetch,
    fetch_branches,
    newest_untested,
    open_mirror,
    parse_branches,
)

BASE = "0123456789abcdef0123456789abcdef01234567"


def entry(name: str = "net-next-2026-11-27--03-00", **other: Any) -> dict[str, Any]:
    named = {"branch": name, "date": "2026-11-27T03:00:00+00:00", "base": BASE,
             "url": f"https://example.org/testing.git {name}"}  # fmt: skip
    return named | other


def read(*entries: dict[str, Any]) -> Any:
    return parse_branches("branches.json", json.dumps(entries).encode())


def test_as_netdev_publishes_them() -> None:
    older = entry("net-next-2026-11-27--00-00", date="2026-11-27T00:00:00")
    first, second = read(entry(), older)
    assert (first.name, second.name) == (older["branch"], entry()["branch"])
    assert second.url == "https://example.org/testing.git"
    assert newest_untested([first, second], set()) == second
    assert newest_untested([first, second], {first.name}) == second
    assert newest_untested([first, second], {second.name}) is None  # older ones are passed over
    assert newest_untested([], set()) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"branch": "../../etc"}, "no name of a branch"),
        ({"branch": "-x"}, "no name of a branch"),
        ({"base": "HEAD; true"}, "no commit"),
        ({"base": None}, "no commit"),
        ({"url": "--upload-pack=x"}, "no repository"),
        ({"url": "ext::sh -c true"}, "no repository"),
        ({"date": "yesterday"}, "yesterday"),
    ],
)
def test_what_is_wrong_is_named_with_its_entry(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ListError, match=rf"entry 2: .*{said}"):
        read(entry(), entry() | wrong)


def test_all_problems_at_once() -> None:
    with pytest.raises(ListError, match=r"(?s)entry 1: has no 'url'.*entry 2: its base"):
        read({name: text for name, text in entry().items() if name != "url"}, entry(base="x"))


@pytest.mark.parametrize(("text", "said"), [("{}", "no list"), ("[", "no JSON")])
def test_no_list(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "branches.json"
    file.write_text(text)
    with pytest.raises(ListError, match=said):
        fetch_branches(str(file))


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(ListError, match="cannot be read"):
        fetch_branches("http://127.0.0.1:9/branches.json")
    with pytest.raises(ListError, match="No such file"):
        fetch_branches(str(tmp_path / "absent.json"))


def test_a_branch_must_be_there_and_above_its_base(tmp_path: Path) -> None:
    repository, mirror = make_repository(tmp_path / "linux"), tmp_path / "watch.git"
    head = git(repository, "rev-parse", "HEAD").strip()
    open_mirror(mirror, repository)
    here = {"url": str(repository), "branch": "main", "base": head}
    assert fetch(read(entry() | here)[0], mirror) == head
    assert not list((mirror / "objects").glob("??"))  # all of it is borrowed
    with pytest.raises(ListError, match="not above its base"):
        fetch(read(entry() | here | {"base": BASE})[0], mirror)
    with pytest.raises(ListError, match="absent"):
        fetch(read(entry() | here | {"branch": "absent"})[0], mirror)
    with pytest.raises(ConfigurationError, match="no git repository"):
        open_mirror(mirror, tmp_path)
