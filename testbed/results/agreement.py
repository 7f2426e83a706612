"""Agreement of machines: two records of one trial in one environment are equal to the bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from testbed.base.errors import EXIT_OUT_OF_TOLERANCE, TestbedError
from testbed.model import Record
from testbed.results.records import plain_record

REPEATABLE = frozenset({"failed", "timeout", "unsupported"})
"""Outcomes by which a machine may differ from another, for it did not come to a measurement."""
_APART = ("cost", "attempt")
"""What of a record is the machine's, or counts how often it tried."""


class DisagreementError(TestbedError):
    """Two machines, or a machine and a store, have other results of one trial."""

    exit_code = EXIT_OUT_OF_TOLERANCE


def result_of(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record as plain data says of its trial, wherever and how often it ran."""
    return {name: value for name, value in line.items() if name not in _APART}


def find_difference(ours: Record, theirs: Record) -> str:
    """Return the first value in which two records of a trial differ; empty: they agree.

    It reads ``measured.plt_ms: 1129.4 and 1140.7``.
    """
    return first_difference(result_of(plain_record(ours)), result_of(plain_record(theirs)))


def first_difference(ours: Any, theirs: Any) -> str:
    """Return the first value in which two documents differ, as ``find_difference``."""
    return next(list_differences(ours, theirs), "")


def list_differences(ours: Any, theirs: Any, place: str = "") -> Iterator[str]:
    """Yield each value in which two documents differ, as ``find_difference``."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        # What was measured is the reader's first question, and artefacts follow from it.
        names = sorted(ours.keys() | theirs.keys(), key=lambda name: (name == "artefacts", name))
        for name in names:
            inner = f"{place}.{name}".removeprefix(".")
            yield from list_differences(ours.get(name), theirs.get(name), inner)
    elif isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        if len(ours) != len(theirs):
            yield f"{place}: {len(ours)} and {len(theirs)} entries"
        for number, (our, their) in enumerate(zip(ours, theirs, strict=False)):
            yield from list_differences(our, their, f"{place}[{number}]")
    elif ours != theirs:
        yield f"{place}: {ours!r} and {theirs!r}"
