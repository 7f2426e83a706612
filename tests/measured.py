"""What a record's trial measured, which has to be there."""

from __future__ import annotations

from typing import TypeVar

from testbed.kinds.command.measurement import Executed
from testbed.kinds.server_load.measurement import ServedLoad
from testbed.model import PageLoad, Record

_M = TypeVar("_M")


def load_of(record: Record) -> PageLoad:
    """The load of a page."""
    return measured_as(record, PageLoad)


def served_of(record: Record) -> ServedLoad:
    """What became of the connections of a load on a server."""
    return measured_as(record, ServedLoad)


def executed_of(record: Record) -> Executed:
    """What became of a command in the lab."""
    return measured_as(record, Executed)


def measured_as(record: Record, type_: type[_M]) -> _M:
    """What was measured, of this type."""
    measured = record.measured_as(type_)
    assert measured is not None, (record.outcome, record.reason)
    return measured
