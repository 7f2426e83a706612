"""Kernel of a results folder, for forms that name what was tested, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from analysis.formats.suites import Tested
from testbed.results.manifest import read_manifest
from testbed.results.records import RECORDS_FILE


def read_tested(folder: Path, name: str) -> Tested:
    """Return what the manifest of ``folder`` says of its kernel, which is called ``name``.

    Raises:
        StorageError: it cannot be read.
    """
    manifest = read_manifest(folder)
    environment = manifest["environment"]
    began = str(manifest["created_utc"])
    try:
        last = (folder / RECORDS_FILE).stat().st_mtime
    except OSError:  # it was read, and has gone meanwhile
        ended = began
    else:
        ended = datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds")
    return Tested(name, str(folder), began, ended, environment["parts"],
                  str(environment["id"]))  # fmt: skip
