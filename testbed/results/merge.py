"""Merge of results folders: the one that a single machine would have written.

Folders are parts of one plan (``testbed.experiment.shards``), or runs of it that ended early, all
in one environment.  A trial that several have must be equal to the bit in all of them.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.base.errors import ConfigurationError, storing
from testbed.experiment.lanes import read_lanes, write_lanes
from testbed.model import Experiment, Trial, canonical, in_real_time
from testbed.results.agreement import REPEATABLE, DisagreementError, first_difference, result_of
from testbed.results.costs import COSTS_FILE, read_costs, write_cost_line
from testbed.results.environment import differences
from testbed.results.folder import TRACES_FOLDER, new_results
from testbed.results.manifest import (
    KEPT_LEAST_FIRST,
    Manifest,
    Merged,
    Stored,
    load_manifest,
    planned_trials,
    write_manifest,
)
from testbed.results.records import RECORDS_FILE, read_lines

_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge of folders came to.

    Attributes:
        folder: the new results folder, or one of its lanes.
        name: the lane's name; empty where there is one.
        overlaps: how many trials more than one folder had, equal to the bit.
        missing: the planned trials that none has a record of, in order.
    """

    folder: Path
    name: str
    overlaps: int
    missing: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """Line of a record: which folder it is in, and where; and what it says of its trial."""

    source: int
    start: int
    size: int
    outcome: str
    attempt: int


@dataclass(slots=True)
class _Source:
    """One of the folders, with its records by trial id."""

    folder: Path
    manifest: Manifest
    lines: dict[str, list[_Line]]
    overlap: int = 0

    def read(self, line: _Line) -> dict[str, Any]:
        """Return the record in ``line`` as plain data."""
        with (self.folder / RECORDS_FILE).open("rb") as stream:
            stream.seek(line.start)
            document: dict[str, Any] = json.loads(stream.read(line.size))
        return document

    def files_of(self, trial_id: str, line: _Line) -> Path:
        """Return the folder with the files of an attempt."""
        last = max(each.attempt for each in self.lines[trial_id])
        name = trial_id if line.attempt == last else f"{trial_id}.attempt{line.attempt}"
        return self.folder / "trials" / name


def merge_folders(
    folders: Sequence[Path], out: Path, now: datetime, check: Callable[[Path], None]
) -> tuple[Merge, ...]:
    """Put the results in ``folders`` together in the new folder ``out``; lanes by their names.

    ``check`` is called with each lane when it is written, and raises if it must not be.

    Raises:
        ConfigurationError: they are not parts of one plan in one environment; with every problem,
            by folder.
        DisagreementError: a trial that two of them have is not equal in both.
        StorageError: a folder cannot be read, or ``out`` not be written.
    """
    names = [read_lanes(folder) for folder in folders]
    if len(set(names)) > 1:
        sentences = [
            f"{folder} holds " + (f"the lanes {', '.join(lanes)}" if lanes else "one result")
            for folder, lanes in zip(folders, names, strict=True)
        ]
        raise ConfigurationError([f"unequal plans: {'; '.join(sentences)}"])
    lanes = names[0] or ("",)
    gathered = [_gather([folder / lane for folder in folders]) for lane in lanes]
    with new_results(out.parent, out.name, now, out) as folder:
        merges = []
        for lane, sources in zip(lanes, gathered, strict=True):
            (folder / lane).mkdir(exist_ok=True)
            merges.append(_write(sources, folder / lane, lane, now))
            check(folder / lane)
        if names[0]:
            write_lanes(folder, names[0])
    return tuple(replace(each, folder=out / each.name) for each in merges)


def _gather(folders: Sequence[Path]) -> tuple[_Source, ...]:
    """Read what ``folders`` hold of one plan.

    Raises:
        ConfigurationError, DisagreementError, StorageError: as ``merge_folders``.
    """
    manifests = [load_manifest(folder) for folder in folders]
    first = manifests[0]
    problems = list(_refuse(first, folders[0]))
    for folder, manifest in zip(folders[1:], manifests[1:], strict=True):
        problems += [
            f"{folder}: unequal environment: {difference}, in {folders[0]}"
            for difference in differences(first.environment, manifest.environment)
        ]
        problems += [
            f"{folder}: unequal plan: {difference}, in {folders[0]}"
            for difference in _differing_plans(first.experiment, manifest.experiment)
        ]
    if problems:
        raise ConfigurationError(problems)
    planned = {trial.id for trial in planned_trials(first.experiment, None, once=first.once)}
    sources = []
    for number, (folder, manifest) in enumerate(zip(folders, manifests, strict=True)):
        source = _Source(folder, manifest, defaultdict(list))
        for line in read_lines(folder):
            trial_id, environment = line.plain["trial_id"], line.plain["environment"]
            if trial_id not in planned:
                problems.append(f"{folder}: the plan has no trial {trial_id}")
            if environment != first.environment.id:
                problems.append(
                    f"{folder}: trial {trial_id} ran in environment {environment}, and not in "
                    f"{first.environment.id}"
                )
            if any(each.attempt == line.plain["attempt"] for each in source.lines[trial_id]):
                problems.append(
                    f"{folder}: trial {trial_id} has two records of attempt {line.plain['attempt']}"
                )
            where = (number, line.start, line.size, line.plain["outcome"], line.plain["attempt"])
            source.lines[trial_id].append(_Line(*where))
        sources.append(source)
    if problems:
        raise ConfigurationError(_shorten(problems))
    disagreements = list(_disagreements(sources))
    if disagreements:
        raise DisagreementError("\n".join(_shorten(disagreements)))
    return tuple(sources)


def _refuse(manifest: Manifest, folder: Path) -> Iterator[str]:
    experiment = manifest.experiment
    if in_real_time(experiment.kernel):
        yield (
            f"{folder}: kernel {experiment.kernel} measures in real time: results of several "
            "machines, or days, are never pooled"
        )
    if experiment.until_ci_pct is not None:
        yield f"{folder} was planned with --until-ci: its repetitions follow from its own records"


def _differing_plans(ours: Experiment, theirs: Experiment) -> Iterator[str]:
    """Yield a phrase for each part of an experiment that decides its plan and differs."""
    for each in fields(Experiment):
        our, their = getattr(ours, each.name), getattr(theirs, each.name)
        if our == their:
            continue
        if each.name == "conditions":
            lacking, more = len(set(our) - set(their)), len(set(their) - set(our))
            yield f"{lacking} of its conditions are lacking, and {more} are others"
        else:
            yield f"{each.name} is {their!r}, and {our!r}"


def _disagreements(sources: Sequence[_Source]) -> Iterator[str]:
    """Count the trials that several have, and yield a sentence for each that is not equal."""
    holders: dict[str, list[_Source]] = defaultdict(list)
    for source in sources:
        for trial_id in source.lines:
            holders[trial_id].append(source)
    for trial_id, several in holders.items():
        if len(several) < 2:
            continue
        first: tuple[_Source, dict[str, Any]] | None = None
        for source in several:
            source.overlap += 1
            for line in source.lines[trial_id]:
                if line.outcome in REPEATABLE:
                    continue
                result = result_of(source.read(line))
                if first is None:
                    first = source, result
                elif difference := first_difference(first[1], result):
                    yield (
                        f"trial {trial_id} is not equal in {first[0].folder} and {source.folder}: "
                        f"{difference}; one of the two machines is not to be trusted: run it on a "
                        "third, and merge without the wrong one"
                    )


def _write(sources: Sequence[_Source], folder: Path, name: str, now: datetime) -> Merge:
    """Write what ``sources`` hold into ``folder``, in the order of the plan."""
    manifest = _manifest_of(sources, now)
    write_manifest(folder, manifest)
    missing: list[Trial] = []
    overlaps = 0
    costs = [read_costs(source.folder) for source in sources]
    with (
        storing(f"write {folder}"),
        (folder / RECORDS_FILE).open("wb") as records,
        (folder / COSTS_FILE).open("wb") as spent,
    ):
        for trial in planned_trials(manifest.experiment, None, once=manifest.once):
            holders = [source for source in sources if trial.id in source.lines]
            overlaps += len(holders) > 1
            chosen = _choose(holders, trial.id)
            for attempt, line in enumerate(chosen, 1):
                source = sources[line.source]
                document = source.read(line) | {"attempt": attempt}
                records.write(canonical(document).encode() + b"\n")
                cost = costs[line.source].get((trial.id, line.attempt))
                spent.write(write_cost_line(trial.id, attempt, cost))
                last = attempt == len(chosen)
                kept = trial.id if last else f"{trial.id}.attempt{attempt}"
                files = source.files_of(trial.id, line)
                if files.is_dir():
                    shutil.copytree(files, folder / "trials" / kept)
            if not chosen and not trial.warm_up:
                missing.append(trial)
        traces = next((p for s in sources if (p := s.folder / TRACES_FOLDER).is_dir()), None)
        if traces is not None:
            shutil.copytree(traces, folder / TRACES_FOLDER)
    return Merge(folder, name, overlaps, tuple(missing))


def _choose(holders: Sequence[_Source], trial_id: str) -> list[_Line]:
    """Return the attempts that count: what came to no measurement first, then one that did."""
    lines = [line for source in holders for line in source.lines[trial_id]]
    again = [line for line in lines if line.outcome in REPEATABLE]
    judged = [line for line in lines if line.outcome not in REPEATABLE]
    return [*again, *judged[:1]]


def _manifest_of(sources: Sequence[_Source], now: datetime) -> Manifest:
    manifests = [source.manifest for source in sources]
    first = manifests[0]
    facts: Mapping[str, str] = {
        name: value
        for name, value in first.environment.facts.items()
        if all(each.environment.facts.get(name) == value for each in manifests)
    }
    stored = [each.stored for each in manifests if each.stored is not None]
    return replace(
        first,
        environment=replace(first.environment, facts=dict(facts)),
        trials=tuple(trial.id for trial in planned_trials(first.experiment, None, once=first.once)),
        created_utc=now.astimezone(UTC).isoformat(timespec="seconds"),
        shard=None,
        keep_captures=min((m.keep_captures for m in manifests), key=KEPT_LEAST_FIRST.index),
        stored=Stored(sum(s.trials for s in stored), sum(s.again for s in stored))
        if stored
        else None,
        merged=tuple(
            Merged(shard=None if source.manifest.shard is None else str(source.manifest.shard),
                   records=sum(map(len, source.lines.values())), overlap=source.overlap,
                   facts=source.manifest.environment.facts)
            for source in sources
        ),
    )  # fmt: skip


def _shorten(problems: Sequence[str]) -> list[str]:
    more = len(problems) - _MOST_NAMED
    return [*problems[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
