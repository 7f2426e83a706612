"""Kernel warnings in trials: what their consoles say that it did wrong.

A load may well go on after one, and be proven: its number is no longer worth much.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.words import clean
from testbed.base.kernel_warning import parse_warnings
from testbed.model import Record

CONSOLE_FILE = "console.log"
MOST_BYTES = 1 << 20
"""So much of a console is read: the first warnings are what matters."""
_FUNCTION = re.compile(r"\b([A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+")
_FILE = re.compile(r"\b([\w./-]+\.[chS]):\d+")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


@dataclass(frozen=True, slots=True)
class KernelWarning:
    """What a kernel complained of, once for all trials in which it did."""

    title: str
    """Its first line, without the time, and who ran."""
    lines: tuple[str, ...]
    """Its first lines, of one trial; functions are named where the kernel's build kept them."""
    trials: int
    """In how many trials it came."""

    def is_like(self, other: KernelWarning) -> bool:
        """Return whether both are of one place in the source, as far as both know it."""
        ours, theirs = _place(self.title), _place(other.title)
        known = zip(ours, theirs, strict=True)
        return all(a == b or None in (a, b) for a, b in known)


def find_kernel_warnings(folder: Path, records: Iterable[Record]) -> tuple[KernelWarning, ...]:
    """Return what the kernel of ``records`` complained of, what came in most trials first.

    ``folder`` is their results folder; of what did not end well the record has the console's end.
    """
    found: list[KernelWarning] = []
    for record in records:
        said = _read_console(folder, record) or record.reason or ""
        shown = (
            KernelWarning(clean(title), tuple(map(clean, lines)), 1)
            for title, lines in parse_warnings(said)
        )
        found += dict.fromkeys(merge_warnings(shown).values())
    merged = merge_warnings(found)
    counts = Counter(merged[warning] for warning in found)
    return tuple(replace(warning, trials=n) for warning, n in counts.most_common())


def merge_warnings(warnings: Iterable[KernelWarning]) -> dict[KernelWarning, KernelWarning]:
    """Return the first of ``warnings`` that each of them is like."""
    merged: dict[KernelWarning, KernelWarning] = {}
    for warning in warnings:
        first = next((each for each in merged.values() if each.is_like(warning)), warning)
        merged.setdefault(warning, first)
    return merged


def _place(title: str) -> tuple[str, str | None, str | None]:
    """Return the kind of a warning, and the file and the function that it names."""
    file, function = _FILE.search(title), _FUNCTION.search(title)
    kind = title.partition(":")[0] if file or function else _NUMBER.sub("#", title)
    return kind, file and file[1], function and function[1]


def _read_console(folder: Path, record: Record) -> str:
    """Return the console of a trial; empty where it is not kept.

    An attempt that was repeated is kept beside the trial's folder.
    """
    trial = folder / "trials" / record.trial_id
    for place in (trial.with_name(f"{record.trial_id}.attempt{record.attempt}"), trial):
        try:
            with (place / CONSOLE_FILE).open("rb") as stream:
                return stream.read(MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
    return ""
