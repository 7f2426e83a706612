"""The capture file of a record, found in its results folder and checked by its digest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from testbed.model import CAPTURE_FILE, Record
from testbed.wire.difference import PacketDifference, first_difference
from testbed.wire.packets import read_capture


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


def differ_on_the_wire(
    base_dir: Path, base: Record, new_dir: Path, new: Record
) -> tuple[PacketDifference | None, str | None]:
    """Return the first packet that differs, or ``None`` and why none can be shown."""
    if capture_hash(base) == capture_hash(new) and capture_hash(base) is not None:
        return None, "the captures are the same to the bit"
    files = [find_capture(folder, one) for folder, one in ((base_dir, base), (new_dir, new))]
    (base_pcap, base_problem), (new_pcap, new_problem) = files
    if base_pcap is None or new_pcap is None:
        return None, "; ".join(problem for problem in (base_problem, new_problem) if problem)
    try:
        difference = first_difference(read_capture(base_pcap), read_capture(new_pcap))
    except (OSError, ValueError) as error:
        return None, f"the captures cannot be compared: {error}"
    if difference is None:
        return None, (
            "the captures hold the same packets at the same times since the first SYN; "
            "they differ in absolute times, or in what is new in every boot"
        )
    return difference, None
