"""Executor: a branch is built and tested, what is worse than on its base is traced to a commit.

It calls this program's own verbs, one process each, so that one that fails or hangs is a result
like another:

1. ``kernel try``: page load times, the base beside the branch;
2. ``scenario all``, on both;
3. ``kernel selftests``, and if one fails, on the base as well;
4. ``kernel bisect`` for what fails on the branch alone, until no bad commit is left.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.base import log
from testbed.base.errors import (
    EXIT_CONFIGURATION,
    EXIT_INCONCLUSIVE,
    EXIT_INTERRUPTED,
    EXIT_MISSING,
    EXIT_OK,
    TestbedError,
)
from testbed.kernel.run.interface import InterruptedTrial
from wings.kernels.formats.netdev import name_for_netdev
from wings.kernels.own.git import Git
from wings.kernels.watch.branches import Branch, fetch
from wings.kernels.watch.published import PublishedRuns

GROUP = "firstflight"
KERNEL, BASE = "watch", "watch-base"
SUITES = ("page-loads", "promises", "selftests")
MOST_COMMITS = 3
"""So many bad commits are looked for in each suite."""
_log = log.logger(__name__)

Verb = Callable[[Sequence[str], Path, Path, float], int | None]
"""Calls a verb: its words, files for standard output and error, and how many seconds it may take;
returns its exit code, ``None`` where it took longer."""


class UnansweredError(TestbedError):
    """A verb came to no answer, and may come to one another time."""


@dataclass(frozen=True, slots=True)
class Executor:
    """What tests branches, one after the other.

    Attributes:
        verb: calls a verb of this program.
        mirror: the bare repository that branches are fetched into.
        published: where results go.
        suites: those of SUITES that are run.
        limit_s: how long a branch may take; what is left undone then is said.
        words: further words of each verb, by its suite.
    """

    verb: Verb
    mirror: Path
    published: PublishedRuns
    suites: Sequence[str] = SUITES
    limit_s: float = 3600.0
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def test(self, branch: Branch) -> bool:
        """Test a branch and publish what it comes to; return whether it is no worse than its base.

        Raises:
            ListError: it cannot be fetched.
            UnansweredError: nothing can be said of it this time; nothing is published.
            StorageError: results cannot be written.
            InterruptedTrial: the user has stopped it.
        """
        commit = fetch(branch, self.mirror)
        began = datetime.now(UTC)
        self.published.begin(branch.name)
        folder = _new_folder(self.published.run_folder(branch.name))
        run = _Run(self, branch, commit, folder, time.monotonic() + self.limit_s)
        results = list(run.results())
        run.forget_kernels()
        ended = datetime.now(UTC)
        self.published.end(branch.name,
                           {"start": began.isoformat(timespec="seconds"),
                            "end": ended.isoformat(timespec="seconds"), "base": branch.base,
                            "commit": commit, "link": self.published.link(folder),
                            "results": results})  # fmt: skip
        return all(result["result"] != "fail" for result in results if result["test"] in _OURS)

    def give_up(self, branch: Branch, why: str) -> None:
        """Publish that nothing can be said of a branch."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        link = self.published.link(self.published.run_folder(branch.name))
        test = {"test": "executor", "group": GROUP, "result": "skip", "link": link, "why": why}
        run = {"start": now, "end": now, "base": branch.base, "link": link, "results": [test]}
        self.published.end(branch.name, run)


_OURS = frozenset({"build", "regressions"})
"""Tests that say whether a branch is worse than its base."""


def _new_folder(folder: Path) -> Path:
    """Make ``folder``, or where one is there already, of an earlier try, one beside it."""
    for number in range(1, 1000):
        place = folder if number == 1 else folder.with_name(f"{folder.name}.{number}")
        if not place.exists():
            place.mkdir(parents=True)
            return place
    raise UnansweredError(f"{folder}: a thousand tries are there; move them away")


@dataclass(slots=True)
class _Run:
    """One branch: its folder has the output, log and results of each verb, by name."""

    executor: Executor
    branch: Branch
    commit: str
    folder: Path
    until_s: float
    worse: dict[str, list[str]] = field(default_factory=dict)
    """What fails on the branch and not on its base, by suite."""

    def results(self) -> Iterator[dict[str, Any]]:
        """Yield the tests: whether it builds, those of each suite, and what is worse."""
        built = self._build()
        yield built
        if built["result"] == "fail":
            return
        run = {"page-loads": self._page_loads, "promises": self._promises,
               "selftests": self._selftests}  # fmt: skip
        for suite in self.executor.suites:
            yield run[suite]()
        yield self._regressions()

    def forget_kernels(self) -> None:
        """Remove what was built of the branch and its base: some 20 MB."""
        self._call("remove", "kernel", "remove", KERNEL, BASE)

    def _build(self) -> dict[str, Any]:
        kernels = ((BASE, self.branch.base), (KERNEL, self.commit))
        for name, revision in kernels:
            words = ("kernel", "add", name, "--git", str(self.executor.mirror), "--rev", revision,
                     "--replace")  # fmt: skip
            code = self._call(f"build-{name}", *words)
            if code != EXIT_OK and name == BASE:
                raise UnansweredError(f"the base of {self.branch.name} cannot be built: "
                                      f"{self._last_line(f'build-{name}')}")  # fmt: skip
            if code not in {EXIT_OK, EXIT_CONFIGURATION, EXIT_MISSING}:
                raise UnansweredError(f"{self.branch.name}: {self._last_line(f'build-{name}')}")
            if code != EXIT_OK:
                return self._test("build", "fail", f"build-{name}.log", [])
        return self._test("build", "pass", f"build-{KERNEL}.log", [])

    def _page_loads(self) -> dict[str, Any]:
        words = ("kernel", "try", "--git", str(self.executor.mirror), "--rev", self.commit,
                 "--against", self.branch.base, "--name", KERNEL)  # fmt: skip
        (test,) = self._ask("page-loads", *words)
        self.worse["page-loads"] = _failed(test)
        return test

    def _promises(self) -> dict[str, Any]:
        words = ("scenario", "all", "--kernel-version", BASE, "--kernel-version", KERNEL)
        before, after = self._ask("promises", *words)
        known = _failed(before)
        self.worse["promises"] = [name for name in _failed(after) if name not in known]
        return after | {"test": "promises"}

    def _selftests(self) -> dict[str, Any]:
        words = ("kernel", "selftests", "--kernel-version")
        (test,) = self._ask("selftests", *words, KERNEL)
        failed = _failed(test)
        if failed:  # all of the base's, since the branch may have brought some of these
            (before,) = self._ask("selftests", *words, BASE, name="selftests-base")
            cases = before.get("results", ())
            passed = {case["name"] for case in cases if case["result"] == "pass"}
            failed = [name for name in failed if name in passed]
        self.worse["selftests"] = failed
        return test

    def _regressions(self) -> dict[str, Any]:
        """Return a test whose cases are bad commits, or what none was found of."""
        cases = [
            case for suite, names in self.worse.items() if names for case in self._trace(suite)
        ]
        return self._test("regressions", "fail" if cases else "pass", "", cases)

    def _trace(self, suite: str) -> Iterator[dict[str, Any]]:
        """Yield a case for each commit that made something of ``suite`` worse, the first first."""
        option = {"promises": "--promise", "selftests": "--selftest"}.get(suite)
        chosen = [word for name in self.worse[suite] for word in (option, name) if option and word]
        good = self.branch.base
        for number in range(1, MOST_COMMITS + 1):
            name = f"bisect-{suite}-{number}"
            words = ("kernel", "bisect", "--good", good, "--bad", self.commit, "--git",
                     str(self.executor.mirror), "--json", *chosen)  # fmt: skip
            code = self._call(name, *words, "-o", str(self.folder / name), suite=suite)
            if code == EXIT_CONFIGURATION and number > 1:  # the rest is no worse
                return
            if code not in {EXIT_OK, EXIT_INCONCLUSIVE}:
                why = "took too long" if code is None else self._last_line(name)
                yield self._case(f"{suite}: not traced: {why}", f"{name}.log")
                return
            suspects = json.loads((self.folder / f"{name}.txt").read_text())["suspects"]
            git = Git(self.executor.mirror, self.executor.mirror / "none")
            named = [git.describe(suspect) for suspect in suspects]
            case = self._case(f"{suite}: {'; or '.join(named)}", f"{name}.log")
            shutil.rmtree(self.folder / name, ignore_errors=True)  # hundreds of megabytes
            yield case | {"commits": suspects, "cases": self.worse[suite]}
            if suspects[0] == self.commit:
                return
            good = suspects[0]

    def _ask(self, suite: str, *words: str, name: str | None = None) -> list[dict[str, Any]]:
        """Return the tests that a verb's document has, each with a link to its results."""
        name = name or suite
        place = self.folder / name
        code = self._call(name, *words, "--style", "netdev", "-o", str(place), suite=suite)
        try:
            tests = json.loads((self.folder / f"{name}.txt").read_text())["results"]
        except (OSError, ValueError, KeyError):
            why = "took too long" if code is None else self._last_line(name)
            raise UnansweredError(f"{self.branch.name}: {name}: {why}") from None
        link = self.executor.published.link(place)
        return [test | {"group": GROUP, "link": link} for test in tests]

    def _call(self, name: str, *words: str, suite: str = "") -> int | None:
        left_s = self.until_s - time.monotonic()
        _log.info("%s: %s", self.branch.name, name)
        said, logged = (self.folder / f"{name}.{kind}" for kind in ("txt", "log"))
        words = (*words, *self.executor.words.get(suite, ()))
        code = self.executor.verb(words, said, logged, max(left_s, 1.0))
        if code == EXIT_INTERRUPTED:
            raise InterruptedTrial("interrupted")
        return code

    def _last_line(self, name: str) -> str:
        file = self.folder / f"{name}.log"
        lines = file.read_text(errors="replace").split("\n") if file.is_file() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "says nothing")

    def _test(
        self, name: str, result: str, file: str, cases: list[dict[str, Any]]
    ) -> dict[str, Any]:
        link = self.executor.published.link(self.folder / file)
        test = {"test": name, "group": GROUP, "result": result, "link": link}
        return test | ({"results": cases} if cases else {})

    def _case(self, says: str, file: str) -> dict[str, Any]:
        link = self.executor.published.link(self.folder / file)
        return {"test": name_for_netdev(says), "name": says, "result": "fail", "link": link}


def _failed(test: Mapping[str, Any]) -> list[str]:
    return [case["name"] for case in test.get("results", ()) if case["result"] == "fail"]
