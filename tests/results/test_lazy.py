"""Lazy records say what whole ones say, in a fraction of the memory; what is damaged is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bench.many_records import sweep, write_many
from testbed.base import places
from testbed.base.errors import ConfigurationError, StorageError
from testbed.model import PageLoad, Record
from testbed.results import lazy
from testbed.results.folder import open_folder
from testbed.results.lazy import LongList, read_lazy_records, whole
from testbed.results.records import RECORDS_FILE, parse_record, plain_record, read_records
from tests import memory

COMMITTED = sorted(path.parent for path in places.ROOT.glob("analysis/*/*/records.jsonl"))
NIGHTLY = places.ROOT / "analysis" / "baselines" / "nightly"


def read_lazy(folder: Path) -> tuple[Record, ...]:
    return read_lazy_records(folder, small=0)


def load_of(record: Record) -> PageLoad:
    load = record.measured_as(PageLoad)
    assert load is not None
    return load


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    shutil.copy(NIGHTLY / RECORDS_FILE, tmp_path)
    return tmp_path


@pytest.mark.parametrize("folder", COMMITTED, ids=lambda folder: folder.name)
def test_they_are_equal_to_whole_ones_and_become_them(folder: Path) -> None:
    records, there = read_lazy(folder), read_records(folder)
    assert records == there
    first = whole(records[-1])
    assert plain_record(first) == plain_record(there[-1])
    assert whole(there[-1]) == there[-1]


def test_a_small_folder_has_whole_records_at_once(nightly: Path) -> None:
    records = read_lazy_records(nightly)
    (nightly / RECORDS_FILE).unlink()
    assert all(isinstance(load_of(record).requests, tuple) for record in records)


def test_how_many_there_are_is_known_and_what_they_are_is_read(
    nightly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    def count(line: bytes) -> Record:
        read.append(line)
        return parse_record(line)

    monkeypatch.setattr(lazy, "parse_record", count)
    records = read_lazy(nightly)
    assert sum(len(load_of(record).requests) for record in records) > len(records)
    assert read == []
    first, second = (load_of(record).requests for record in records[:2])
    assert first != () and first[0] != second[0]
    assert len(read) == 2
    assert first[-1] == list(first)[-1] and len(read) == 2  # the last two are kept


def test_a_run_keeps_lazy_ones_and_finds_their_lists_wherever_their_lines_are(
    nightly: Path, tmp_path: Path
) -> None:
    there = read_records(nightly)
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    with open_folder(fresh) as folder:
        for record in there:
            kept = folder.append(record)
            assert isinstance(load_of(kept).requests, LongList)
            assert kept == record
        folder.put_in_order([record.trial_id for record in reversed(there)])
        assert folder.records == tuple(reversed(there))
    with open_folder(fresh) as folder:
        assert all(isinstance(load_of(kept).requests, LongList) for kept in folder.records)
        assert folder.records == read_records(fresh)


def test_a_file_that_was_changed_meanwhile_is_an_error(nightly: Path) -> None:
    records = read_lazy(nightly)
    path = nightly / RECORDS_FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(reversed(lines)))
    with pytest.raises(StorageError, match="was changed while it was read"):
        list(load_of(records[0]).requests)
    path.unlink()
    with pytest.raises(StorageError, match="cannot read"):
        list(load_of(records[1]).requests)


def rename(line: bytes) -> bytes:
    at = line.index(b'"trial_id":"') + 12
    return line[:at] + b"0" * 16 + line[at + 16 :]


def change(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Damage that puts ``new`` in place of the first ``old``."""
    return lambda line: line.replace(old, new, 1)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda line: line[:-40], ""),
        (rename, "it says trial_id 0000000000000000"),
        (change(b'"attempt":1', b'"attempt":"1"'), "attempt: Input should be a valid integer"),
        (change(b'"status":200', b'"status":"ok"'), "load.requests.0.status: "),
        (change(b'"schema":3', b'"schema":1'), "schema 1, but this testbed reads schema 3"),
        (change(b'"schema":3,', b""), "schema None"),
        (change(b'"start_ms":0.0', b'"start_ms":NaN, "x":0.0'), "NaN is no finite number"),
        (change(b'"executed":null', b'"executed":NaN'), "NaN is no finite number"),
        (change(b'"executed":null', b'"executed":null,"later":[-Infinity]'),
         "-Infinity is no finite number"),
        (change(b'"start_ms":0.0', b'"start_ms":1e999, "x":0.0'), "1e999 is no finite number"),
        (lambda line: b"[" + line + b"]", "not a record"),
        (change(b'"condition":{', b'"condition":{"kind":"guess",'), "unknown kind 'guess'"),
    ],
)  # fmt: skip
def test_a_damaged_line_is_named_as_ever(
    nightly: Path, damage: Callable[[bytes], bytes], complaint: str
) -> None:
    path = nightly / RECORDS_FILE
    first, second, *rest = path.read_bytes().splitlines()
    assert damage(second) != second
    path.write_bytes(b"\n".join([first, damage(second), *rest, b""]))
    said = []
    for read in (read_records, read_lazy):
        with pytest.raises(StorageError) as caught:
            read(nightly)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert said[0].startswith(f"{path}:2: ") and complaint in said[0]


def test_a_torn_end_is_left_out(nightly: Path) -> None:
    there = read_records(nightly)
    path = nightly / RECORDS_FILE
    path.write_bytes(path.read_bytes()[:-20])
    assert read_lazy(nightly) == there[:-1]
    with path.open("ab") as stream:
        stream.write(b"\n")
    assert read_lazy(nightly) == there[:-1]


def test_no_folder_is_an_error_and_no_records_are_none(tmp_path: Path) -> None:
    assert read_lazy(tmp_path) == ()
    with pytest.raises(ConfigurationError, match="no such folder"):
        read_lazy(tmp_path / "nowhere")


def test_twice_the_records_take_twice_a_little_memory(tmp_path: Path) -> None:
    kept, peaks = [], []
    for seeds in (10, 20):
        folder = write_many(tmp_path / str(seeds), sweep(10, seeds))
        assert len(read_lazy(folder)) == 10 * seeds  # what is made once is there
        now, peak = memory.trace(partial(read_lazy, folder))
        kept.append(now)
        peaks.append(peak)
    assert (kept[1] - kept[0]) / 100 < 6000, kept
    assert (peaks[1] - peaks[0]) / 100 < 6000, peaks
    lines = (tmp_path / "20" / RECORDS_FILE).stat().st_size
    assert lines / 200 > 13_000
