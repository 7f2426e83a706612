"""The captures of one trial in two results folders, and the first packet that differs."""

from __future__ import annotations

from pathlib import Path

from analysis.records.kept import find_kept
from testbed.capture.difference import PacketDifference, first_difference
from testbed.capture.packets import Capture, read_capture
from testbed.model import CAPTURE_FILE, Record

Pair = tuple[Capture, Capture]
"""Captures of one trial in the base and in the new results."""


def read_captures(
    folders: tuple[Path, Path], records: tuple[Record, Record], name: str = CAPTURE_FILE
) -> tuple[Pair | None, str | None]:
    """Return the captures ``name`` of one trial in both folders, or ``None`` and why not."""
    kept_files = [find_kept(*each, name) for each in zip(folders, records, strict=True)]
    (base, _), (new, _) = kept_files
    if base is None or new is None:
        return None, "; ".join(problem for _, problem in kept_files if problem)
    try:
        return (read_capture(base), read_capture(new)), None
    except (OSError, ValueError) as error:
        return None, f"the captures cannot be compared: {error}"


def differ_on_the_wire(
    records: tuple[Record, Record], captures: Pair | None, problem: str | None,
    name: str = CAPTURE_FILE,
) -> tuple[PacketDifference | None, str | None]:  # fmt: skip
    """Return the first packet that differs, or ``None`` and why none can be shown.

    ``captures`` and ``problem`` are from ``read_captures`` of the same ``records``.
    """
    base, new = (record.artefacts.get(name) for record in records)
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
