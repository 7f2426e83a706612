"""What a record's trial measured, which has to be there."""

from __future__ import annotations

from typing import TypeVar

from testbed.kinds.command.measurement import Executed
from testbed.kinds.scenario.measurement import ScenarioResult
from testbed.model import PageLoad, Record

_M = TypeVar("_M")


def load_of(record: Record) -> PageLoad:
    """The load of a page."""
    return _of(record, PageLoad)


def result_of(record: Record) -> ScenarioResult:
    """How a scenario came out."""
    return _of(record, ScenarioResult)


def executed_of(record: Record) -> Executed:
    """What became of a command in the lab."""
    return _of(record, Executed)


def _of(record: Record, type_: type[_M]) -> _M:
    measured = record.measured_as(type_)
    assert measured is not None, (record.outcome, record.reason)
    return measured
