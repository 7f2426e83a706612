"""Bisection of a kernel's history: which commit first makes a difference, by halving what is left.

The candidates are those of git-bisect(1): what the bad revision has and no good one.  A commit that
cannot be judged, because it does not compile or its loads do not count, is passed over for its
nearest neighbour; the repository itself is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from testbed.base.errors import ConfigurationError
from wings.kernels.own.git import Git

Judgement = Literal["good", "bad", "skip"]


@dataclass(frozen=True, slots=True)
class Bisection:
    """What a bisection came to.

    Attributes:
        suspects: the first bad commit; several, oldest last, where those between could not be
            judged.
        judged: what was found of each commit, in the order of the search.
    """

    suspects: tuple[str, ...]
    judged: tuple[tuple[str, Judgement], ...]


def bisect(git: Git, good: str, bad: str, judge: Callable[[str, int], Judgement]) -> Bisection:
    """Return the first commit after ``good`` that is bad, as ``bad`` is.

    ``judge`` is called with a commit, and how many further ones will have to be judged about.

    Raises:
        ConfigurationError: nothing lies between the two.
        MissingError: git fails.
    """
    goods, newest = [good], bad
    judged: dict[str, Judgement] = {}
    while True:
        left = _candidates(git, goods, newest)
        if newest not in left:
            raise ConfigurationError(
                [f"{git.repository}: {bad[:12]} has no commit that {good[:12]} lacks; --good is "
                 "the older one, without the difference, and --bad the newer one, with it"]
            )  # fmt: skip
        untried = [commit for commit in left if commit != newest and commit not in judged]
        if not untried:
            skipped = [commit for commit in left if judged.get(commit) == "skip"]
            return Bisection((newest, *skipped), tuple(judged.items()))
        commit = untried[0]
        judged[commit] = judge(commit, len(left).bit_length() - 1)
        if judged[commit] == "bad":
            newest = commit
        elif judged[commit] == "good":
            goods.append(commit)


def steps_of(git: Git, good: str, bad: str) -> int:
    """Return about how many commits will have to be judged."""
    return max(len(_candidates(git, [good], bad)).bit_length() - 1, 0)


def _candidates(git: Git, goods: Iterable[str], bad: str) -> list[str]:
    """Return the commits that may be the first bad one, best to judge first."""
    out = git.run("rev-list", "--bisect-all", bad, *(f"^{good}" for good in goods))
    return [line.split()[0] for line in out.splitlines()]
