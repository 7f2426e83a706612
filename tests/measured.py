"""What a record's trial measured, which has to be there."""

from __future__ import annotations

from typing import TypeVar

from testbed.kinds.command.measurement import Executed
from testbed.model import PageLoad, Record

_M = TypeVar("_M")


def load_of(record: Record) -> PageLoad:
    """The load of a page."""
    return measured_as(record, PageLoad)


def executed_of(record: Record) -> Executed:
    """What became of a command in the lab."""
    return measured_as(record, Executed)


def measured_as(record: Record, type_: type[_M]) -> _M:
    """What was measured, of this type."""
    measured = record.measured_as(type_)
    assert measured is not None, (record.outcome, record.reason)
    return measured
