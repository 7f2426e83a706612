"""Verdicts on page loads, and what a baseline keeps of one."""

from __future__ import annotations

from dataclasses import replace

from analysis.verdicts.kind import VerdictKind
from testbed.model import PageLoad, Record, in_real_time


def _trim(record: Record) -> Record:
    """Return the record without the browser's own account.

    In real time no request and no packet repeats, so that they are left out as well.
    """
    load = record.measured_as(PageLoad)
    if load is None:
        return record
    if in_real_time(record.trial.kernel):
        return replace(record, artefacts={}, measured=replace(load, browser={}, requests=()))
    return replace(record, measured=replace(load, browser={}))


DESCRIPTION = VerdictKind(trim=_trim)
