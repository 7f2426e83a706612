"""Store of results: what a trial came to, by its id and its environment, for every later run.

Two runs of a trial in one environment are equal to the bit, in virtual time: so one that was
measured need not be measured again, by anybody who reaches the store.  It is a folder of this
machine or of another, or a bucket, which fsspec opens.  An entry (``testbed.results.entry``) comes
into it whole, and proves itself when it is read; many may write at once, for who writes the same
entry writes the same bytes.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from testbed.base import log
from testbed.base.errors import ConfigurationError, MissingError, StorageError
from testbed.model import Record
from testbed.results.entry import DamagedEntryError, TrialEntry, pack_entry, unpack_entry

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

INSTALL = "make many-machines installs what stores on other machines need"
VARIABLE = "FIRSTFLIGHT_STORE"
"""Names the store: a folder, s3://BUCKET/FOLDER or ssh://HOST/FOLDER; none without a value."""
NO_STORE = "none"
FOLDER = "store"
"""The store's folder in the cache, where the variable is not set."""
_END = ".trial"
_KEY = re.compile(rf"([0-9a-f]{{16}})/([0-9a-f]{{16}}){re.escape(_END)}")
_RENAMED = {"file", "local", "sftp", "ssh"}
"""Where a file can be half there: it is written aside and renamed.  An object of a bucket is there
whole or not at all."""
_HIDDEN = ".writing-"
_T = TypeVar("_T")
_log = log.logger(__name__)


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry that a store lists: where it is, how large and how old."""

    environment: str
    trial_id: str
    path: str
    size: int
    written: datetime | None


class TrialStore:
    """One store, and the folder in it that all its entries are in.

    One that nobody ``asked`` for is a convenience: where it cannot be written, a run says so and
    does without.
    """

    def __init__(
        self, address: str, files: AbstractFileSystem, root: str, *, asked: bool = True
    ) -> None:
        self._asked, self._given_up = asked, False
        self.address, self._files, self._root = address, files, root.rstrip("/")
        protocols = {files.protocol} if isinstance(files.protocol, str) else {*files.protocol}
        self._renames = bool(protocols & _RENAMED)

    def list_trials(self, environment: str) -> frozenset[str]:
        """Return the ids of the trials that it has entries of in ``environment``.

        Raises:
            StorageError: it cannot be read.
        """
        return frozenset(kept.trial_id for kept in self.list_kept(environment))

    def list_kept(self, environment: str = "") -> Iterator[StoredEntry]:
        """Yield every entry, or those in one environment.

        Raises:
            StorageError: it cannot be read.
        """
        place = f"{self._root}/{environment}".rstrip("/")
        found = self._try("list", lambda: self._files.find(place, detail=True))
        for path, info in sorted(found.items()):
            key = _KEY.fullmatch(path[len(self._root) :].lstrip("/"))
            if key:
                yield StoredEntry(key[1], key[2], path, int(info["size"]), _read_time(info))

    def read(self, trial_id: str, environment: str) -> TrialEntry | None:
        """Return the entry of a trial; ``None``: there is none that is whole, and its own.

        Raises:
            StorageError: it cannot be read.
        """
        path = self._path(trial_id, environment)
        try:
            data = self._try("read", lambda: self._files.cat_file(path))
        except FileNotFoundError:
            return None
        try:
            entry = unpack_entry(data, trial_id, environment)
            if entry.record.outcome != "ok":
                raise DamagedEntryError(f"its trial ended {entry.record.outcome}")
        except DamagedEntryError as error:
            _log.warning("left out: %s in the store: %s", path, error)
            return None
        return entry

    def write(self, record: Record, folder: Path) -> None:
        """Keep ``record``, which is ``ok``, and the files of its trial in ``folder``.

        Raises:
            StorageError: it cannot be written.
        """
        if self._given_up:
            return
        path = self._path(record.trial_id, record.environment)
        data = pack_entry(record, folder)
        try:
            self._try("write", lambda: self._put(path, data))
        except StorageError as error:
            if self._asked:
                raise
            self._given_up = True
            _log.warning("results are not kept for later runs: %s", error)

    def remove(self, kept: StoredEntry) -> None:
        """Remove an entry; another may have done so.

        Raises:
            StorageError: it cannot be removed.
        """
        with suppress(FileNotFoundError):
            self._try("remove", lambda: self._files.rm_file(kept.path))

    def _path(self, trial_id: str, environment: str) -> str:
        return f"{self._root}/{environment}/{trial_id}{_END}"

    def _put(self, path: str, data: bytes) -> None:
        if not self._renames:
            self._files.pipe_file(path, data)
            return
        parent, _, name = path.rpartition("/")
        self._make_folder(parent)
        partial = f"{parent}/{_HIDDEN}{name}-{secrets.token_hex(4)}"
        try:
            self._files.pipe_file(partial, data)
            self._files.mv(partial, path)
        except BaseException:
            with suppress(Exception):
                self._files.rm_file(partial)
            raise

    def _make_folder(self, folder: str) -> None:
        """Make a folder and those above it, each of which another may make at the same moment.

        SFTP then says no more than that it failed (draft-ietf-secsh-filexfer-02), so look again:
        at most once for each of them.
        """
        for above in range(folder.count("/"), -1, -1):
            try:
                self._files.makedirs(folder, exist_ok=True)
            except OSError:
                if not above:
                    raise
            else:
                return

    def _try(self, what: str, act: Callable[[], _T]) -> _T:
        """Do something with the files; whatever a file system's library raises is told alike."""
        try:
            return act()
        except FileNotFoundError:
            raise
        except Exception as error:  # each of fsspec's has its own
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise StorageError(
                f"cannot {what} the store {self.address}: {why}; set {VARIABLE} to another one, "
                "or run with --no-store"
            ) from error


def open_store(cache: Path) -> TrialStore | None:
    """Open the store that the environment names, or the one in ``cache``; ``None``: there is none.

    Raises:
        ConfigurationError: the variable does not name a store.
        MissingError: a package that opens it is not installed.
        StorageError: it cannot be reached.
    """
    address = os.environ.get(VARIABLE)
    if address in ("", NO_STORE):
        return None
    if address is None:
        return open_address(str(cache / FOLDER), asked=False)
    return open_address(address)


def open_address(address: str, *, asked: bool = True) -> TrialStore:
    """Open the store at ``address``: a folder, or a place that fsspec has a name for.

    Raises:
        ConfigurationError, MissingError, StorageError: as ``open_store``.
    """
    import fsspec  # a tenth of a second, for those who need it

    scheme = address.partition("://")[0] if "://" in address else "file"
    if scheme not in fsspec.available_protocols():
        raise ConfigurationError(
            [f"{VARIABLE}={address}: {scheme}:// is no place for a store; name a folder, "
             "s3://BUCKET/FOLDER or ssh://HOST/FOLDER"]
        )  # fmt: skip
    path = Path(address.removeprefix("file://"))
    try:
        files, root = fsspec.url_to_fs(
            address if scheme != "file" else str(path.expanduser().absolute())
        )
    except ImportError as error:
        raise MissingError(f"{VARIABLE}={address}: {error}; {INSTALL}") from error
    except Exception as error:
        raise StorageError(f"cannot reach the store {address}: {error}") from error
    return TrialStore(address, files, root, asked=asked)


def _read_time(info: dict[str, Any]) -> datetime | None:
    """Return when a file was written; each file system says so in its own words."""
    found = info.get("mtime", info.get("LastModified"))
    if isinstance(found, datetime):
        return found.astimezone(UTC)
    return datetime.fromtimestamp(float(found), UTC) if isinstance(found, int | float) else None
