"""Seal of a results folder: who judged its records, and digests of what no record has one of.

``verification.json`` is written when trials were judged: by the run that performed them, or by
``verify``.  Its digests show an edit to anybody; its code of authentication (HMAC, RFC 2104), by a
key in this user's cache, shows that the records were judged here, and by nobody who could not have
written the results anew.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from testbed.base import log, places
from testbed.base.checksums import file_sha256
from testbed.base.errors import StorageError
from testbed.base.whole_file import write_whole
from testbed.model import SCHEMA_VERSION, Record, digest
from testbed.results.costs import COSTS_FILE
from testbed.results.folder import TRACES_FOLDER
from testbed.results.manifest import MANIFEST_FILE
from testbed.results.records import RECORDS_FILE

SEAL_FILE = "verification.json"
KEY_FILE = "verification.key"
TRIALS = "trials"
_SUMMED = (MANIFEST_FILE, RECORDS_FILE, COSTS_FILE)
_KEY_BYTES = 32
_log = log.logger(__name__)


@dataclass(frozen=True, slots=True)
class Seal:
    """What was judged in a results folder, and digests of its files."""

    records: int
    """How many records there were."""
    judged: int
    """How many of them were judged from what their trials left, by a run or by `verify`."""
    files: dict[str, str]
    """The SHA-256 of each file that no record has the digest of, by its path; of a trial's folder
    one for all such files of it."""
    sha256: str = ""
    """The SHA-256 of the rest but `mac`, as canonical JSON."""
    mac: str = ""
    """HMAC-SHA256 of `sha256` by the key of the user who judged; empty where there was none."""
    schema: int = SCHEMA_VERSION
    """The schema of the records."""

    def digest(self) -> str:
        """Return what ``sha256`` has to be."""
        return digest(asdict(self) | {"sha256": "", "mac": ""})


def write_seal(folder: Path, records: Iterable[Record], judged: int) -> None:
    """Seal the results in ``folder``, which has ``records``, of which so many were ``judged``.

    Raises:
        StorageError: a file cannot be read, or the seal not be written.
    """
    try:
        listed, files = list(name_folders(records)), dict(_sum_files(folder))
        for name, own in listed:
            files |= _sum_trial(folder, name, own)
    except OSError as error:
        raise StorageError(f"cannot read {error.filename}: {error.strerror}") from error
    seal, key = Seal(len(listed), judged, files), _read_key(make=True)
    summed = seal.digest()
    sealed = replace(seal, sha256=summed, mac=_authenticate(summed, key) if key else "")
    text = json.dumps(asdict(sealed), indent=1, sort_keys=True) + "\n"
    write_whole(folder / SEAL_FILE, text, f"./run.sh verify {folder} writes it later")


def read_seal(folder: Path) -> Seal | None:
    """Return the seal of the results in ``folder``, if there is one.

    Raises:
        StorageError: it cannot be read, or is none.
    """
    path = folder / SEAL_FILE
    try:
        return TypeAdapter(Seal).validate_json(path.read_bytes(), strict=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError:
        raise StorageError(
            f"{path} is no verification; remove it, and ./run.sh verify {folder} judges anew"
        ) from None


def is_judged_here(folder: Path) -> bool:
    """Return whether this user judged all records in ``folder``, which are as they were then."""
    try:
        seal, key = read_seal(folder), _read_key(make=False)
    except StorageError as error:
        _log.warning("%s", error)
        return False
    if seal is None or key is None or seal.judged < seal.records:
        return False
    if not hmac.compare_digest(_authenticate(seal.digest(), key), seal.mac):
        return False
    return not any(_broken(seal, dict(_sum_files(folder))))


def find_broken(folder: Path, seal: Seal | None, records: Iterable[Record]) -> Iterator[str]:
    """Yield a sentence for each file in ``folder`` that is not as it was when it was sealed."""
    files, named = dict(_sum_files(folder)), set()
    for name, own in name_folders(records):
        files |= _sum_trial(folder, name, own)
        named.add(name)
    if (folder / TRIALS).is_dir():
        there = {path.name for path in (folder / TRIALS).iterdir()}
        yield from (f"{TRIALS}/{name} is of no record" for name in sorted(there - named))
    if seal is None:
        return
    if seal.sha256 != seal.digest() or not len(named) == seal.records >= seal.judged:
        yield f"{SEAL_FILE} is not what was written, or is of other records"
    yield from _broken(seal, files)


def name_folders(records: Iterable[Record]) -> Iterator[tuple[str, Record]]:
    """Yield of each record the name of the folder with its trial's files; the last has the id."""
    listed = list(records)
    last = {record.trial_id: record.attempt for record in listed}
    for record in listed:
        earlier = record.attempt != last[record.trial_id]
        yield f"{record.trial_id}{f'.attempt{record.attempt}' if earlier else ''}", record


def _authenticate(summed: str, key: bytes) -> str:
    return hmac.new(key, summed.encode(), hashlib.sha256).hexdigest()


def _broken(seal: Seal, files: dict[str, str]) -> Iterator[str]:
    trials = any(name.startswith(f"{TRIALS}/") for name in files)
    for name in sorted(seal.files.keys() | files.keys()):
        if name.startswith(f"{TRIALS}/") and not trials:
            continue  # only the other files were asked for
        was, found = seal.files.get(name), files.get(name)
        where = f"a log in {name}" if name.startswith(f"{TRIALS}/") else name
        if was is None or found is None:
            yield f"{where} was {'not there' if was is None else 'there'} when it was verified"
        elif was != found:
            yield f"{where} was changed since it was verified"


def _sum_files(folder: Path) -> Iterator[tuple[str, str]]:
    own = sorted((folder / TRACES_FOLDER).iterdir()) if (folder / TRACES_FOLDER).is_dir() else []
    for path in (*(folder / name for name in _SUMMED), *own):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), file_sha256(path)


def _sum_trial(folder: Path, name: str, record: Record) -> dict[str, str]:
    """Return the digest of the files of a trial that its record has none of; none: no such file."""
    place = folder / TRIALS / name
    others = sorted(path for path in place.glob("*") if path.name not in record.artefacts)
    lines = [f"{file_sha256(path)}  {path.name}\n" for path in others if path.is_file()]
    summed = hashlib.sha256("".join(lines).encode()).hexdigest()
    return {f"{TRIALS}/{name}": summed} if lines else {}


def _read_key(*, make: bool) -> bytes | None:
    """Return this user's key; ``None``: there is none, or it cannot be kept."""
    path = places.cache() / KEY_FILE
    with suppress(OSError):
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                partial = path.with_name(f".{KEY_FILE}-{secrets.token_hex(4)}")
                opened = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(opened, "wb") as stream:
                    stream.write(secrets.token_bytes(_KEY_BYTES))
                try:
                    os.link(partial, path)
                finally:
                    partial.unlink()
        key = path.read_bytes()
        return key if len(key) == _KEY_BYTES else None
    return None
