"""Entry of a trial: its record and files as one sequence of bytes, which proves itself.

This is what a store of results keeps.  A first line of JSON names the
trial, its environment and the SHA-256 of what follows: a tar archive, compressed with Zstandard
(RFC 8878), of ``record.json`` and the files of the trial's folder.  Equal trials have equal
entries.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zstandard

from testbed.base.errors import storing
from testbed.model import Record, canonical
from testbed.results.records import parse_record, write_record

FORMAT = 1
MOST_BYTES = 1 << 30
"""Of an entry's content, when it is read: ten times what any trial of ours leaves."""
_RECORD = "record.json"
_LEVEL = 3
_MAX_HEADER = 4096


class DamagedEntryError(ValueError):
    """Bytes are no entry of the trial that they are said to be of; the message says why."""


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """A record and the files of its trial, by name."""

    record: Record
    files: Mapping[str, bytes]
    digest: str
    """The SHA-256 of the record as a line, which two machines have alike."""

    def write_files(self, folder: Path) -> None:
        """Write its files into ``folder``.

        Raises:
            StorageError: they cannot be written.
        """
        with storing(f"write {folder}", "free space, then go on with --resume"):
            for name, content in self.files.items():
                (folder / name).write_bytes(content)


def pack_entry(record: Record, folder: Path) -> bytes:
    """Return the entry of ``record``, whose files are in ``folder``, as bytes.

    Raises:
        StorageError: a file cannot be read.
    """
    archive = io.BytesIO()
    with (
        storing(f"read {folder}"),
        tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        _add(tar, _RECORD, write_record(replace(record, attempt=1)))  # as the first
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            _add(tar, path.name, path.read_bytes())
    content = zstandard.ZstdCompressor(level=_LEVEL).compress(archive.getvalue())
    header: dict[str, Any] = {"format": FORMAT, "trial_id": record.trial_id,
                              "environment": record.environment,
                              "sha256": hashlib.sha256(content).hexdigest()}  # fmt: skip
    return canonical(header).encode() + b"\n" + content


def unpack_entry(data: bytes, trial_id: str, environment: str) -> TrialEntry:
    """Return the entry in ``data``, which is said to be of a trial in an environment.

    Raises:
        DamagedEntryError: it is not, or is not whole.
    """
    header = _read_header(data)
    named = {"format": FORMAT, "trial_id": trial_id, "environment": environment}
    for name, wanted in named.items():
        if header.get(name) != wanted:
            raise DamagedEntryError(f"its {name} is {header.get(name)!a}, and not {wanted!a}")
    content = memoryview(data)[data.index(b"\n") + 1 :]
    if header.get("sha256") != hashlib.sha256(content).hexdigest():
        raise DamagedEntryError("its content is not what its first line says by SHA-256")
    files = _read_archive(content)
    line = files.pop(_RECORD, b"")
    try:
        record = parse_record(line)
    except ValueError as error:
        raise DamagedEntryError(f"its record cannot be read: {error}") from error
    if (record.trial_id, record.environment) != (trial_id, environment):
        raise DamagedEntryError(
            f"its record is of trial {record.trial_id} in environment {record.environment}"
        )
    for name, sha256 in record.artefacts.items():
        if name not in files or hashlib.sha256(files[name]).hexdigest() != sha256:
            raise DamagedEntryError(f"its {name} is not the file of its record")
    return TrialEntry(record, files, hashlib.sha256(line).hexdigest())


def _read_header(data: bytes) -> dict[str, Any]:
    line, newline, _ = data[:_MAX_HEADER].partition(b"\n")
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not newline or not isinstance(header, dict):
        raise DamagedEntryError("it does not begin as an entry does")
    return header


def _read_archive(content: memoryview) -> dict[str, bytes]:
    """Return the files in an archive by name; it may come from anybody."""
    files: dict[str, bytes] = {}
    try:
        with zstandard.ZstdDecompressor().stream_reader(content) as stream:
            raw = stream.read(MOST_BYTES)
            if stream.read(1):
                raise DamagedEntryError(f"it holds more than {MOST_BYTES} bytes")
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as tar:
            for member in tar:
                name = member.name
                if not member.isreg() or name in (".", "..") or "/" in name or name in files:
                    raise DamagedEntryError(f"it holds {name!a}, which is no plain file")
                found = tar.extractfile(member)
                files[name] = found.read() if found is not None else b""
    except (zstandard.ZstdError, tarfile.TarError, EOFError) as error:
        raise DamagedEntryError(f"its archive cannot be read: {error}") from error
    return files


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)  # of no time and no owner
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))
