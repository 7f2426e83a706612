"""Lines of ``records.jsonl``: typed, schema checked, and safe against a half-written end.

A line says nothing of the machine in virtual time: what a trial cost is kept beside it
(``testbed.results.costs``), so that equal trials have equal lines.  It has every kind's key for
what its trials measure, and null in all but the trial's own.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, make_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from testbed.base import log
from testbed.base.errors import ConfigurationError, StorageError, storing
from testbed.kinds import KINDS, find_kind
from testbed.model import DEFAULT_KIND, SCHEMA_VERSION, Record, Trial, canonical, stored_kind
from testbed.results.costs import read_costs

RECORDS_FILE = "records.jsonl"
_SCHEMA, _KIND = f'"schema":{SCHEMA_VERSION}'.encode(), b'"kind"'
"""What the lines of page loads have, and what they do not have."""
_NO_JSON = (b"NaN", b"Infinity")
"""What is no JSON, and would pass unseen in a part of a line that its kind does not read."""

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
    path = find_records(directory)
    if path is None:
        return ()
    costs = read_costs(directory)
    return tuple(
        replace(record, cost=record.cost or costs.get((record.trial_id, record.attempt)))
        for record in scan_records(path).records
    )


def find_records(directory: Path) -> Path | None:
    """Return the file of records of the results in ``directory``; ``None``: none has ended.

    Raises:
        ConfigurationError: there is no such folder.
    """
    if not directory.is_dir():
        raise not_results(directory)
    path = directory / RECORDS_FILE
    return path if path.exists() else None


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
    path = directory / RECORDS_FILE
    for line in scan_lines(path) if path.exists() else ():
        try:
            plain = json.loads(line.text)
            check_schema(plain)
        except ValueError as error:
            raise StorageError(f"{path}:{line.number}: {error}") from None
        yield PlainRecord(line.start, len(line.text) + 1, plain)


def not_results(directory: Path) -> ConfigurationError:
    """Return the error that ``directory``, which a user named, holds no results."""
    why = "it holds no manifest.json"
    if not directory.is_dir():
        why = "it is a file" if directory.exists() else "there is no such folder"
    return ConfigurationError([f"{directory} is not a results folder: {why}"])


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A whole line of a file of records: its number from 1, where it begins, and its text."""

    number: int
    start: int
    text: bytes


def scan_lines(path: Path) -> Iterator[RecordLine]:
    """Yield the lines of ``path``, without what a crash cut off at its end; that is reported.

    Raises:
        StorageError: it cannot be read.
    """
    start = 0
    with storing(f"read {path}"), path.open("rb") as stream:
        end = os.fstat(stream.fileno()).st_size
        for number, line in enumerate(stream, 1):
            # Blocks of zeros can end in what looks like a line after a power cut.
            last = start + len(line) >= end
            if last and not (line.endswith(b"\n") and _is_json(line)):
                _log.warning(
                    "%s:%d: the last record is half-written (%d bytes) and skipped; its trial "
                    "did not end",
                    *(path, number, len(line)),
                )
                return
            yield RecordLine(number, start, line[:-1])
            start += len(line)


def scan_records(path: Path, read: Callable[[RecordLine], Record] | None = None) -> Scan:
    """Read ``path``: its records, as ``read`` has them, and the torn end that a crash may leave.

    Raises:
        StorageError: as ``read_records``.
    """
    records, intact = [], 0
    for line in scan_lines(path):
        records.append(read(line) if read else parse_in(path, line))
        intact = line.start + len(line.text) + 1
    return Scan(tuple(records), intact, read_piece(path, intact))


def read_piece(path: Path, start: int, size: int = -1) -> bytes:
    """Return ``size`` bytes of ``path`` from ``start`` on, or all.

    Raises:
        StorageError: they cannot be read.
    """
    with storing(f"read {path}"), path.open("rb") as stream:
        stream.seek(start)
        return stream.read(size)


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
    record = parse_unnamed(line)
    check_name(record, record.trial.id)
    return record


def parse_unnamed(line: bytes) -> Record:
    """Return the record in one line of JSON, whose trial may have another id than it says.

    Raises:
        ValueError: as ``parse_record``.
    """
    # What is plainly a page load of today is not read twice.
    plain = _SCHEMA in line and _KIND not in line and not any(word in line for word in _NO_JSON)
    kind = DEFAULT_KIND if plain else _check_line(line)
    try:
        read = members(_line_type(kind).validate_json(line, strict=True))
    except ValidationError:
        _check_line(line)
        raise
    if read["schema"] != SCHEMA_VERSION:
        _check_line(line)
    trial = Trial(**members(read["trial"]))
    return Record(**read | {"trial": trial, "measured": read.pop(KINDS[kind].kept_as)})


def check_name(record: Record, name: str) -> None:
    """Check that ``record`` says ``name``, which is the id of its trial.

    Raises:
        ValueError: it does not.
    """
    if record.trial_id != name:
        raise ValueError(f"its trial is {name}, but it says trial_id {record.trial_id}")


def _check_line(line: bytes) -> str:
    """Return the kind of trial that a line is of, if it can be read at all.

    Raises:
        ValueError: it cannot.
    """
    document = json.loads(line, parse_float=read_finite, parse_constant=read_finite)
    if not isinstance(document, dict):
        raise ValueError("not a record")
    check_schema(document)
    return _kind_in(document)


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


def retyped(kept: type, renamed: Mapping[str, str] | None = None, **types: Any) -> type:
    """Return a dataclass like ``kept``, with other ``types`` of some fields, and other names.

    pydantic reads by it what the model leaves open where the kind of trial is known.
    """
    hints = get_type_hints(kept)
    names = renamed or {}
    return make_dataclass(kept.__name__, [
        (names.get(each.name, each.name), types.get(each.name, hints[each.name]),
         field(default=each.default, default_factory=each.default_factory))
        for each in fields(kept)
    ])  # fmt: skip


def members(value: Any) -> dict[str, Any]:
    """Return the values of a ``retyped`` dataclass's fields by name, as they are."""
    return dict(vars(value))


@cache
def _line_type(name: str) -> TypeAdapter[Any]:
    # What an older revision does not say has its default in the types.
    kind = KINDS[name]
    trial = retyped(Trial, condition=kind.spec)
    record = retyped(Record, {"measured": kind.kept_as}, trial=trial, measured=kind.measured | None)
    record.__pydantic_config__ = ConfigDict(allow_inf_nan=False)  # type: ignore[attr-defined]
    return TypeAdapter(record)


def parse_in(
    path: Path, line: RecordLine, parse: Callable[[bytes], Record] = parse_record
) -> Record:
    """Return the record in a line of ``path``, as ``parse`` does.

    Raises:
        StorageError: it is none that can be read; the message names its place.
    """
    try:
        return parse(line.text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise StorageError(f"{path}:{line.number}: {place}: {first['msg']}") from error
    except ValueError as error:
        raise StorageError(f"{path}:{line.number}: {error}") from error


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
