"""Kernel source in a git repository of the user's: a revision, or the work tree as it is.

Nothing is written to the repository: what a work tree has beyond its last commit becomes objects in
a store of our own, by a temporary index (git(1), GIT_INDEX_FILE and GIT_OBJECT_DIRECTORY).
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from testbed.base import proc
from testbed.base.errors import ConfigurationError, MissingError
from testbed.base.scratch import scratch_folder

WORK_TREE = "work tree"
"""What stands for a revision where the work tree is taken as it is."""

_GIT_S = 600.0


@dataclass(frozen=True, slots=True)
class GitSource:
    """A tree of a kernel's source.

    Attributes:
        repository: the absolute path of its work tree, or of a bare repository.
        objects: where objects are that the repository does not have.
        revision: what was asked for, such as ``v7.2`` or ``WORK_TREE``.
        commit: the commit, or the one that the work tree was made from.
        tree: the object id of the tree.
        version: the kernel's version in it, such as ``7.2.0``.
    """

    repository: Path
    objects: Path
    revision: str
    commit: str
    tree: str
    version: str

    @property
    def id(self) -> str:
        """The tree's object id."""
        return self.tree

    def ids_of(self, names: Sequence[str]) -> str:
        """Return what names the content of these files and folders, a line for each.

        Raises:
            MissingError: the repository no longer has them.
        """
        return Git(self.repository, self.objects).run("ls-tree", self.tree, "--", *names)

    def describe(self) -> str:
        """Return the version, what was asked for, and the commit."""
        revision = "" if self.revision == self.commit else f"{self.revision}, "
        changed = " with changes" if self.revision == WORK_TREE else ""
        return f"Linux {self.version} ({revision}{self.commit[:12]}{changed})"

    def unpack(self, tree: Path) -> None:
        """Write all files into the empty folder ``tree``.

        Raises:
            MissingError: the repository no longer has them.
        """
        with _index(self) as git:
            git.run("checkout-index", "--all", f"--prefix={tree.resolve()}/")

    def changed_since(self, before: str) -> frozenset[str] | None:
        """Return the files that differ from the tree ``before``; None: it is not known here."""
        git = Git(self.repository, self.objects)
        argv = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, self.tree)
        completed = git.try_run(*argv)
        return (frozenset(filter(None, completed.stdout.split("\0"))) if completed.returncode == 0
                else None)  # fmt: skip

    def read_change(self) -> str:
        """Return as a patch what the commit changes, or the work tree; empty where none is known.

        A commit without a parent, such as that of a shallow clone, has none.
        """
        before = self.commit if self.revision == WORK_TREE else f"{self.commit}^"
        git = Git(self.repository, self.objects)
        completed = git.try_run("diff-tree", "-p", "--no-renames", before, self.tree)
        return completed.stdout if completed.returncode == 0 else ""

    def extract(self, names: Collection[str], folder: Path) -> None:
        """Write those of the files ``names`` that it has into ``folder``; a folder's are all of it.

        Raises:
            MissingError: the repository no longer has them.
        """
        with _index(self) as git:
            tracked = git.run("ls-files", "-z").split("\0")
            wanted = set(names)
            paths = "\0".join(name for name in tracked if _is_within(name, wanted))
            prefix = f"--prefix={folder.resolve()}/"
            git.run("checkout-index", "-z", "--stdin", prefix, stdin=paths)


@dataclass(frozen=True, slots=True)
class Git:
    """git(1) on one repository, with objects of our own beside its, and perhaps another index.

    A bare repository needs a ``work_tree`` from which nothing is read to write an index's files.
    """

    repository: Path
    objects: Path
    index: Path | None = None
    work_tree: Path | None = None

    def run(self, *words: str, stdin: str | None = None) -> str:
        """Return what a git command prints.

        Raises:
            MissingError: it fails: what is asked for is not in the repository, or git is missing.
        """
        completed = self.try_run(*words, stdin=stdin)
        if completed.returncode != 0:
            message = completed.stderr.strip()[-500:]
            raise MissingError(f"{self.repository}: `git {words[0]}` failed: {message}")
        return completed.stdout

    def describe(self, commit: str) -> str:
        """Return a commit's short name and subject."""
        return self.run("log", "-1", "--format=%h %s", commit).strip()

    def try_run(self, *words: str, stdin: str | None = None) -> proc.Completed:
        """Run a git command to its end, however it ends."""
        if shutil.which("git") is None:
            raise MissingError("a kernel from a git tree needs git; install the package git")
        there = () if self.work_tree is None else (f"--work-tree={self.work_tree}",)
        argv = ["git", "-c", "core.autocrlf=false", "-C", str(self.repository), *there, *words]
        env = _environment(self)
        return proc.run(argv, env=env, stdin=stdin, check=False, timeout_s=_GIT_S)


def objects_of(repository: Path, store: Path) -> Path:
    """Return where in ``store`` objects are that ``repository`` does not have."""
    return store / hashlib.sha256(str(repository).encode()).hexdigest()[:12]


def resolve(folder: Path, revision: str | None, store: Path) -> GitSource:
    """Return the source that ``revision`` names in the repository that ``folder`` is in.

    Without a revision it is the work tree as it is, with what is not committed; files that git
    ignores are left out.  ``store`` is the folder for what the repository does not have.

    Raises:
        ConfigurationError: there is no repository or revision, or it is no kernel's.
        MissingError: git is missing or fails.
    """
    repository = _find_repository(folder, store)
    objects = objects_of(repository, store)
    git = Git(repository, objects)
    revision_name = revision or "HEAD"
    parsed = git.try_run(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision_name}^{{commit}}"
    )
    if parsed.returncode != 0:
        raise ConfigurationError(
            [f"{repository}: no commit is named {revision_name!r}; `git log` shows them"]
        )
    commit = parsed.stdout.strip()
    tree = git.run("rev-parse", f"{commit}^{{tree}}").strip()
    if revision is None:
        committed, tree = tree, _write_work_tree(repository, objects)
        revision = "HEAD" if tree == committed else WORK_TREE
    return GitSource(repository, objects, revision, commit, tree, _read_version(git, tree))


def _is_within(name: str, wanted: set[str]) -> bool:
    """Return whether a file, or a folder that it is in, is among the ``wanted``."""
    return name in wanted or any(str(folder) in wanted for folder in PurePosixPath(name).parents)


def _find_repository(folder: Path, store: Path) -> Path:
    if not folder.is_dir():
        raise ConfigurationError([f"{folder}: no such folder; name a git tree of a kernel"])
    git = Git(folder.resolve(), store / "none")
    for words in (("rev-parse", "--show-toplevel"), ("rev-parse", "--absolute-git-dir")):
        completed = git.try_run(*words)
        if completed.returncode == 0 and completed.stdout.strip():
            return Path(completed.stdout.strip())
    raise ConfigurationError([f"{folder}: no git repository: {completed.stderr.strip()[-300:]}"])


def _write_work_tree(repository: Path, objects: Path) -> str:
    """Write what the work tree holds to the store of our own, and return its tree's id."""
    own = Git(repository, objects)
    if own.run("rev-parse", "--is-inside-work-tree").strip() != "true":
        raise ConfigurationError([f"{repository} has no work tree; name a revision with --rev"])
    objects.mkdir(parents=True, exist_ok=True)
    index = Path(own.run("rev-parse", "--path-format=absolute", "--git-path", "index").strip())
    with scratch_folder("kernel") as scratch:
        copy = scratch / "index"
        if index.is_file():
            shutil.copy2(index, copy)  # what it knows of unchanged files spares reading them
        git = Git(repository, objects, copy)
        git.run("add", "--all", "--", ":/")
        return git.run("write-tree").strip()


def _read_version(git: Git, tree: str) -> str:
    makefile = git.try_run("show", f"{tree}:Makefile")
    lines = (line.partition("=") for line in makefile.stdout.splitlines()[:20])
    values = {name.strip(): value.strip() for name, _, value in lines}
    if not values.get("VERSION", "").isdigit():
        raise ConfigurationError(
            [f"{git.repository}: no kernel's source: it has no Makefile with a version"]
        )
    version = ".".join(values.get(name, "0") for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
    if git.try_run("cat-file", "-e", f"{tree}:arch/um").returncode != 0:
        raise ConfigurationError(
            [f"{git.repository}: Linux {version} without arch/um, which every guest is made of "
             "(User-Mode Linux); take a tree that has it: the whole of a release has"]
        )  # fmt: skip
    return version


@contextmanager
def _index(source: GitSource) -> Iterator[Git]:
    """Yield git with a temporary index of the source's tree."""
    with scratch_folder("kernel") as scratch:
        git = Git(source.repository, source.objects, scratch / "index", scratch)
        git.run("read-tree", source.tree)
        yield git


def _environment(git: Git) -> Mapping[str, str]:
    """Return the caller's environment, less what names another repository."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    if git.objects.is_dir():
        env |= {"GIT_OBJECT_DIRECTORY": str(git.objects),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": _own_objects(git.repository, env)}  # fmt: skip
    if git.index is not None:
        env["GIT_INDEX_FILE"] = str(git.index)
    return env


def _own_objects(repository: Path, env: Mapping[str, str]) -> str:
    argv: Sequence[str] = ["git", "-C", str(repository), "rev-parse", "--path-format=absolute",
                           "--git-path", "objects"]  # fmt: skip
    return proc.run(argv, env=env, check=False).stdout.strip()
