"""Kernel sources in git: revisions, work trees as they are, and what differs between two."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError, MissingError
from tests.kernel.small_tree import FILES, commit, git, make_repository
from wings.kernels.own.git import WORK_TREE, resolve


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "linux")


def state(repository: Path) -> tuple[str, ...]:
    """Everything in the repository and its work tree, by name and size."""
    return tuple(sorted(f"{path}:{path.lstat().st_size}" for path in repository.rglob("*")))


def test_a_revision(repository: Path, tmp_path: Path) -> None:
    found = resolve(repository / "arch", "v9.9", tmp_path / "store")
    assert found.repository == repository
    assert (found.version, found.revision) == ("9.9.3", "v9.9")
    assert found.tree == git(repository, "rev-parse", "v9.9^{tree}").strip()
    found.unpack(tmp_path)
    assert {name: (tmp_path / name).read_text() for name in FILES} == FILES
    assert found.describe() == f"Linux 9.9.3 (v9.9, {found.commit[:12]})"


def test_a_bare_repository_gives_its_files_too(repository: Path, tmp_path: Path) -> None:
    bare = tmp_path / "linux.git"
    git(repository, "clone", "--quiet", "--bare", ".", str(bare))
    found = resolve(bare, "v9.9", tmp_path / "store")
    (tmp_path / "whole").mkdir()
    found.unpack(tmp_path / "whole")
    assert {name: (tmp_path / "whole" / name).read_text() for name in FILES} == FILES
    found.extract({"answer.c", "absent.c", "arch"}, tmp_path / "some")
    assert (tmp_path / "some" / "answer.c").read_text() == FILES["answer.c"]
    assert found.ids_of(["answer.c"]) == resolve(repository, "v9.9", tmp_path).ids_of(["answer.c"])
    with pytest.raises(ConfigurationError, match="has no work tree; name a revision"):
        resolve(bare, None, tmp_path / "store")


def test_a_work_tree_as_it_is_and_the_repository_is_only_read(
    repository: Path, tmp_path: Path
) -> None:
    (repository / ".gitignore").write_text("*.o\n")
    clean = commit(repository, "ignore objects")
    assert resolve(repository, None, tmp_path / "store").revision == "HEAD"
    (repository / "answer.c").write_text("int answer(void) { return 3; }\n")
    (repository / "new.c").write_text("int new;\n")
    (repository / "main.o").write_text("an object")
    before = state(repository)
    found = resolve(repository, None, tmp_path / "store")
    assert state(repository) == before
    assert (found.revision, found.commit) == (WORK_TREE, clean)
    head = git(repository, "rev-parse", "HEAD^{tree}").strip()
    assert found.changed_since(head) == frozenset({"answer.c", "new.c"})
    found.extract({"answer.c", "new.c", "main.o", "absent.c"}, tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.[co]")) == ["answer.c", "new.c"]
    assert "with changes" in found.describe()


def test_a_tree_that_is_not_known_says_nothing_of_what_differs(
    repository: Path, tmp_path: Path
) -> None:
    assert resolve(repository, "v9.9", tmp_path / "store").changed_since("0" * 40) is None


def test_the_callers_own_git_variables_lead_nowhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert resolve(repository, None, tmp_path / "store").repository == repository


@pytest.mark.parametrize(
    ("revision", "words"),
    [("v10", "no commit is named 'v10'"), ("--all", "no commit is named '--all'")],
)
def test_no_such_revision(repository: Path, tmp_path: Path, revision: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        resolve(repository, revision, tmp_path / "store")


def test_what_is_no_kernel(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such folder"):
        resolve(tmp_path / "absent", None, tmp_path / "store")
    (tmp_path / "plain").mkdir()
    with pytest.raises(ConfigurationError, match="no git repository"):
        resolve(tmp_path / "plain", None, tmp_path / "store")
    other = make_repository(tmp_path / "other")
    git(other, "rm", "-rq", "arch")
    commit(other, "no um")
    with pytest.raises(ConfigurationError, match=r"Linux 9\.9\.3 without arch/um.*take a tree"):
        resolve(other, "HEAD", tmp_path / "store")
    git(other, "rm", "-q", "Makefile")
    commit(other, "no version")
    with pytest.raises(ConfigurationError, match="no kernel's source"):
        resolve(other, "HEAD", tmp_path / "store")


def test_a_repository_that_has_gone_is_said(repository: Path, tmp_path: Path) -> None:
    found = resolve(repository, "v9.9", tmp_path / "store")
    repository.rename(tmp_path / "moved")
    with pytest.raises(MissingError, match="git read-tree"):
        found.unpack(tmp_path)
