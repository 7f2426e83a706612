"""Results of a folder: one counted record per trial, and one identity for all of them."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analysis.records.kind import records_of
from testbed.base.errors import ConfigurationError
from testbed.model import Outcome, Record
from testbed.results.lazy import read_lazy_records
from testbed.results.manifest import load_manifest, read_manifest
from testbed.results.seal import is_judged_here

MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Identity:
    """What must be equal before two numbers may be pooled."""

    environment: str | None
    """The environment id."""
    kernel: str | None
    """The name of the kernel: `virtual` or `host`."""
    kernel_version: str | None
    """The version of that kernel."""
    clients: dict[str, str]
    """The version of each client, by its name."""


@dataclass(frozen=True, slots=True)
class Results:
    """A results folder in memory: the counted records in a fixed order, and its manifest.

    ``warm_ups`` is how many trials were left out because they only warmed the machine up,
    ``judged_here`` whether this user judged all records from what their trials left.
    """

    folder: Path
    records: tuple[Record, ...]
    manifest: dict[str, Any]
    identity: Identity
    warm_ups: int = 0
    judged_here: bool = False


def read_results(folder: Path) -> Results:
    """Read ``folder``, settle attempts and check that its records may be pooled.

    Raises:
        ConfigurationError: the records come from different environments, kernels or clients.
        StorageError: the folder cannot be read, or its manifest is damaged.
    """
    load_manifest(folder)  # its types; what is shown of it are the plain data
    read = gather_results(folder, read_lazy_records(folder), dict(read_manifest(folder)))
    return replace(read, judged_here=is_judged_here(folder))


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause the search for cycles: records have none, and it looks at a million of their parts."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def gather_results(folder: Path, records: Iterable[Record], manifest: dict[str, Any]) -> Results:
    """Settle attempts, leave warm-ups out, and check that the rest may be pooled.

    Raises:
        ConfigurationError: as ``read_results``.
    """
    settled = settle_attempts(records)
    counted = tuple(record for record in settled if not record.trial.warm_up)
    identity = check_identity(counted)
    return Results(folder, counted, manifest, identity, len(settled) - len(counted))


def settle_attempts(records: Iterable[Record]) -> tuple[Record, ...]:
    """Choose for each trial the last ``ok`` attempt, else the last; ordered by trial id.

    Raises:
        ConfigurationError: two records are of one attempt: no run writes that.
    """
    chosen: dict[str, Record] = {}
    seen: Counter[tuple[str, int]] = Counter()
    for record in records:
        seen[record.trial_id, record.attempt] += 1
        best = chosen.get(record.trial_id)
        if best is None or _supersedes(record, best):
            chosen[record.trial_id] = record
    twice = [f"trial {name} has {count} records of attempt {attempt}, and no run writes two"
             for (name, attempt), count in seen.items() if count > 1]  # fmt: skip
    if twice:
        raise ConfigurationError(twice[:MOST_NAMED])
    return tuple(chosen[trial_id] for trial_id in sorted(chosen))


def check_identity(records: Iterable[Record]) -> Identity:
    """Return what all records share: kernel, environment id, and each client's version.

    Kernels must agree among all records; environment and client version among those with a
    number, because a failed attempt on another machine disturbs nothing.

    Raises:
        ConfigurationError: one sentence for each thing that differs, with the values.
    """
    everything = tuple(records)
    measured = [r for r in everything if r.outcome == "ok"] or list(everything)
    versions: dict[str, Counter[str]] = {}
    for record in measured:
        client = records_of(record.trial.kind).client(record)
        if client is not None:
            name, version = client
            versions.setdefault(name, Counter())[version] += 1
    facts = {
        "kernel": Counter(r.trial.kernel for r in everything),
        "kernel version": Counter(r.trial.kernel_version for r in everything),
        "environment id": Counter(r.environment for r in measured),
        **{f"version of client {name}": counts for name, counts in sorted(versions.items())},
    }
    problems = [_refusal(what, counts) for what, counts in facts.items() if len(counts) > 1]
    if problems:
        raise ConfigurationError(problems)
    return Identity(
        environment=next(iter(facts["environment id"]), None),
        kernel=next(iter(facts["kernel"]), None),
        kernel_version=next(iter(facts["kernel version"]), None),
        clients={name: next(iter(counts)) for name, counts in sorted(versions.items())},
    )


def judge(record: Record) -> tuple[Outcome, str | None]:
    """Return the outcome that counts and its reason: ``ok`` needs a number and its proof.

    A record that calls itself ``ok`` without proof, with an unsettled lab or without what trials of
    its kind measure (of page loads: a finite page load time, its replay coverage, no misses that
    were not allowed) is judged ``unproven``, ``lab_mismatch`` or ``failed`` instead.
    """
    if record.outcome != "ok":
        return record.outcome, record.reason
    if record.lab is not None and record.lab.problems:
        return "lab_mismatch", "; ".join(record.lab.problems)
    lack = _lack(record)
    if lack is not None:
        return "failed", f"the record is ok but {lack}"
    if record.proof is None:
        return "unproven", "the record is ok but holds no wire proof"
    if not record.proof.proven:
        return "unproven", "; ".join(record.proof.problems)
    return "ok", None


def _lack(record: Record) -> str | None:
    """Return what trials of its kind measure and ``record`` does not hold, in words."""
    kind = records_of(record.trial.kind)
    return f"holds no {kind.holds}" if record.measured is None else kind.lack(record)


def _supersedes(record: Record, best: Record) -> bool:
    ours, theirs = ((r.outcome == "ok", r.attempt) for r in (record, best))
    return ours > theirs


def _refusal(what: str, counts: Counter[str]) -> str:
    mixed = ", ".join(f"{value!r} ({counts[value]} of the trials)" for value in sorted(counts))
    return (
        f"the results mix more than one {what}: {mixed}; they are never pooled: "
        "run each into a results folder of its own and put them side by side with "
        "./run.sh compare"
    )
