"""Results folder: records appended and flushed one by one, never changed or overwritten.

``<UTC>-<experiment>/`` holds ``manifest.json``, ``records.jsonl``, ``costs.jsonl`` and
``trials/<trial_id>/``.  A run that ends puts its lines in the order of its plan.
A record counts when its line ends in a newline on disk; what a crash cut off is moved aside.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from pathlib import Path

from testbed.base.errors import ConfigurationError, StorageError, storing
from testbed.base.whole_folder import sync
from testbed.model import Record
from testbed.results.costs import COSTS_FILE, write_cost
from testbed.results.lazy import LazyReader
from testbed.results.manifest import PARTIAL_FILE, read_manifest
from testbed.results.records import RECORDS_FILE, read_records, scan_records, write_record

__all__ = ["ResultsFolder", "new_results", "open_folder", "read_manifest", "read_records"]

LATEST = "latest"
TRACES_FOLDER = "traces"
"""The user's own traces of a run, so that its results can be looked at and run again elsewhere."""
_SAME_SECOND = 1000


@contextmanager
def new_results(
    base: Path, name: str, now: datetime, explicit: Path | None = None
) -> Iterator[Path]:
    """Make a results folder for the block to begin: ``explicit``, or ``base/<UTC>-<name>``.

    After the block ``base/latest`` points at the new folder in ``base``.  A block that fails, or is
    interrupted, leaves no folder, so that the same command can be given again.

    Raises:
        ConfigurationError: ``explicit`` is not empty, or is no place for results.
        StorageError: the folder cannot be made, or ``latest`` cannot point at it.
    """
    if explicit is not None:
        refuse_latest(base, explicit)
    made = explicit is None or not os.path.lexists(explicit)
    folder = _make_explicit(explicit) if explicit else _make_stamped(base, name, now)
    with locked(folder):
        _require_empty(folder)
        # What a run that was killed wrote of its manifest is no result.
        (folder / PARTIAL_FILE).unlink(missing_ok=True)
        try:
            yield folder
            if explicit is None:
                _point_latest(base, folder)
        except BaseException:
            for path in folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
            if made:
                folder.rmdir()
            raise


def refuse_latest(base: Path, folder: Path) -> None:
    """Keep the name ``latest`` in ``base`` for the link to the newest results.

    Raises:
        ConfigurationError: ``folder`` would take it.
    """
    if folder.name == LATEST and folder.parent.resolve() == base.resolve():
        raise ConfigurationError(
            [f"{folder} is the link to the newest results, and no place for others; name another "
             "folder"]
        )  # fmt: skip


def refuse_explicit(base: Path, folder: Path) -> None:
    """Look whether new results can be in ``folder``, before anything is prepared for them.

    Raises:
        ConfigurationError: it is not empty, or is no place for results.
    """
    refuse_latest(base, folder)
    with suppress(OSError):  # which making the folder tells
        if folder.is_dir():
            _require_empty(folder)
        elif os.path.lexists(folder):
            raise ConfigurationError([f"{folder} is there and is no folder; name another"])


def _make_stamped(base: Path, name: str, now: datetime) -> Path:
    stamp = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{name}"
    remedy = "free space there or choose another place with -o DIR"
    with storing(f"make a results folder in {base}", remedy):
        base.mkdir(parents=True, exist_ok=True)
        for number in range(1, _SAME_SECOND):
            folder = base / (stamp if number == 1 else f"{stamp}-{number}")
            with suppress(FileExistsError):
                folder.mkdir()
                return folder
    raise StorageError(f"{base} holds {_SAME_SECOND} folders named {stamp}; choose one with -o DIR")


def _make_explicit(folder: Path) -> Path:
    with storing(f"make the results folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _require_empty(folder: Path) -> None:
    if any(path.name != PARTIAL_FILE for path in folder.iterdir()):
        raise ConfigurationError(
            [f"{folder} is not empty; results are never overwritten: choose another folder, "
             f"or go on with ./run.sh run --resume {shlex.quote(str(folder))}"]
        )  # fmt: skip


def _point_latest(base: Path, folder: Path) -> None:
    """Switch ``latest`` in one step, so that a reader never finds it missing.

    Raises:
        StorageError: it cannot be switched, as where a folder has that name.
    """
    fresh = base / f".{LATEST}-{secrets.token_hex(4)}"
    try:
        fresh.symlink_to(folder.name)
        fresh.replace(base / LATEST)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise StorageError(
            f"{base / LATEST} cannot point at new results: {error.strerror}; give what is there "
            "another name, or choose a place for the results with -o DIR"
        ) from None


class ResultsFolder:
    """The one writer of a results folder."""

    def __init__(self, directory: Path, records: Sequence[Record], reader: LazyReader) -> None:
        """Go on with the folder, whose ``records.jsonl`` has a line for each of ``records``."""
        self.directory = directory
        self._records, self._reader = list(records), reader
        self._attempts = Counter(record.trial_id for record in records)
        self._lines = _open_lines(directory / RECORDS_FILE)
        self._costs = _open_lines(directory / COSTS_FILE)

    @property
    def records(self) -> tuple[Record, ...]:
        """Every record in the folder, lazy, in the order of its lines."""
        return tuple(self._records)

    def append(self, record: Record) -> Record:
        """Write ``record`` as one line and return it when it is on disk, lazy.

        Raises:
            StorageError: it is not; the records before it are as they were.
        """
        before, line = os.fstat(self._lines).st_size, write_record(record)
        try:
            _write_all(self._costs, write_cost(record))
            _write_all(self._lines, line)
            os.fsync(self._lines)
        except OSError as error:
            self._withdraw(before)
            raise StorageError(
                f"cannot write record {record.trial_id} to {self.directory / RECORDS_FILE}: "
                f"{error.strerror}; the {len(self._records)} records before it are intact; "
                f"free space, then go on with --resume {self.directory}"
            ) from error
        self._records.append(self._reader.make_lazy(record, before, len(line) - 1))
        self._attempts[record.trial_id] += 1
        return self._records[-1]

    def attempts(self, trial_id: str) -> int:
        """Return how many records the trial has."""
        return self._attempts[trial_id]

    def done(self) -> frozenset[str]:
        """Return the trials that have an ``ok`` record."""
        return frozenset(record.trial_id for record in self._records if record.outcome == "ok")

    def put_in_order(self, trials: Sequence[str]) -> None:
        """Put the lines in the order of ``trials``, and those of one trial in that of its attempts.

        Others stay before them.  In which order trials end is no part of a result, and another one
        on each machine.

        Raises:
            StorageError: they cannot be written anew; then they are as they were.
        """
        place = {trial_id: number for number, trial_id in enumerate(trials)}
        keys = [(place.get(record.trial_id, -1), record.attempt * (record.trial_id in place))
                for record in self._records]  # fmt: skip
        order = sorted(range(len(keys)), key=keys.__getitem__)
        if order == list(range(len(order))):
            return
        path = self.directory / RECORDS_FILE
        partial = path.with_name(f".{RECORDS_FILE}.new")
        try:
            with path.open("rb") as old, partial.open("wb") as new:
                starts = [0, *accumulate(len(line) for line in old)]
                sizes = [after - start for start, after in pairwise(starts)]
                for number in order:
                    old.seek(starts[number])
                    new.write(old.read(sizes[number]))
                new.flush()
                os.fsync(new.fileno())
            partial.replace(path)
            sync(self.directory)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise StorageError(f"cannot write {path} anew: {error.strerror}") from error
        os.close(self._lines)
        self._lines, self._reader = _open_lines(path), LazyReader(path)
        places = accumulate((sizes[number] for number in order), initial=0)
        self._records = [
            self._reader.make_lazy(self._records[number], start, sizes[number] - 1)
            for number, start in zip(order, places, strict=False)
        ]

    def trial(self, trial_id: str) -> Path:
        """Return the folder with the files of a trial's last attempt."""
        return self.directory / "trials" / trial_id

    def fresh_trial(self, trial_id: str) -> Path:
        """Return an empty ``trials/<trial_id>/``; an earlier attempt's folder is kept beside it.

        What a killed run left behind without a record is removed: nothing refers to it.

        Raises:
            StorageError: the folder cannot be made.
        """
        folder = self.trial(trial_id)
        attempts = self.attempts(trial_id)
        kept = folder.with_name(f"{trial_id}.attempt{attempts}")
        with storing(f"make {folder}"):
            if folder.exists() and attempts and not kept.exists():
                folder.rename(kept)
            elif folder.exists():
                shutil.rmtree(folder)
            folder.mkdir(parents=True)
        return folder

    def discard_trial(self, trial_id: str) -> None:
        """Remove what an interrupted trial left in its folder."""
        shutil.rmtree(self.trial(trial_id), ignore_errors=True)

    def close(self) -> None:
        """Write no more."""
        os.close(self._lines)
        os.close(self._costs)

    def _withdraw(self, size: int) -> None:
        """Cut off what was written of a record; should even that fail, reading skips it."""
        try:
            os.ftruncate(self._lines, size)
            os.fsync(self._lines)
        except OSError:
            return


@contextmanager
def open_folder(directory: Path) -> Iterator[ResultsFolder]:
    """Hold ``directory`` as its only writer.

    Raises:
        StorageError: another run holds it, it cannot be written, or its records do not fit.
    """
    with locked(directory):
        path = directory / RECORDS_FILE
        records, reader = tuple[Record, ...](), LazyReader(path)
        if path.exists():
            scan = scan_records(path, reader.read)
            records = scan.records
            if scan.torn:
                _move_torn_aside(path, scan.intact_bytes, scan.torn)
        folder = ResultsFolder(directory, records, reader)
        try:
            sync(directory)
            yield folder
        finally:
            folder.close()


@contextmanager
def fresh_folder(directory: Path) -> Iterator[ResultsFolder]:
    """Make ``directory`` and hold it, for trials whose results somebody else keeps.

    Raises:
        StorageError: it cannot be made or written.
    """
    with open_folder(_make_explicit(directory)) as folder:
        yield folder


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock the directory itself (flock(2)): no lock file is left, and the lock ends with us.

    Raises:
        StorageError: a run writes there, or it cannot be locked.
    """
    with storing(f"open results folder {directory}"):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with storing(f"lock {directory}"):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                raise StorageError(
                    f"another run writes to {directory}; wait for it or choose another folder"
                ) from None
        yield
    finally:
        os.close(descriptor)


def _move_torn_aside(path: Path, intact_bytes: int, torn: bytes) -> None:
    aside = path.with_name(f"{path.name}.torn-{secrets.token_hex(4)}")
    with storing(f"repair {path}"):
        aside.write_bytes(torn)
        with path.open("r+b") as stream:
            stream.truncate(intact_bytes)
            os.fsync(stream.fileno())


def _open_lines(path: Path) -> int:
    """Open a file of lines to append to it.

    Raises:
        StorageError: it cannot be written.
    """
    with storing(f"write {path}"):
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
