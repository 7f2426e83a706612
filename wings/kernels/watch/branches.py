"""Branches that a CI publishes for executors of others, as netdev's does in branches.json."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.base.errors import ConfigurationError, MissingError, TestbedError
from wings.kernels.own.git import Git

TIMEOUT_S = 30.0
MOST_BYTES = 16 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*")
_WEB = ("http://", "https://")


class ListError(TestbedError):
    """The list of branches cannot be had or read; it may be another time."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch to test: patches of a batch above a base.

    Attributes:
        name: such as ``net-next-2026-11-27--03-00``.
        date: when it was made.
        base: the commit below its patches.
        url: the repository that has it, as git-fetch(1) takes one.
    """

    name: str
    date: datetime
    base: str
    url: str


def fetch_branches(place: str) -> list[Branch]:
    """Return the branches of a list at ``place``, the oldest first: a URL, or a file.

    Raises:
        ListError: it cannot be had, or is no such list.
    """
    try:
        if place.startswith(_WEB):
            with urllib.request.urlopen(place, timeout=TIMEOUT_S) as answer:  # noqa: S310
                text = answer.read(MOST_BYTES)
        else:
            text = Path(place).read_bytes()
    except (OSError, urllib.error.URLError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ListError(f"{place} cannot be read: {why}") from None
    return parse_branches(place, text)


def parse_branches(place: str, text: bytes) -> list[Branch]:
    """Return what a list says, the oldest branch first.

    Raises:
        ListError: with all that is wrong in it.
    """
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise ListError(f"{place} is no JSON: {error}") from None
    if not isinstance(entries, list):
        raise ListError(f"{place} is no list of branches")
    branches, problems = [], []
    for number, entry in enumerate(entries, 1):
        try:
            branches.append(_parse(entry))
        except (KeyError, TypeError, ValueError) as error:
            why = f"has no {error}" if isinstance(error, KeyError) else str(error)
            problems.append(f"{place}: entry {number}: {why}")
    if problems:
        raise ListError("\n".join(problems))
    return sorted(branches, key=lambda branch: branch.date)


def newest_untested(branches: Iterable[Branch], tested: Collection[str]) -> Branch | None:
    """Return the newest branch, unless it or a newer one was tested: older ones are passed over."""
    left = None
    for branch in sorted(branches, key=lambda branch: branch.date):
        left = None if branch.name in tested else branch
    return left


def _parse(entry: Any) -> Branch:
    name, base = str(entry["branch"]), str(entry["base"])
    date = datetime.fromisoformat(entry["date"])
    # What is published has the branch once more behind the repository.
    url = str(entry["url"]).partition(" ")[0]
    if not _NAME.fullmatch(name) or ".." in name:
        raise ValueError(f"{name!r} is no name of a branch")
    if not re.fullmatch(r"[0-9a-f]{7,64}", base):
        raise ValueError(f"its base {base!r} is no commit")
    if not url or url.startswith("-") or "::" in url:
        raise ValueError(f"its url {url!r} is no repository")
    return Branch(name, date if date.tzinfo else date.replace(tzinfo=UTC), base, url)


def open_mirror(mirror: Path, reference: Path | None) -> None:
    """Make the bare repository that branches are fetched into, unless it is there.

    What the repository ``reference`` has need not be fetched.

    Raises:
        ConfigurationError: ``reference`` is no repository.
        MissingError: git is missing or fails.
    """
    mirror.mkdir(parents=True, exist_ok=True)
    if not (mirror / "HEAD").is_file():
        Git(mirror, mirror / "none").run("init", "--quiet", "--bare")
    if reference is not None:
        other = Git(reference.resolve(), mirror / "none")
        found = other.try_run("rev-parse", "--path-format=absolute", "--git-path", "objects")
        if found.returncode != 0:
            raise ConfigurationError([f"--reference {reference} is no git repository"])
        (mirror / "objects/info/alternates").write_text(found.stdout)


def fetch(branch: Branch, mirror: Path) -> str:
    """Fetch a branch into the bare repository ``mirror``; return its commit.

    Raises:
        ListError: the repository does not answer, or has neither branch nor base.
        MissingError: git is missing.
    """
    git = Git(mirror, mirror / "none")
    ref = f"refs/watch/{branch.name}"
    done = git.try_run("fetch", "--quiet", "--no-tags", "--force", "--end-of-options", branch.url,
                       f"refs/heads/{branch.name}:{ref}")  # fmt: skip
    if done.returncode != 0:
        raise ListError(f"{branch.url}: {branch.name}: {done.stderr.strip()[-300:]}")
    try:
        commit = git.run("rev-parse", "--verify", f"{ref}^{{commit}}").strip()
        git.run("merge-base", "--is-ancestor", branch.base, commit)
    except MissingError as error:
        raise ListError(f"{branch.name} is not above its base {branch.base}: {error}") from None
    return commit
