"""Lazy records: those of a results folder with their longest lists left in its file.

A load of a page has a line of some 15 KB, most of which are its requests.  Who looks at 100,000
loads at once asks how many requests there were, and reads those of a few.  What many records have
alike is kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar, overload

from testbed.base.errors import StorageError
from testbed.experiment.ids import TrialIds
from testbed.model import PageLoad, Record, Spec
from testbed.results.costs import read_costs
from testbed.results.records import (
    RecordLine,
    check_name,
    find_records,
    parse_in,
    parse_record,
    parse_unnamed,
    read_piece,
    read_records,
    scan_lines,
)

SMALL_BYTES = 1 << 26
"""The records of some 5,000 loads, which take 100 MB."""
_T = TypeVar("_T")
_Find = Callable[[Record], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class _Place:
    """Place of a record's line in its file; ``read`` returns the whole record."""

    read: Callable[[_Place], Record]
    path: Path
    start: int
    size: int
    trial_id: str


class LongList(Sequence[_T]):
    """A list of a record that is in its file, and is read each time that its items are needed."""

    __slots__ = ("_find", "_length", "_place")

    def __init__(self, place: _Place, find: _Find, length: int) -> None:
        """Stand for what ``find`` finds in the record at ``place``, ``length`` items."""
        self._place, self._find, self._length = place, find, length

    def whole(self) -> tuple[_T, ...]:
        """Return all items.

        Raises:
            StorageError: the file cannot be read, or was changed.
        """
        items = self._find(self._place.read(self._place))
        if len(items) != self._length:
            raise _changed(self._place)
        return tuple(items)

    def __len__(self) -> int:
        """Return how many items it has, without reading them."""
        return self._length

    def __iter__(self) -> Iterator[_T]:
        """Read the items."""
        return iter(self.whole())

    @overload
    def __getitem__(self, at: int) -> _T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[_T]: ...
    def __getitem__(self, at: int | slice) -> _T | Sequence[_T]:
        """Read the items and return one or some."""
        return self.whole()[at]

    def __eq__(self, other: object) -> bool:
        """Return whether the items are equal; those of another length need not be read."""
        if not isinstance(other, LongList | tuple):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


class LazyReader:
    """Reader of one file of records, which knows what came before."""

    def __init__(self, path: Path) -> None:
        """Read from ``path``."""
        self._path = path
        self._ids = TrialIds()
        self._conditions: dict[Spec, Spec] = {}
        self._tables: dict[int, dict[str, Any]] = {}
        # Copies are held against the first of them.
        self._whole = lru_cache(maxsize=2)(_read_whole)

    def read(self, line: RecordLine) -> Record:
        """Return the record in a line, with what it has in common with others and its long lists.

        Raises:
            StorageError: it is none that can be read; the message names its place.
        """
        record = self._share(parse_in(self._path, line, self._parse))
        return self.make_lazy(record, line.start, len(line.text))

    def make_lazy(self, record: Record, start: int, size: int) -> Record:
        """Return ``record``, whose line begins at ``start``, with its long lists left there."""
        place = _Place(self._whole, self._path, start, size, record.trial_id)
        load, proof = record.measured_as(PageLoad), record.proof
        if load is not None:
            requests: Any = LongList(place, _requests, len(load.requests))
            load = replace(load, requests=requests)
        if proof is not None:
            queues = {}
            for way, queue in proof.queueing.items():
                peaks_us: Any = LongList(place, _peaks_of(way), len(queue.peaks_us))
                queues[way] = replace(queue, peaks_us=peaks_us)
            proof = replace(proof, queueing=queues)
        return replace(record, measured=load or record.measured, proof=proof)

    def _parse(self, text: bytes) -> Record:
        """Return the record in a line; equal conditions are one, if they make up the same id."""
        record = parse_unnamed(text)
        condition = record.trial.condition
        shared = replace(
            record.trial, condition=self._conditions.setdefault(condition, condition)
        )  # fmt: skip
        if self._ids.of(shared) != record.trial_id:
            check_name(record, record.trial.id)
            return record
        _put(record, "trial", shared)
        return record

    def _share(self, record: Record) -> Record:
        """Return ``record`` with the tables that another one has as well."""
        if record.lab is not None:
            _put(record.lab, "knobs", self._once(record.lab.knobs))
        if record.replay is not None:
            _put(record.replay, "protocols", self._once(record.replay.protocols))
        if record.proof is not None:
            for name in ("client_counters", "server_counters"):
                _put(record.proof, name, self._once(getattr(record.proof, name)))
        return record

    def _once(self, table: dict[str, Any]) -> dict[str, Any]:
        """Return the first table that is equal; one of an unlikely equal hash is replaced."""
        key = hash(tuple(table.items()))
        known = self._tables.get(key)
        if known != table:
            known = self._tables[key] = table
        return known


def read_lazy_records(directory: Path, small: int = SMALL_BYTES) -> tuple[Record, ...]:
    """Return the records of the results in ``directory``, as ``read_records``, but lazy.

    Those of a file of up to ``small`` bytes are whole: they stay as they are whatever becomes of
    their file.

    Raises:
        ConfigurationError, StorageError: as ``read_records``.
    """
    path = find_records(directory)
    if path is None or path.stat().st_size <= small:
        return read_records(directory)
    costs, reader, records = read_costs(directory), LazyReader(path), []
    for line in scan_lines(path):
        record = reader.read(line)
        if record.cost is None:
            _put(record, "cost", costs.get((record.trial_id, record.attempt)))
        records.append(record)
    return tuple(records)


def whole(record: Record) -> Record:
    """Return ``record`` with its long lists in memory.

    Raises:
        StorageError: its file cannot be read, or was changed.
    """
    load, proof = record.measured_as(PageLoad), record.proof
    if load is not None:
        load = replace(load, requests=tuple(load.requests))
    if proof is not None:
        queues = {
            way: replace(queue, peaks_us=tuple(queue.peaks_us))
            for way, queue in proof.queueing.items()
        }
        proof = replace(proof, queueing=queues)
    return replace(record, measured=load or record.measured, proof=proof)


def _read_whole(place: _Place) -> Record:
    text = read_piece(place.path, place.start, place.size)
    try:
        record = parse_record(text)
    except ValueError:
        raise _changed(place) from None
    if record.trial_id != place.trial_id:
        raise _changed(place)
    return record


def _changed(place: _Place) -> StorageError:
    return StorageError(
        f"{place.path} was changed while it was read, by a run or by hand; give the command again"
    )


def _requests(record: Record) -> Sequence[Any]:
    load = record.measured_as(PageLoad)
    return load.requests if load is not None else ()


@cache
def _peaks_of(way: str) -> _Find:
    def find(record: Record) -> Sequence[Any]:
        queues = record.proof.queueing if record.proof is not None else {}
        return queues[way].peaks_us if way in queues else ()

    return find


def _put(part: object, name: str, value: object) -> None:
    """Set a field of a part of a record that was just read, and that nobody else has."""
    object.__setattr__(part, name, value)
