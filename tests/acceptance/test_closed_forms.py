"""Closed forms of queues, held to real loads: a full FIFO, CoDel's first drops, PIE's allowance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.kinds.page_load.closed_forms import ClosedForm, list_closed_forms
from analysis.records.cells import Cell, cells_of
from analysis.records.results import read_results
from analysis.report.document import write_reports
from testbed.base.errors import EXIT_OK
from tests.acceptance.house import House

pytestmark = pytest.mark.guest

FIFO, CODEL, MARKING = "fifo", "codel", "codel target 20ms interval 60ms ecn"
PIE = "pie alpha 32 beta 32"
"""It reacts so fast that nothing but its allowance holds back the first drop."""


@pytest.fixture(scope="module")
def folder(house: House) -> Path:
    """A file of 1 MiB over 4 Mbit/s fills what is before the line; a full packet takes 3 ms."""
    house.take("file-1m")
    ran = house.run(page="file-1m", client="graph", **{
        "rtt_ms": 60, "down_kbit": 4000, "up_kbit": 1000, "buffer_bytes": 65536, "tcp.tfo": False,
        "initcwnd_segments": 50, "congestion_control": "reno", "tcp.sysctl.tcp_ecn": 1,
        "link.qdisc": [FIFO, CODEL, MARKING, PIE],
    })  # fmt: skip
    assert ran.code == EXIT_OK, ran.said
    return ran.folder


def cells(folder: Path) -> dict[str, Cell]:
    return {str(cell.axes["qdisc"]): cell for cell in cells_of(read_results(folder))}


def forms(folder: Path, cell: Cell) -> list[ClosedForm]:
    return [form for form in list_closed_forms(folder, [cell]) if form.way == "down"]


def told_otherwise(cell: Cell, was: str, now: str) -> Cell:
    """The cell, as if the queue had been set otherwise than it was."""
    (record,) = cell.records
    assert record.lab is not None
    knobs = {name: text.replace(was, now) for name, text in record.lab.knobs.items()}
    assert knobs != record.lab.knobs
    return Cell(cell.axes, (replace(record, lab=replace(record.lab, knobs=knobs)),), cell.planned)


def test_a_full_fifo_makes_a_packet_wait_for_its_bytes(folder: Path) -> None:
    (form,) = forms(folder, cells(folder)[FIFO])
    assert (form.by_law, form.holds) == ("131.1 ms", True)
    assert 0 <= 131.072 - float(form.came.split()[0]) <= 6  # two packets


@pytest.mark.parametrize(("queue", "interval_ms"), [(CODEL, 100), (MARKING, 60)])
def test_codel_drops_and_marks_by_its_law(folder: Path, queue: str, interval_ms: float) -> None:
    first, *more = forms(folder, cells(folder)[queue])
    assert first.by_law == f"{interval_ms}.0 ms"
    assert all(form.holds for form in (first, *more))
    # After 1/sqrt(1) and 1/sqrt(2) of the interval; Linux's first step makes 1/2 of the latter.
    assert [form.by_law for form in more[:2]] == [
        f"{interval_ms:.1f} ms", f"{interval_ms * (1 + 2**-0.5):.1f} ms"
    ]  # fmt: skip
    assert [form.in_linux for form in more[:2]] == ["", f"{interval_ms * 1.5:.1f} ms"]


@pytest.mark.parametrize(
    ("queue", "was", "now"),
    [(CODEL, "interval 100ms", "interval 95ms"), (CODEL, "interval 100ms", "interval 110ms"),
     (CODEL, "target 5ms", "target 50ms"), (MARKING, "interval 60ms", "interval 50ms")],
)  # fmt: skip
def test_another_queue_is_found(folder: Path, queue: str, was: str, now: str) -> None:
    found = forms(folder, told_otherwise(cells(folder)[queue], was, now))
    assert False in [form.holds for form in found]


def test_pie_lets_its_burst_pass(folder: Path) -> None:
    (form,) = forms(folder, cells(folder)[PIE])
    assert (form.by_law, form.holds) == ("at least 135.0 ms", True)
    assert float(form.came.split()[0]) < 200  # the allowance is what held it back


def test_the_report_shows_them(folder: Path) -> None:
    write_reports(folder)
    report = (folder / "report.html").read_text()
    assert "Queues by their closed forms" in report
    assert "number 3 after the first" in report
    assert "△ differs" not in report
