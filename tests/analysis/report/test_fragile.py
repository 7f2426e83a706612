"""Fragile cells: loads that waited for timers, and load times in two humps, are named."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.kinds.page_load.fragile import MAX_CELLS, describe_fragile
from analysis.report.document import write_reports
from analysis.report.terminal import render_table
from analysis.stats.estimates import two_humps
from analysis.stats.shift import shift_between
from testbed.model import Record, Waits
from tests.analysis.report.test_settling import OFF, ON, loads, table_of
from tests.analysis.sample import conditions, experiment, write_results

CALM, SLOW = 1962.0, 3020.0
NAME = "amazon, 100 ms, without Fast Open"


def waiting(record: Record, waits: Waits | None, timeouts: int = 0) -> Record:
    """``record`` with these waits, and so many time-outs counted by the server."""
    assert record.proof is not None
    counters = {**record.proof.server_counters, "TcpExtTCPTimeouts": timeouts}
    return replace(record, proof=replace(record.proof, waits=waits, server_counters=counters))


def off_loads(slow: int, longest_ns: int = 1_132_000_000) -> list[Record]:
    """Six loads without Fast Open, of which the first ``slow`` waited."""
    plts = [SLOW] * slow + [CALM + n for n in range(6 - slow)]
    waits = [Waits(0, 1, 0, longest_ns)] * slow + [Waits(0, 0, 0, 0)] * (6 - slow)
    made = zip(loads(OFF, plts), waits, strict=True)
    return [waiting(load, each, each.server_timeouts) for load, each in made]


def on_loads() -> list[Record]:
    return loads(ON, [1925.0 + n for n in range(6)])


@pytest.mark.parametrize(
    ("slow", "said"),
    [
        (1, f"{NAME}: 1 of 6 loads waited 1.13 s for a retransmission time-out; "
            "the times lie in two humps, 5 from 1.962 to 1.966 s and 1 at 3.020 s."),
        (2, f"{NAME}: 2 of 6 loads waited up to 1.13 s for a retransmission time-out; "
            "the times lie in two humps, 4 from 1.962 to 1.965 s and 2 at 3.020 s."),
    ],
)  # fmt: skip
def test_what_waited_is_said_below_the_table(slow: int, said: str, tmp_path: Path) -> None:
    table = table_of(tmp_path, [*off_loads(slow), *on_loads()], (OFF, ON))
    assert describe_fragile(table) == [said]
    assert said in " ".join(render_table(tmp_path, 100).split())
    write_reports(tmp_path)
    assert said in (tmp_path / "report.html").read_text()
    (row,) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert (row["waited_off"], row["longest_wait_off_ms"]) == (str(slow), "1132")
    assert (row["waited_on"], row["longest_wait_on_ms"]) == ("0", "")


def test_calm_cells_say_nothing(tmp_path: Path) -> None:
    assert describe_fragile(table_of(tmp_path, [*off_loads(0), *on_loads()], (OFF, ON))) == []


def test_older_records_have_counters_alone(tmp_path: Path) -> None:
    calm = loads(OFF, [CALM] * 6)
    records = [waiting(calm[0], None, timeouts=1), *calm[1:], *on_loads()]
    said = [f"{NAME}: 1 of 6 loads waited for a retransmission time-out."]
    assert describe_fragile(table_of(tmp_path, records, (OFF, ON))) == said


def test_a_lost_question(tmp_path: Path) -> None:
    calm = loads(OFF, [CALM] * 6)
    records = [waiting(calm[0], Waits(0, 0, 1, 5_000_000_000)), *calm[1:], *on_loads()]
    said = [f"{NAME}: 1 of 6 loads waited 5.00 s for a lost question for a name."]
    assert describe_fragile(table_of(tmp_path, records, (OFF, ON))) == said


def test_of_many_cells_the_first_are_named(tmp_path: Path) -> None:
    asked = conditions(["amazon"], [float(rtt) for rtt in range(10, 10 * MAX_CELLS + 10, 10)])
    waits = Waits(1, 0, 0, 1_000_000_000)
    records = [waiting(load, waits, 1) for c in asked for load in loads(c, [CALM] * 2)]
    said = describe_fragile(table_of(tmp_path, records, tuple(asked)))
    assert len(said) == MAX_CELLS + 1
    assert said[-1].startswith(f"So did {MAX_CELLS} more cells")


@pytest.mark.parametrize(("values", "sizes"), [
    ([1962.0, 1963.0, 3020.0], (2, 1)),
    ([3020.0, 1962.0, 3021.0, 1963.0, 1964.0, 3022.0], (3, 3)),
    ([1945.8, 1956.5, 1976.6], None),  # modes closer than 5 % of the median
    ([1000.0, 1200.0, 1400.0, 1600.0], None),  # spread out, without a gap
    ([1962.0, 3020.0], None),  # two values are always apart
])  # fmt: skip
def test_two_humps(values: list[float], sizes: tuple[int, int] | None) -> None:
    humps = two_humps(values)
    assert (humps and tuple(map(len, humps))) == sizes


def test_the_interval_of_the_gain_holds_what_rare_loads_did() -> None:
    off = {(seed, seed): SLOW if seed == 7 else CALM + seed for seed in range(20)}
    on = dict.fromkeys(off, 1925.0)
    shift = shift_between(off, on)
    assert shift is not None and shift.ms.interval is not None
    assert shift.ms.interval.high == SLOW - 1925.0
    assert shift.ms.interval.low == CALM - 1925.0
    assert 37.0 < shift.ms.value < 57.0


def test_single_loads_scatter_beside_what_the_paper_says_of_its_own(tmp_path: Path) -> None:
    """Table 1's caption: within 5 % of the average, amazon at 20 ms 7 %."""
    asked = conditions(["amazon"], [20.0, 100.0])
    records = [load for c in asked for load in loads(c, [SLOW, *[CALM] * 5])]
    folder = write_results(tmp_path, records, experiment(6, conditions=asked))
    write_reports(folder)
    said = "Standard deviations of our load times are within 20.2 % of the mean"
    text = " ".join(render_table(folder, 100).split())
    assert said in text
    assert "the paper's within 5 % (amazon, 20 ms: 7 %)." in text
    page = (folder / "report.html").read_text()
    assert (page.count("± 7 %"), page.count("± 5 %"), page.count("± 20.2 %")) == (2, 2, 4)
