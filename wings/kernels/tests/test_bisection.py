"""Bisection: the first commit that makes a difference, and commits that cannot be judged."""

from __future__ import annotations

import pytest

from testbed.base.errors import ConfigurationError
from tests.kernel.small_tree import commit, make_repository
from wings.kernels.bisection import Judgement, bisect, steps_of
from wings.kernels.own.git import Git

COMMITS = 64


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Git, list[str]]:
    repository = make_repository(tmp_path_factory.mktemp("history") / "linux")
    made = []
    for number in range(COMMITS):
        (repository / "answer.c").write_text(f"int answer(void) {{ return {number}; }}\n")
        made.append(commit(repository, f"answer {number}"))
    return Git(repository, repository / "none"), made


@pytest.mark.parametrize("planted", [1, 17, 40, COMMITS - 1])
def test_a_planted_commit_is_found_in_six_steps(
    history: tuple[Git, list[str]], planted: int
) -> None:
    git, made = history

    def judge(sha: str, _left: int) -> Judgement:
        return "bad" if made.index(sha) >= planted else "good"

    found = bisect(git, made[0], made[-1], judge)
    assert found.suspects == (made[planted],)
    assert len(found.judged) <= 6
    assert steps_of(git, made[0], made[-1]) in (5, 6)


def test_commits_that_cannot_be_judged_are_passed_over(history: tuple[Git, list[str]]) -> None:
    git, made = history

    def judge(sha: str, _left: int) -> Judgement:
        number = made.index(sha)
        if 20 <= number < 30:
            return "skip"
        return "bad" if number >= 40 else "good"

    assert bisect(git, made[0], made[-1], judge).suspects == (made[40],)


def test_those_next_to_the_first_bad_one_are_suspects_too(history: tuple[Git, list[str]]) -> None:
    git, made = history

    def judge(sha: str, _left: int) -> Judgement:
        number = made.index(sha)
        if 20 <= number < 23:
            return "skip"
        return "bad" if number >= 22 else "good"

    found = bisect(git, made[0], made[-1], judge)
    assert found.suspects[0] == made[23]
    assert set(found.suspects[1:]) == set(made[20:23])


def test_good_and_bad_the_wrong_way_round(history: tuple[Git, list[str]]) -> None:
    git, made = history
    for good, bad in ((made[-1], made[0]), (made[3], made[3])):
        with pytest.raises(ConfigurationError, match="--good is the older one"):
            bisect(git, good, bad, lambda _sha, _left: "good")
