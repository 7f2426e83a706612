"""The capture file of a record, found in its results folder and checked by its digest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from testbed.model import CAPTURE_FILE, Record
from testbed.wire.difference import PacketDifference, first_difference
from testbed.wire.packets import Capture, read_capture

Pair = tuple[Capture, Capture]
"""Captures of one trial in the base and in the new results."""


def capture_hash(record: Record) -> str | None:
    """SHA-256 of the record's capture; ``None`` where it has none."""
    return record.artefacts.get(CAPTURE_FILE)


def find_capture(results_dir: Path, record: Record) -> tuple[Path | None, str]:
    """Return the capture of ``record``, or ``None`` and why there is none to read.

    An attempt that was repeated is kept beside the trial's folder.
    """
    wanted = capture_hash(record)
    if wanted is None:
        return None, f"trial {record.trial_id} made no capture"
    trial = results_dir / "trials" / record.trial_id
    places = (trial, trial.with_name(f"{record.trial_id}.attempt{record.attempt}"))
    files = [place / CAPTURE_FILE for place in places]
    present = [file for file in files if file.is_file()]
    for file in present:
        with file.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() == wanted:
                return file, ""
    if present:
        return None, f"{present[0]} is not the file that its record names"
    return None, f"{results_dir} holds no capture of trial {record.trial_id}"


def read_captures(
    folders: tuple[Path, Path], records: tuple[Record, Record]
) -> tuple[Pair | None, str | None]:
    """Return the captures of one trial in both folders, or ``None`` and why they cannot be read."""
    found = [find_capture(*each) for each in zip(folders, records, strict=True)]
    (base, _), (new, _) = found
    if base is None or new is None:
        return None, "; ".join(problem for _, problem in found if problem)
    try:
        return (read_capture(base), read_capture(new)), None
    except (OSError, ValueError) as error:
        return None, f"the captures cannot be compared: {error}"


def differ_on_the_wire(
    records: tuple[Record, Record], captures: Pair | None, problem: str | None
) -> tuple[PacketDifference | None, str | None]:
    """Return the first packet that differs, or ``None`` and why none can be shown.

    ``captures`` and ``problem`` are from ``read_captures`` of the same ``records``.
    """
    base, new = map(capture_hash, records)
    if base == new and base is not None:
        return None, "the captures are the same to the bit"
    if captures is None:
        return None, problem
    difference = first_difference(*captures)
    if difference is None:
        return None, (
            "the captures hold the same packets at the same times since the first SYN; "
            "they differ in absolute times, or in what is new in every boot"
        )
    return difference, None
