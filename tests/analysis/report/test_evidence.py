"""Evidence beside the numbers: what all trials on a link measured of it."""

from __future__ import annotations

from dataclasses import replace

from analysis.records.cells import Cell, flatten
from analysis.report.evidence import calibrations, cost_lines, ecn_lines
from analysis.tables.table import ResultTable
from testbed.model import Cost, LabReading, Measurement
from tests.analysis.sample import conditions, record

NEAR, FAR, OTHER = (record(conditions(["amazon"], [rtt])[0]) for rtt in (20.0, 100.0, 200.0))


def test_the_worst_error_is_the_furthest_off_in_either_direction() -> None:
    rates = [Measurement("down_rate", "kbit/s", 4000.0 + off, 4000.0, pct)
             for off, pct in ((2.0, 0.1), (-8.0, 0.3), (4.0, 0.1))]  # fmt: skip
    records = [replace(NEAR, lab=LabReading((rate,), {})) for rate in rates]
    (found,) = calibrations(records)
    assert (found.name, found.unit) == ("down_rate", "kbit/s")
    assert round(found.worst_error_pct, 9) == -0.2
    assert (found.tolerance_pct, found.outside) == (0.1, 0)
    assert (found.measured.low, found.measured.median, found.measured.high) == (3992, 4002, 4004)
    (stricter,) = calibrations([replace(NEAR, lab=LabReading(
        (replace(rates[1], tolerance_pct=0.1),), {}))])  # fmt: skip
    assert stricter.outside == 1


def test_each_link_has_its_own_in_order_of_its_rtt() -> None:
    found = calibrations([FAR, NEAR, replace(NEAR, lab=None)])
    assert [each.link.rtt_ms for each in found] == [20.0] * 4 + [100.0] * 4


def test_speed_is_virtual_time_by_wall_time() -> None:
    costs = (Cost(1.0, 2.0, 10.0), Cost(3.0, 2.0, 30.0))
    records = tuple(replace(NEAR, cost=cost) for cost in costs)
    (line,) = cost_lines([Cell(flatten(NEAR.trial.condition), records, 2)])
    assert (line.client, line.trials) == ("chromium", 2)
    assert (line.speed, line.total_cpu_s, line.cpu_s.high) == (10.0, 4.0, 3.0)


def test_ecn_is_summed_by_condition_with_the_counts_that_any_has() -> None:
    cells = []
    for good, counts in ((NEAR, {"classic": 3, "down.ce": 2}), (FAR, {"accurate": 1})):
        assert good.proof is not None
        seen = replace(good, proof=replace(good.proof, ecn=counts))
        cells.append(Cell(flatten(good.trial.condition), (seen, seen), 2))
    cells.append(Cell(flatten(OTHER.trial.condition), (OTHER,), 1))
    assert ecn_lines(ResultTable(tuple(cells), (), ("page", "rtt_ms"))) == [
        ("amazon, 20 ms", {"accurate": 0, "classic": 6, "down.ce": 4}),
        ("amazon, 100 ms", {"accurate": 2, "classic": 0, "down.ce": 0}),
    ]
