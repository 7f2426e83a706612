"""Queues in a report: what packets waited, and a target that is shorter than a packet's time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.kinds.page_load.queues import (
    MAX_FIGURES,
    MAX_PLAIN,
    describe_queues,
    plan_waits,
    read_target_ms,
)
from analysis.plot import to_svg
from analysis.report.document import write_reports
from analysis.report.sections.sweep import rows_of
from testbed.model import FIFO, Condition, LinkSpec, Queueing, Record, TcpSpec
from tests.analysis.sample import record, tabled

FQ_CODEL = "fq_codel limit 10240p flows 1024 target 5ms interval 100ms"
IDLE = Queueing(500, 0, 0, 0.0, 0.5, 0.9, None, 40.0, (900, *[0] * 63))
WAITED = Queueing(480, 12, 3, 40.0, 300.0, 420.5, 2600, 40.0, (420_500, 1000, *[0] * 62))


def seen(
    text: str, down: Queueing, up: Queueing, plt_ms: float, page: str = "amazon",
    traffic: str = "none",
) -> Record:  # fmt: skip
    """A load behind a queue up, of which tc told ``text``."""
    asked = text.partition(" ")[0]
    link = LinkSpec(rtt_ms=20.0, qdisc_up=None if asked == FIFO else asked)
    tcp = TcpSpec(initcwnd_segments=3)
    made = record(Condition(page, "chromium", link, tcp, traffic=traffic), 0, plt_ms)
    assert made.lab is not None and made.proof is not None
    knobs = {} if asked == FIFO else {"up.qdisc": text}
    return replace(made, lab=replace(made.lab, knobs=made.lab.knobs | knobs),
                   proof=replace(made.proof, queueing={"down": down, "up": up}))  # fmt: skip


PAIR = [seen(FIFO, IDLE, IDLE, 2000.0), seen(FQ_CODEL, IDLE, WAITED, 2680.0)]


def test_a_target_that_is_shorter_than_a_packet_is_explained(tmp_path: Path) -> None:
    table = tabled(tmp_path, PAIR)
    (said,) = describe_queues(table)
    assert "up the line a packet of 1,500 bytes takes 46.9 ms at 256 kbit/s" in said
    assert "longer than the target of fq_codel, 5.0 ms. It dropped 12 and marked 3 of 492" in said
    assert "in 1 load, half of them behind 2,600 bytes or less" in said
    assert "the page load time differs from that with a FIFO by +34.0 %. A target of 70 ms" in said
    write_reports(tmp_path)
    report = (tmp_path / "report.html").read_text()
    assert "It dropped 12 and marked 3 of 492" in report
    assert "What packets waited before the line" in report


@pytest.mark.parametrize("quiet", [
    seen(FQ_CODEL.replace("5ms", "60ms"), IDLE, WAITED, 2680.0),  # the target is longer
    seen(FQ_CODEL, IDLE, IDLE, 2680.0),  # nothing was dropped
    seen("sfq limit 127p", IDLE, WAITED, 2680.0),  # it has no target
    seen(FIFO, IDLE, WAITED, 2680.0),
    seen(FQ_CODEL, IDLE, WAITED, 2680.0, traffic="bulk up"),  # beside others it may well drop
])  # fmt: skip
def test_what_needs_no_explanation(tmp_path: Path, quiet: Record) -> None:
    assert describe_queues(tabled(tmp_path, [quiet])) == []


def test_a_figure_has_a_line_for_each_queue(tmp_path: Path) -> None:
    rows = rows_of(tabled(tmp_path, PAIR))
    (panel,) = plan_waits(rows)  # down nothing waits
    assert panel.title == "amazon: up"
    svg = to_svg(panel.draw())
    assert ">fq_codel<" in svg
    assert "Longest wait (ms)" in svg


def test_a_run_of_plain_fifos_has_a_few_of_them(tmp_path: Path) -> None:
    loads = [seen(FIFO, WAITED, WAITED, 2000.0, page) for page in ("amazon", "wsj", "wikipedia")]
    rows = rows_of(tabled(tmp_path, loads))
    assert len(plan_waits(rows)) == MAX_PLAIN


def test_of_many_figures_those_with_the_longest_waits_are_drawn(tmp_path: Path) -> None:
    pages = [f"page{number}" for number in range(MAX_FIGURES + 3)]
    loads = [
        seen(
            FQ_CODEL, IDLE,
            replace(WAITED, peak_ms=2 + number / 1000,
                    peaks_us=(2000 + number, *WAITED.peaks_us[1:])),
            1.0, page,
        )
        for number, page in enumerate(pages)
    ]  # fmt: skip
    panels = plan_waits(rows_of(tabled(tmp_path, loads)))
    assert [panel.title for panel in panels] == [f"{page}: up" for page in pages[3:]]


@pytest.mark.parametrize(("told", "target_ms"), [
    (FQ_CODEL, 5.0), ("codel limit 1000p target 500us interval 100ms", 0.5),
    ("cake bandwidth unlimited diffserv3 rtt 100ms raw overhead 0", 5.0),
    ("cake bandwidth 3Mbit diffserv3 rtt 100ms raw overhead 0", None), ("pfifo limit 100p", None),
    ("", None),
])  # fmt: skip
def test_the_target_of_a_queue(told: str, target_ms: float | None) -> None:
    assert read_target_ms(told) == target_ms
