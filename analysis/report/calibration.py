"""What the labs measured of themselves, gathered over trials: measured beside theory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analysis.records.cells import Spread, spread_of
from testbed.model import LinkSpec, Measurement, Record


@dataclass(frozen=True, slots=True)
class Calibration:
    """One property of one link over all trials on it; values in ``unit``, errors in percent."""

    link: LinkSpec
    name: str
    unit: str
    theory: Spread
    measured: Spread
    worst_error_pct: float
    tolerance_pct: float
    outside: int


def calibrations(records: Iterable[Record]) -> list[Calibration]:
    """Gather the measurements of ``records`` by link, property and unit, in order of RTT."""
    groups: dict[tuple[LinkSpec, str, str], list[Measurement]] = {}
    for record in records:
        for measurement in record.lab.measurements if record.lab is not None else ():
            key = (record.trial.condition.link, measurement.name, measurement.unit)
            groups.setdefault(key, []).append(measurement)
    return [
        _gather(link, name, unit, groups[link, name, unit])
        for link, name, unit in sorted(groups, key=lambda k: (k[0].rtt_ms, repr(k[0]), k[1:]))
    ]


def _gather(link: LinkSpec, name: str, unit: str, found: list[Measurement]) -> Calibration:
    measured = spread_of(m.measured for m in found)
    theory = spread_of(m.theory for m in found)
    assert measured is not None and theory is not None  # noqa: S101 - a group is never empty
    return Calibration(
        link=link,
        name=name,
        unit=unit,
        theory=theory,
        measured=measured,
        worst_error_pct=max((m.error_pct for m in found), key=lambda error: (abs(error), error)),
        tolerance_pct=min(m.tolerance_pct for m in found),
        outside=sum(not m.within for m in found),
    )
