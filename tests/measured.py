"""What a record's trial measured, which has to be there."""

from __future__ import annotations

from typing import TypeVar

from testbed.kinds.command.measurement import Executed
from testbed.kinds.scenario.measurement import ScenarioResult
from testbed.model import PageLoad, Record
from wings.server_loads.measurement import ServedLoad

_M = TypeVar("_M")


def load_of(record: Record) -> PageLoad:
    """The load of a page."""
    return _of(record, PageLoad)


def served_of(record: Record) -> ServedLoad:
    """What became of the connections of a load on a server."""
    return _of(record, ServedLoad)


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
