"""Files that trials kept, found in their results folder and checked by their digests."""

from __future__ import annotations

import hashlib
from pathlib import Path

from testbed.model import CAPTURE_FILE, Record

_NAMES = {CAPTURE_FILE: "capture"}


def find_kept(results_dir: Path, record: Record, name: str) -> tuple[Path | None, str]:
    """Return the file ``name`` that ``record`` kept, or ``None`` and why there is none to read.

    An attempt that was repeated is kept beside the trial's folder.
    """
    wanted = record.artefacts.get(name)
    if wanted is None:
        return None, f"trial {record.trial_id} made no {_NAMES.get(name, name)}"
    trial = results_dir / "trials" / record.trial_id
    places = (trial, trial.with_name(f"{record.trial_id}.attempt{record.attempt}"))
    files = [place / name for place in places]
    present = [file for file in files if file.is_file()]
    for file in present:
        with file.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() == wanted:
                return file, ""
    if present:
        return None, f"{present[0]} is not the file that its record names"
    return None, f"{results_dir} holds no {_NAMES.get(name, name)} of trial {record.trial_id}"
