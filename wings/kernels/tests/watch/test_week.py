"""A simulated week of netdev's CI: planted regressions are traced to their commits, no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.kernel.run.interface import InterruptedTrial
from tests.kernel.small_tree import git
from tests.web import serving_folder
from wings.kernels.tests.watch.history import (
    A_DAY,
    BRANCHES,
    TreeVerbs,
    Week,
    make_week,
)
from wings.kernels.watch.branches import (
    Branch,
    fetch_branches,
    newest_untested,
    open_mirror,
    parse_branches,
)
from wings.kernels.watch.executor import Executor, UnansweredError
from wings.kernels.watch.published import PublishedRuns

SEED = 35


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Week:
    """The first day of that week."""
    return make_week(tmp_path_factory.mktemp("day"), SEED, A_DAY)


def make_executor(tmp_path: Path) -> tuple[Executor, TreeVerbs]:
    mirror = tmp_path / "watch.git"
    open_mirror(mirror, None)
    verbs = TreeVerbs(mirror)
    (tmp_path / "public").mkdir()
    published = PublishedRuns(tmp_path / "public", "https://example.org/firstflight", "firstflight")
    words = {"selftests": ("--packetdrill", "packetdrill")}
    return Executor(verbs, mirror, published, words=words), verbs


def read_run(executor: Executor, branch: str) -> dict[str, dict[str, object]]:
    """The tests of a branch, found as a collector finds them."""
    folder = executor.published.folder
    runs = {entry["branch"]: entry for entry in json.loads((folder / "results.json").read_text())}
    url = runs[branch]["url"]
    assert url.startswith("https://example.org/firstflight/")
    run = json.loads((folder / url.rpartition("/")[2]).read_text())
    assert (run["branch"], run["executor"]) == (branch, "firstflight")
    assert run["start"] <= run["end"]
    return {test["test"]: test for test in run["results"]}


def commits_of(tests: dict[str, dict[str, object]]) -> set[str]:
    cases = tests["regressions"].get("results", [])
    assert isinstance(cases, list)
    return {commit for case in cases for commit in case["commits"]}


@pytest.mark.nightly
def test_a_week_of_56_branches(tmp_path: Path) -> None:
    week = make_week(tmp_path / "week", SEED)
    executor, _ = make_executor(tmp_path)
    list_file = tmp_path / "list" / "branches.json"
    list_file.parent.mkdir()
    with (serving_folder(week.repository / ".git") as repository,
          serving_folder(list_file.parent) as site):  # fmt: skip
        for number in range(BRANCHES):
            shown = [entry | {"url": f"{repository} {entry['branch']}"}
                     for entry in week.listed[max(0, number - 8) : number + 1]]  # fmt: skip
            list_file.write_text(json.dumps(shown))
            listed = fetch_branches(f"{site}/branches.json")
            branch = newest_untested(listed, executor.published.tested())
            assert branch is not None
            assert branch.name == week.listed[number]["branch"]
            good = executor.test(branch)
            assert good is not bool(week.planted[branch.name])
            assert newest_untested(listed, executor.published.tested()) is None
    found = {name: commits_of(read_run(executor, name)) for name in week.planted}
    assert found == week.planted
    assert sum(map(len, week.planted.values())) > 20
    assert sum(not planted for planted in week.planted.values()) > 20
    # What the base fails as well is shown, and is no regression.
    last = read_run(executor, week.listed[-1]["branch"])
    assert last["selftests"]["result"] == "fail"


def branch_of(week: Week, number: int) -> Branch:
    entry = week.listed[number] | {"url": str(week.repository)}
    listed = json.dumps([entry]).encode()
    return parse_branches("a list", listed)[0]


def test_a_branch_that_does_not_compile_is_a_failure_and_a_base_is_none(
    day: Week, tmp_path: Path
) -> None:
    number = next(n for n, entry in enumerate(day.listed) if day.planted[entry["branch"]])
    branch = branch_of(day, number)
    executor, verbs = make_executor(tmp_path)
    executor.test(branch)
    head = json.loads((executor.published.folder / f"results-{branch.name}.json").read_text())[
        "commit"
    ]
    verbs.broken = frozenset({head})
    assert not executor.test(branch)
    tests = read_run(executor, branch.name)
    assert set(tests) == {"build"}
    assert tests["build"]["result"] == "fail"
    verbs.broken = frozenset({branch.base})
    with pytest.raises(UnansweredError, match=r"the base of .* cannot be built: error: it is said"):
        executor.test(branch)
    assert branch.name not in executor.published.tested()  # tried again, and then given up
    executor.give_up(branch, "the base cannot be built")
    assert read_run(executor, branch.name)["executor"]["result"] == "skip"


def test_commits_that_do_not_compile_are_suspects_too(day: Week, tmp_path: Path) -> None:
    def before(commit: str) -> str:
        return git(day.repository, "rev-parse", f"{commit}^").strip()

    number, planted = next((number, bad) for number, entry in enumerate(day.listed)
                           for bad in day.planted[entry["branch"]]
                           if len(day.planted[entry["branch"]]) == 1
                           and before(bad) != entry["base"])  # fmt: skip
    executor, verbs = make_executor(tmp_path)
    branch = branch_of(day, number)
    verbs.broken = frozenset({before(planted)})
    assert not executor.test(branch)
    assert commits_of(read_run(executor, branch.name)) == {planted, before(planted)}


@pytest.mark.parametrize("code", [None, 4])
def test_no_answer_publishes_nothing(day: Week, tmp_path: Path, code: int | None) -> None:
    executor, verbs = make_executor(tmp_path)

    def fails(words: object, said: Path, logged: Path, limit_s: float) -> int | None:
        logged.write_text("error: no room left\n")
        return code if words[0] == "scenario" else verbs(words, said, logged, limit_s)  # type: ignore[index, arg-type]

    executor = Executor(fails, executor.mirror, executor.published)
    branch = branch_of(day, 0)
    said = "took too long" if code is None else "no room left"
    with pytest.raises(UnansweredError, match=said):
        executor.test(branch)
    assert executor.published.tested() == set()
    (entry,) = json.loads((executor.published.folder / "results.json").read_text())
    assert entry == {"url": None, "branch": branch.name, "executor": "firstflight"}


def test_an_interruption_ends_it_and_the_branch_is_tested_again(day: Week, tmp_path: Path) -> None:
    executor, _ = make_executor(tmp_path)
    interrupted = Executor(lambda *_words: 130, executor.mirror, executor.published)
    with pytest.raises(InterruptedTrial):
        interrupted.test(branch_of(day, 0))
    assert executor.published.tested() == set()
    executor.test(branch_of(day, 0))
    assert executor.published.tested() == {day.listed[0]["branch"]}
