"""The table of promises: what each kernel made of every scenario, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from analysis.records.cells import experiment_of
from analysis.records.kernel_warnings import KernelWarning, find_kernel_warnings
from analysis.records.results import Identity, Results, judge, read_results
from analysis.words import clean, lines
from testbed.base.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_OUT_OF_TOLERANCE, ConfigurationError
from testbed.experiment.lanes import read_lanes
from testbed.model import Outcome, Record, stored_kind
from wings.scenarios.analysis.records import KIND
from wings.scenarios.measurement import ScenarioResult, Verdict
from wings.scenarios.promise import Promise, PromiseError, read_promise
from wings.scenarios.spec import Scenario

State = Verdict | Outcome | Literal["not run"]
"""What became of a promise: its verdict where the scenario was performed and proven."""
GRAVITY: tuple[State, ...] = ("broken", "failed", "timeout", "unproven", "lab_mismatch", "not run",
                              "unsupported", "changed", "kept")  # fmt: skip
"""The gravest first: of several repetitions it counts."""
SETTLED: tuple[State, ...] = ("kept", "changed", "unsupported", "broken")
"""What is an answer; all else is none, and to be run again."""

Key = tuple[str, str]
"""A scenario's name and its file."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one kernel made of a promise: the state, why, and the record that it is from.

    ``evidence`` has a sentence for each call and packet that is not as promised, or the reason why
    there is no verdict.
    """

    state: State
    evidence: tuple[str, ...] = ()
    record: Record | None = None

    @property
    def words(self) -> str:
        """The state in words."""
        return self.state.replace("_", " ")


@dataclass(frozen=True, slots=True)
class PromiseRow:
    """A promise, the scenario that shows it, and what each lane's kernel made of it."""

    name: str
    promise: Promise
    findings: tuple[Finding, ...]

    def says(self, finding: Finding) -> str:
        """Return the sentence on a finding: the packet that breaks it, or what is done instead."""
        if finding.state == "changed" and self.promise.changed is not None:
            change = self.promise.changed
            return clean(f"since {change.since}: {change.says}")
        return clean(finding.evidence[0]) if finding.evidence else ""


@dataclass(frozen=True, slots=True)
class Lane:
    """A results folder, and the kernel that it is of."""

    results: Results

    @property
    def identity(self) -> Identity:
        """What its records share."""
        return self.results.identity

    @property
    def name(self) -> str:
        """The kernel: its version where time is virtual, else the machine's own."""
        version = self.identity.kernel_version or "none"
        return f"{self.identity.kernel} {version}" if self.identity.kernel else version


@dataclass(frozen=True)  # no slots: its counts are worked out once
class PromiseTable:
    """All promises of one or several results folders, in the order asked."""

    title: str
    lanes: tuple[Lane, ...]
    rows: tuple[PromiseRow, ...]

    @cached_property
    def counts(self) -> tuple[dict[State, int], ...]:
        """How many promises came to what, for each lane, the gravest first."""
        counts = []
        for place in range(len(self.lanes)):
            states = [row.findings[place].state for row in self.rows]
            counts.append({state: states.count(state) for state in GRAVITY if state in states})
        return tuple(counts)

    @property
    def exit_code(self) -> int:
        """1 if a promise that is to be kept is broken, 4 if one has no answer, else 0."""
        states = {state for counts in self.counts for state in counts}
        if "broken" in states:
            return EXIT_OUT_OF_TOLERANCE
        return EXIT_OK if states <= set(SETTLED) else EXIT_INCOMPLETE


def key_of(record: Record) -> Key:
    """Return the name and the file of the scenario that a trial performed."""
    scenario = record.trial.condition_as(Scenario)
    return scenario.scenario, scenario.text


def read_promises(folders: Sequence[Path]) -> PromiseTable:
    """Return the table of results folders; of a run on several kernels, of each.

    Raises:
        ConfigurationError: a folder holds no scenarios, or its records must not be pooled.
        StorageError: a folder cannot be read.
    """
    single = [folder / name for folder in folders for name in read_lanes(folder)]
    single += [folder for folder in folders if not read_lanes(folder)]
    return make_promises([read_results(folder) for folder in single])


def make_promises(results: Sequence[Results]) -> PromiseTable:
    """Return the table of results that were read already.

    Raises:
        ConfigurationError: they are not of scenarios.
    """
    problems = [
        f"{each.folder} holds no scenarios, but trials of the kind {kind}"
        for each in results
        if (kind := stored_kind(experiment_of(each.manifest))) != KIND
    ]
    if problems:
        raise ConfigurationError(problems)
    texts: dict[Key, None] = {}
    for each in results:
        texts |= dict.fromkeys(_keys(each))
    known = find_kernel_warnings(results[0].folder, results[0].records) if len(results) > 1 else ()
    rows = (
        PromiseRow(
            clean(key[0]), _read(key),
            tuple(_find(each, key, known if place else ()) for place, each in enumerate(results)),
        )
        for key in texts
    )  # fmt: skip
    title = next((str(experiment_of(each.manifest).get("title") or "") for each in results), "")
    return PromiseTable(clean(title) or "Promises", tuple(map(Lane, results)), tuple(rows))


def _keys(results: Results) -> Iterable[Key]:
    """Yield the scenarios of a folder, planned ones first and in their order."""
    for condition in experiment_of(results.manifest).get("conditions", ()):
        if isinstance(condition, Mapping) and stored_kind(condition) == KIND:
            yield str(condition["scenario"]), str(condition["text"])
    for record in results.records:
        yield key_of(record)


def _read(key: Key) -> Promise:
    try:
        return read_promise(key[1])
    except PromiseError as error:
        problems = [f"scenario {key[0]}: {problem}" for problem in error.problems]
        raise ConfigurationError(
            [*problems, "its results are of another revision of the testbed: run it again"]
        ) from error


def _find(results: Results, key: Key, known: Sequence[KernelWarning]) -> Finding:
    """Return the gravest of what all repetitions came to; another kernel warns of ``known``."""
    findings = (
        _judge(record, find_kernel_warnings(results.folder, [record]), known)
        for record in results.records
        if key_of(record) == key
    )
    return min(findings, key=lambda each: GRAVITY.index(each.state), default=Finding("not run"))


def _judge(
    record: Record, warnings: Iterable[KernelWarning], known: Sequence[KernelWarning]
) -> Finding:
    for warning in warnings:
        if not any(warning.is_like(other) for other in known):
            said = (f"the kernel says: {warning.title}", *warning.lines[1:])
            return Finding("broken", said, record)
    outcome, reason = judge(record)
    result = record.measured_as(ScenarioResult)
    if outcome != "ok" or result is None:
        return Finding(outcome, (lines(reason),) if reason else (), record)
    return Finding(result.verdict, result.differences, record)
