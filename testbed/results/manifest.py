"""Manifest of a results folder: the experiment, its environment and plan; written once, whole."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import TypeAdapter, ValidationError

from testbed.base.errors import StorageError
from testbed.experiment.ids import list_ids
from testbed.experiment.lanes import LANES_FILE, read_lanes, refuse_lanes
from testbed.experiment.plan import plan_trials
from testbed.experiment.shards import Shard
from testbed.kinds import KINDS
from testbed.model import SCHEMA_VERSION, Experiment, Trial, stored_kind
from testbed.model.knob import with_defaults
from testbed.results.environment import Environment
from testbed.results.records import check_schema, members, not_results, read_finite, retyped

MANIFEST_FILE = "manifest.json"
PARTIAL_FILE = f".{MANIFEST_FILE}.new"
_MAX_NAMED = 5


KeepCaptures = Literal["none", "fragile", "all"]
KEPT_LEAST_FIRST: tuple[KeepCaptures, ...] = get_args(KeepCaptures)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a run took from a store of results instead of measuring it."""

    trials: int
    """How many of its trials."""
    again: int
    """How many of them ran again all the same, with equal results to the bit."""


@dataclass(frozen=True, slots=True)
class Merged:
    """One of the folders that results were put together from."""

    shard: str | None
    """Which part of the plan it was for, such as `3/16`; null: for the whole."""
    records: int
    """How many records it had."""
    overlap: int
    """How many of its trials another folder had as well, with equal results to the bit."""
    facts: dict[str, str]
    """The machine and the work tree that it was made with."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Description of a results folder, written before its first record."""

    experiment: Experiment
    """What was asked."""
    environment: Environment
    """What the results were produced with; `id` is added: the first 16 hex digits of the digest
    of `parts` and `pages`."""
    trials: tuple[str, ...]
    """The ids of all planned trials, in order."""
    created_utc: str
    """When the folder was made (ISO 8601, UTC)."""
    arguments: tuple[str, ...] = ()
    """The command line; empty in baselines."""
    tcp_alone: tuple[str, ...] | None = None
    """Those of its clients whose requests follow from the network alone, so that a difference of
    their loads is TCP's; null in older results."""
    shard: Shard | None = None
    """Which part of the plan the folder is for; null: it is for the whole."""
    keep_captures: KeepCaptures = "all"
    """Of which trials the packet captures are kept: of `all`, of `fragile` ones (that did not end
    well, or waited for a timer), or of `none`. Their digests are in the records in any case."""
    once: tuple[str, ...] = ()
    """The clients whose conditions are loaded once where they draw nothing: further seeds would
    give copies."""
    stored: Stored | None = None
    """What of it was taken from a store of results; null: nothing."""
    merged: tuple[Merged, ...] = ()
    """The folders that it was put together from; empty where one run wrote it."""
    schema: int = SCHEMA_VERSION
    """The schema of the manifest and its records; others are refused."""


_KIND: Any = Literal[tuple(KINDS)]


@cache
def _type_of(kind: str) -> TypeAdapter[Any]:
    """Return the type of a manifest whose conditions are of ``kind``."""
    spec: Any = KINDS[kind].spec
    experiment = retyped(Experiment, conditions=tuple[spec, ...], kind=_KIND)
    return TypeAdapter(retyped(Manifest, experiment=experiment))


def make_manifest(
    experiment: Experiment, environment: Environment, now: datetime, arguments: tuple[str, ...],
    tcp_alone: tuple[str, ...] | None = None, shard: Shard | None = None,
    keep_captures: KeepCaptures = "all", once: tuple[str, ...] = (),
) -> Manifest:  # fmt: skip
    """Return the manifest of a new results folder, made at ``now``.

    Raises:
        ConfigurationError: as ``plan_trials``.
    """
    created = now.astimezone(UTC).isoformat(timespec="seconds")
    ids = tuple(list_ids(planned_trials(experiment, shard, once=once)))
    return Manifest(
        *(experiment, environment, ids, created, arguments, tcp_alone, shard, keep_captures, once)
    )


def planned_trials(
    experiment: Experiment, shard: Shard | None, repetitions: int | None = None,
    once: Collection[str] = (),
) -> tuple[Trial, ...]:  # fmt: skip
    """Return the trials of ``experiment``, or of its ``shard``, in order (see ``plan_trials``).

    Raises:
        ConfigurationError: as ``plan_trials``.
    """
    trials = plan_trials(experiment, repetitions, once)
    return trials if shard is None else shard.part_of(trials)


def plain_manifest(manifest: Manifest) -> dict[str, Any]:
    """Return what the file says of ``manifest``, as plain data."""
    document = asdict(manifest)
    document["environment"]["id"] = manifest.environment.id
    return document


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write it aside, flush it to disk and rename it: a manifest is there whole or not at all.

    Raises:
        StorageError: it could not be written.
    """
    text = json.dumps(plain_manifest(manifest), indent=2, ensure_ascii=False) + "\n"
    target, partial = directory / MANIFEST_FILE, directory / PARTIAL_FILE
    try:
        with partial.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StorageError(
            f"cannot write {target}: {error.strerror}; free space or pass -o DIR"
        ) from error


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of the results in ``directory`` as plain data of today's schema.

    Raises:
        ConfigurationError: it is no results folder, or holds the results of several kernels.
        StorageError: the manifest cannot be read, or has a schema that is not read.
    """
    refuse_lanes(directory)
    path = directory / MANIFEST_FILE
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text, parse_float=read_finite, parse_constant=read_finite)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise not_results(directory) from None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path} is not JSON: {error}") from None
    try:
        check_schema(document)
        return _fill(document)
    except ValueError as error:
        raise StorageError(f"{path}: {error}") from None


def load_manifest(directory: Path) -> Manifest:
    """Return the manifest of the results in ``directory`` as types, to go on with them.

    Raises:
        ConfigurationError, StorageError: as ``read_manifest``, or a value has the wrong type.
    """
    document = read_manifest(directory)
    environment = document.get("environment")
    if isinstance(environment, Mapping):
        document["environment"] = {k: v for k, v in environment.items() if k != "id"}
    path = directory / MANIFEST_FILE
    try:
        read = members(
            _type_of(_kind_in(document)).validate_json(json.dumps(document), strict=True)
        )
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
            for each in error.errors(include_url=False, include_input=False)[:_MAX_NAMED]
        ]
        raise _damaged(path, problems) from None
    conditions = zip(
        document["experiment"]["conditions"], read["experiment"].conditions, strict=True
    )
    unknown = {name for plain, spec in conditions for name in _list_unknown(plain, asdict(spec))}
    if unknown:
        raise _damaged(path, [f"there is no knob {name!a}" for name in sorted(unknown)])
    return Manifest(**read | {"experiment": Experiment(**members(read["experiment"]))})


def holds_results(directory: Path) -> bool:
    """Return whether ``directory`` is a results folder or one of lanes, of whatever schema.

    Other programs have a ``manifest.json`` as well, which says nothing of an experiment.
    """
    path = directory / MANIFEST_FILE
    try:
        document = json.loads(path.read_bytes()) if path.is_file() else None
        lanes = (directory / LANES_FILE).is_file() and read_lanes(directory)
    except (OSError, ValueError, RecursionError, StorageError):
        return False
    return bool(lanes) or (isinstance(document, dict) and {"schema", "experiment"} <= set(document))


def _damaged(path: Path, problems: Sequence[str]) -> StorageError:
    return StorageError(
        f"{path} does not hold a manifest: {'; '.join(problems[:_MAX_NAMED])}; it was changed or "
        "damaged, or is of a newer revision: get it again, or run the experiment again"
    )


def _kind_in(document: Mapping[str, Any]) -> str:
    """Return the kind of the first condition, which is that of all."""
    experiment = document.get("experiment")
    conditions = experiment.get("conditions") if isinstance(experiment, Mapping) else None
    first = conditions[0] if isinstance(conditions, list) and conditions else None
    return stored_kind(first if isinstance(first, Mapping) else {})


def _list_unknown(plain: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    """Yield the knobs in ``plain`` that the types do not have, with those that they are in."""
    for name, value in plain.items():
        if name not in known:
            yield name
        elif isinstance(value, Mapping) and isinstance(known[name], Mapping):
            yield from (f"{name}.{inner}" for inner in _list_unknown(value, known[name]))


def _fill(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest whose conditions name every knob.

    One that is younger than the revision which wrote the results has its default.

    Raises:
        ValueError: a condition is of a kind that is not known.
    """
    whole = dict(document)
    experiment = whole.get("experiment")
    if isinstance(experiment, Mapping) and isinstance(experiment.get("conditions"), list):
        conditions = [_fill_spec(each) for each in experiment["conditions"]]
        whole["experiment"] = dict(experiment) | {"conditions": conditions}
    return whole


def _fill_spec(spec: Any) -> Any:
    if not isinstance(spec, Mapping):
        return spec
    try:
        return with_defaults(KINDS[stored_kind(spec)].spec, spec)
    except (KeyError, TypeError):
        raise ValueError(f"experiment.conditions: unknown kind {spec.get('kind')!a}") from None
