"""Lines of ``records.jsonl``: typed, schema checked, and safe against a half-written end.

A line says nothing of the machine in virtual time: what a trial cost is kept beside it
(``testbed.results.costs``), so that equal trials have equal lines.  It has every kind's key for
what its trials measure, and null in all but the trial's own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from testbed.base import log
from testbed.base.errors import ConfigurationError, StorageError
from testbed.kinds import KINDS, find_kind
from testbed.model import SCHEMA_VERSION, Record, Trial, canonical, stored_kind
from testbed.results.costs import read_costs
from testbed.results.typed import members, retyped

RECORDS_FILE = "records.jsonl"

_log = log.logger(__name__)


@dataclass(frozen=True, slots=True)
class Scan:
    """The records of a file, how many bytes they take, and what was cut off behind them."""

    records: tuple[Record, ...]
    intact_bytes: int
    torn: bytes


def read_records(directory: Path) -> tuple[Record, ...]:
    """Return the records of the results in ``directory``, in the order of its lines.

    A half-written last line is reported and left out; a folder whose first trial has not ended
    has no records.

    Raises:
        ConfigurationError: there is no such folder.
        StorageError: the file cannot be read, or a line is no record of a schema that is read.
    """
    if not directory.is_dir():
        raise not_results(directory)
    path = directory / RECORDS_FILE
    if not path.exists():
        return ()
    costs = read_costs(directory)
    return tuple(
        replace(record, cost=record.cost or costs.get((record.trial_id, record.attempt)))
        for record in scan_records(path).records
    )


@dataclass(frozen=True, slots=True)
class PlainRecord:
    """A record as plain data, and where its line is in the file."""

    start: int
    size: int
    plain: dict[str, Any]


def read_lines(directory: Path) -> Iterator[PlainRecord]:
    """Yield the records in ``directory`` one by one, without checking the types of their values.

    Each is of today's schema; a half-written last one is left out, as by ``read_records``.

    Raises:
        StorageError: the file cannot be read, or a line is no record of a schema that is read.
    """
    path, start = directory / RECORDS_FILE, 0
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    _log.warning("%s:%d: the last record is half-written", path, number)
                    return
                try:
                    plain = json.loads(line)
                    check_schema(plain)
                except ValueError as error:
                    raise StorageError(f"{path}:{number}: {error}") from None
                yield PlainRecord(start, len(line), plain)
                start += len(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def not_results(directory: Path) -> ConfigurationError:
    """Return the error that ``directory``, which a user named, holds no results."""
    why = "it holds no manifest.json"
    if not directory.is_dir():
        why = "it is a file" if directory.exists() else "there is no such folder"
    return ConfigurationError([f"{directory} is not a results folder: {why}"])


def scan_records(path: Path) -> Scan:
    """Read ``path``: its records, and the torn end that a crash may leave.

    Raises:
        StorageError: as ``read_records``.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    *lines, torn = data.split(b"\n")
    if lines and not torn and not _is_json(lines[-1]):
        # Blocks of zeros can end in what looks like a line after a power cut.
        torn = lines.pop() + b"\n"
    if torn:
        _log.warning(
            "%s:%d: the last record is half-written (%d bytes) and skipped; its trial did not end",
            path,
            len(lines) + 1,
            len(torn),
        )
    records = tuple(_parse(line, path, number) for number, line in enumerate(lines, 1))
    return Scan(records, len(data) - len(torn), torn)


def check_schema(document: object) -> None:
    """Check that ``document``, a record or a manifest as plain data, is of today's schema.

    Raises:
        ValueError: it is not; the message names both and the remedy.
    """
    schema = document.get("schema") if isinstance(document, Mapping) else None
    if schema != SCHEMA_VERSION:
        raise ValueError(
            f"schema {schema}, but this testbed reads schema {SCHEMA_VERSION}; use the revision of "
            "the testbed that wrote it (git_revision in manifest.json), or run the experiment again"
        )


def read_finite(text: str) -> float:
    """Return the number in ``text``.

    Raises:
        ValueError: it is none, or has no end: NaN and Infinity are not JSON (RFC 8259, section 6).
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def plain_record(record: Record) -> dict[str, Any]:
    """Return what a line says of ``record``, as plain data."""
    plain = asdict(record)
    measured = plain.pop("measured")
    nothing = {kind.kept_as: None for kind in KINDS.values()}
    return plain | nothing | {KINDS[record.trial.kind].kept_as: measured}


def write_record(record: Record) -> bytes:
    """Return the line of ``record``, which does not say what the trial cost."""
    return canonical(plain_record(record) | {"cost": None}).encode() + b"\n"


def as_read(record: Record) -> Record:
    """Return ``record`` as it comes back from its line, which is then the same wherever it is kept.

    A whole number where its type has a fraction is written in another way than it is read.
    """
    return replace(parse_record(write_record(record)), cost=record.cost)


def parse_record(line: bytes) -> Record:
    """Return the record in one line of JSON.

    Raises:
        ValueError: it is none that can be read; the message names the schema or the field.
    """
    document = json.loads(line, parse_float=read_finite, parse_constant=read_finite)
    if not isinstance(document, dict):
        raise ValueError("not a record")
    check_schema(document)
    # What an older revision does not say has its default in the types.
    kind = _kind_in(document)
    plain = members(_line_type(kind).validate_json(line, strict=True))
    trial = Trial(**members(plain["trial"]))
    record = Record(**plain | {"trial": trial, "measured": plain.pop(KINDS[kind].kept_as)})
    if record.trial_id != record.trial.id:
        raise ValueError(f"its trial is {record.trial.id}, but it says trial_id {record.trial_id}")
    return record


def _kind_in(document: Mapping[str, Any]) -> str:
    """Return the kind of trial that a line is of.

    Raises:
        ValueError: there is no such kind.
    """
    trial = document.get("trial")
    condition = trial.get("condition") if isinstance(trial, Mapping) else None
    name = stored_kind(condition if isinstance(condition, Mapping) else {})
    if find_kind(name) is None:
        raise ValueError(f"trial.condition: unknown kind {name!a}")
    return name


@cache
def _line_type(name: str) -> TypeAdapter[Any]:
    kind = KINDS[name]
    trial = retyped(Trial, condition=kind.spec)
    return TypeAdapter(
        retyped(Record, {"measured": kind.kept_as}, trial=trial, measured=kind.measured | None)
    )


def _parse(line: bytes, path: Path, number: int) -> Record:
    try:
        return parse_record(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise StorageError(f"{path}:{number}: {place}: {first['msg']}") from error
    except ValueError as error:
        raise StorageError(f"{path}:{number}: {error}") from error


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
