"""Filmstrip of a load: its frames, how complete each is, and Speed Index.

Source: Speed Index by WebPageTest, with visual progress from colour histograms as Lighthouse's
speedline has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from testbed.base.errors import StorageError
from testbed.capture.difference import first_difference
from testbed.capture.packets import read_capture
from testbed.model import CAPTURE_FILE, Condition, PageLoad, Record
from wings.pages.likeness import read_png

_FRAMES = "frame-*.png"
_LEVELS = 256


@dataclass(frozen=True, slots=True)
class Filmstrip:
    """Frames by their files, when each was drawn in ms, and how complete it is, from 0 to 1."""

    frames: tuple[Path, ...]
    drawn_ms: tuple[float, ...]
    progress: tuple[float, ...]

    @property
    def speed_index_ms(self) -> float:
        """The time that what is visible came late, each part by its share."""
        lasted = np.diff(self.drawn_ms, prepend=0.0)
        missing = 1 - np.array([0.0, *self.progress[:-1]])
        return float((lasted * missing).sum())

    @property
    def complete_ms(self) -> float:
        """When the first frame was drawn that looks as the last."""
        return next(at for at, done in zip(self.drawn_ms, self.progress, strict=True) if done >= 1)


def read_filmstrip(folder: Path) -> Filmstrip | None:
    """Return the filmstrip of the trial in a folder; ``None``: it was not filmed.

    Raises:
        ValueError, LookupError, OSError, struct.error, zlib.error: a frame is damaged.
    """
    frames = sorted(folder.glob(_FRAMES))
    if not frames:
        return None
    pictures = [read_png(frame.read_bytes()) for frame in frames]
    histograms = np.array([
        [np.bincount(each[:, :, colour].ravel(), minlength=_LEVELS) for colour in range(3)]
        for each in pictures
    ])  # fmt: skip
    began, ended = histograms[0], histograms[-1]
    whole = np.abs(ended - began)
    came = np.minimum(np.abs(histograms - began), whole).sum((1, 2))
    progress = came / whole.sum() if whole.sum() else np.ones(len(frames))
    drawn = tuple(float(frame.stem.partition("-")[2]) for frame in frames)
    return Filmstrip(tuple(frames), drawn, tuple(map(float, progress)))


def describe_twin(record: Record, records: Sequence[Record], trials: Path) -> str:
    """Return how the packets of a filmed load differ from those of the same one not filmed."""
    trial = record.trial
    twin = replace(trial, condition=replace(trial.condition_as(Condition), film=False))
    measured = next((each for each in records if each.trial_id == twin.id), None)
    load = None if measured is None else measured.measured_as(PageLoad)
    if load is None:
        return "not measured without a film here: run with --set 'film=[false,true]'"
    try:
        pair = (read_capture(trials / each / CAPTURE_FILE) for each in (twin.id, trial.id))
        difference = first_difference(*pair)
    except (OSError, StorageError) as error:
        return f"its packets are not compared: {error}"
    filmed = record.measured_as(PageLoad)
    plt_ms = filmed.plt_ms if filmed is not None else float("nan")
    times = f"load time {plt_ms:.1f} ms, measured {load.plt_ms:.1f} ms"
    if difference is None:
        return f"{times}; the same packets at the same times"
    spot = difference.telling
    packet = spot.base or spot.new
    at_ms = packet.time_ns / 1e6 if packet is not None else 0.0
    return f"{times}; the same packets until {at_ms:.1f} ms (then other {', '.join(spot.fields)})"
