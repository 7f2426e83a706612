"""A week of a kernel's CI: a real git repository, and verbs that only read its files.

Eight branches a day, each some patches above the newest base, which grows.  What the "kernel" of a
commit does is in its files: ``page-loads``, ``promises`` and ``selftests`` name what fails there,
and a file ``broken`` keeps it from being compiled.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from testbed.base.errors import EXIT_CONFIGURATION, EXIT_INCONCLUSIVE, EXIT_MISSING, EXIT_OK
from tests.kernel.small_tree import commit, git, make_repository
from wings.kernels.bisection import Judgement, bisect
from wings.kernels.own.git import Git
from wings.kernels.watch.executor import BASE, KERNEL

CASES = {"page-loads": ("page=wsj rtt_ms=20", "page=wsj rtt_ms=200", "page=amazon rtt_ms=100"),
         "promises": ("cached-cookie", "wrong-cookie", "no-cookie"),
         "selftests": ("packetdrill/tcp_a.pkt", "packetdrill/tcp_b.pkt", "net/tls")}  # fmt: skip
START = datetime(2026, 11, 16, tzinfo=UTC)
BRANCHES, A_DAY, PATCHES = 56, 8, 12


@dataclass
class Week:
    """The repository, its list of branches, and what was planted."""

    repository: Path
    listed: list[dict[str, str]] = field(default_factory=list)
    planted: dict[str, set[str]] = field(default_factory=dict)
    """The bad commits of each branch."""

    def make(self, draw: random.Random, branches: int) -> None:
        """Make branches; about a third get one bad commit or two, some one that breaks."""
        for number in range(branches):
            if number % 5 == 4:  # what was applied meanwhile, a known failure with it
                self._change("base.c", f"base {number}")
                if number == 24:
                    self._fail("selftests", "net/tls", "the base fails a test from here on")
            self._branch(number, draw)

    def _branch(self, number: int, draw: random.Random) -> None:
        date = START + timedelta(hours=3 * number)
        name = f"net-next-{date:%Y-%m-%d--%H-%M}"
        base = git(self.repository, "rev-parse", "main").strip()
        git(self.repository, "checkout", "--quiet", "-b", name, "main")
        bad = sorted(draw.sample(range(PATCHES), draw.choice((0, 0, 1, 2))))
        suites = draw.sample(sorted(CASES), 2) if draw.random() < 0.5 else ["promises", "promises"]
        self.planted[name] = set()
        for patch in range(PATCHES):
            if patch in bad:
                suite = suites.pop()
                taken = ((self.repository / suite).read_text() if (self.repository / suite).exists()
                         else "")  # fmt: skip
                free = [case for case in CASES[suite] if case not in taken]
                made = self._fail(suite, draw.choice(free), f"{name}: patch {patch}")
                self.planted[name].add(made)
            else:
                self._change(f"file{draw.randrange(8)}.c", f"{name}: patch {patch}")
        git(self.repository, "checkout", "--quiet", "main")
        git(self.repository, "update-server-info")
        self.listed.append({"branch": name, "date": date.isoformat(), "base": base, "url": ""})

    def _change(self, file: str, subject: str) -> str:
        (self.repository / file).write_text(f"/* {subject} */\n")
        return commit(self.repository, subject)

    def _fail(self, suite: str, case: str, subject: str) -> str:
        with (self.repository / suite).open("a") as file:
            file.write(f"{case}\n")
        return commit(self.repository, subject)


def make_week(folder: Path, seed: int, branches: int = BRANCHES) -> Week:
    """Make a week in the new ``folder``, or its first branches."""
    week = Week(make_repository(folder / "linux"))
    week.make(random.Random(seed), branches)  # noqa: S311 - no secret
    return week


@dataclass
class TreeVerbs:
    """Verbs that answer by what the files of a commit say, in the forms of the real ones."""

    mirror: Path
    kernels: dict[str, str] = field(default_factory=dict)
    called: list[str] = field(default_factory=list)
    broken: frozenset[str] = frozenset()
    """Commits that do not compile."""

    def __call__(self, words: Sequence[str], said: Path, logged: Path, _limit_s: float) -> int:
        """Answer like the verb that ``words`` begin with."""
        self.called.append(" ".join(words[:2]))
        logged.write_text("error: it is said here why\n")
        if words[:2] == ("kernel", "add"):
            if self._resolve(_after(words, "--rev")) in self.broken:
                return EXIT_MISSING
            self.kernels[words[2]] = self._resolve(_after(words, "--rev"))
            return EXIT_OK
        if words[:2] == ("kernel", "remove"):
            self.kernels.clear()
            return EXIT_OK
        if words[:2] == ("kernel", "bisect"):
            return self._bisect(words, said)
        tests = []
        if words[0] == "scenario":
            tests = [self._suite("promises", name) for name in (BASE, KERNEL)]
        elif words[1] == "try":
            new = self._failing("page-loads", self.kernels[KERNEL])
            worse = new - self._failing("page-loads", self.kernels[BASE])
            tests = [_document("page-loads", worse)]
        else:
            test = self._suite("selftests", _after(words, "--kernel-version"))
            tests = [test if "--packetdrill" in words else _skipped(test)]
        said.write_text(json.dumps({"results": tests}))
        return int(any(test["result"] == "fail" for test in tests))

    def _bisect(self, words: Sequence[str], said: Path) -> int:
        good, bad = _after(words, "--good"), _after(words, "--bad")
        chosen = {words[n + 1] for n, word in enumerate(words)
                  if word in {"--promise", "--selftest"}}  # fmt: skip
        suite = next((suite for suite in ("promises", "selftests")
                      if chosen & set(CASES[suite])), "page-loads")  # fmt: skip

        def worse(revision: str) -> bool:
            failing = self._failing(suite, revision) - self._failing(suite, good)
            return bool(failing & chosen if chosen else failing)

        def judge(revision: str, _left: int) -> Judgement:
            if revision in self.broken:
                return "skip"
            return "bad" if worse(revision) else "good"

        if not worse(bad):
            return EXIT_CONFIGURATION
        found = bisect(Git(self.mirror, self.mirror / "none"), good, bad, judge)
        said.write_text(json.dumps({"suspects": found.suspects, "judged": found.judged}))
        return EXIT_OK if len(found.suspects) == 1 else EXIT_INCONCLUSIVE

    def _suite(self, suite: str, kernel: str) -> dict[str, object]:
        return _document(suite, self._failing(suite, self.kernels[kernel]))

    def _failing(self, suite: str, revision: str) -> set[str]:
        text = Git(self.mirror, self.mirror / "none").try_run("show", f"{revision}:{suite}")
        return set(text.stdout.splitlines())

    def _resolve(self, revision: str) -> str:
        return Git(self.mirror, self.mirror / "none").run("rev-parse", revision).strip()


def _document(suite: str, failing: set[str]) -> dict[str, object]:
    cases = [{"test": name, "name": name, "result": "fail" if name in failing else "pass"}
             for name in CASES[suite]]  # fmt: skip
    return {"test": suite, "result": "fail" if failing else "pass", "results": cases}


def _skipped(test: dict[str, object]) -> dict[str, object]:
    """What tests come to whose program is not there."""
    cases = [case | {"result": "skip"} for case in test["results"]]  # type: ignore[attr-defined]
    return test | {"result": "skip", "results": cases}


def _after(words: Sequence[str], option: str) -> str:
    return words[words.index(option) + 1]
