from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import plot
from analysis.kinds.page_load.conditions import INTERVALS, REQUESTS
from analysis.kinds.page_load.figures import FIGURES, TIME_LINES
from analysis.records.cells import cells_of
from analysis.records.results import read_results
from analysis.report import drawings
from analysis.report.drawings import FigureSection, make_sections
from analysis.report.sections import scales
from analysis.report.sections.sweep import Panel, SweepRow, rows_of, spread_over, swept
from analysis.tables.table import ResultTable, make_table
from testbed.model import Condition, Dns, LinkSpec, Protocol, Record, TcpSpec
from tests.analysis.sample import conditions as conditions_of
from tests.analysis.sample import record, tabled
from tests.measured import load_of

PROTOCOLS: tuple[Protocol, ...] = ("h1", "h2")
DNS: tuple[Dns, ...] = ("hosts", "resolver")


def sweep(
    pages: Iterable[str] = ("amazon",), rtts: Iterable[float] = (20.0,),
    windows: Iterable[int] = (10,), reuse: Iterable[int | None] = (None,),
    tfos: Iterable[bool] = (False,),
) -> list[Condition]:  # fmt: skip
    return [
        Condition(page, "graph", LinkSpec(rtt_ms=rtt),
                  TcpSpec(tfo=tfo, initcwnd_segments=window, requests_per_connection=most))
        for page, rtt, window, most, tfo in product(pages, rtts, windows, reuse, tfos)
    ]  # fmt: skip


def table_of(folder: Path, asked: Sequence[Condition], seeds: int = 1, few: int = 0) -> ResultTable:
    """The table of a run of ``asked``; with ``few`` only so many requests in each load."""
    return tabled(folder, [cut(record(c, s), few) for c in asked for s in range(seeds)], seeds)


def cut(one: Record, few: int) -> Record:
    return (
        replace(one, measured=replace(load_of(one), requests=load_of(one).requests[:few]))
        if few
        else one
    )


def plans(table: ResultTable) -> dict[str, tuple[Panel, ...]]:
    """What would be drawn, by kind: drawing takes a while."""
    rows = rows_of(table)
    found = {kind.anchor: kind.plan(rows) for kind in FIGURES}
    return {anchor: panels for anchor, panels in found.items() if panels}


def section_of(table: ResultTable, anchor: str) -> FigureSection:
    (found,) = (one for one in make_sections(table) if one.anchor == anchor)
    return found


def titles(table: ResultTable) -> list[str]:
    rows = rows_of(table)
    return [kind.title(rows) for kind in FIGURES if kind.plan(rows)]


def test_two_swept_numbers_make_maps_by_page(tmp_path: Path) -> None:
    asked = sweep(("amazon", "wsj"), (20.0, 100.0, 200.0), (4, 10, 20), tfos=(False, True))
    table = table_of(tmp_path, asked, few=1)
    assert [(name, len(panels)) for name, panels in plans(table).items()] == [
        ("saved-maps", 2), ("time-maps", 2),
    ]  # fmt: skip
    sections_made = make_sections(table)
    assert sections_made[1].title == "Page load time by RTT and initial window"
    assert [re.findall("amazon|wsj", d.svg)[0] for d in sections_made[0].drawings] == [
        "amazon", "wsj",
    ]  # fmt: skip


def test_two_values_are_no_map(tmp_path: Path) -> None:
    rows = rows_of(table_of(tmp_path, sweep(rtts=(20.0, 100.0), windows=(4, 10, 20))))
    assert scales.map_axes(rows) is None


def test_the_axes_of_a_map_are_the_longest_and_the_rest_are_facets(tmp_path: Path) -> None:
    asked = sweep(rtts=(20.0, 100.0, 200.0), windows=(2, 4, 10, 20), reuse=(1, 2, None, 6))
    table = table_of(tmp_path, asked, few=1)
    assert scales.map_axes(rows_of(table)) == ("initcwnd_segments", "requests_per_connection")
    svg = plot.to_svg(plans(table)["time-maps"][0].draw())
    assert all(f"RTT {rtt} ms" in svg for rtt in (20, 100, 200))
    assert "any" in svg  # no limit at all is a value, too


def test_five_values_make_lines_and_four_do_not(tmp_path: Path) -> None:
    five = table_of(tmp_path / "5", sweep(windows=(2, 4, 6, 8, 10)), few=1)
    assert titles(five) == ["Page load time over initial window"]
    four = table_of(tmp_path / "4", sweep(windows=(2, 4, 6, 8)), few=1)
    assert titles(four) == ["Page load time"]


def test_pairs_have_lines_of_what_is_saved(tmp_path: Path) -> None:
    asked = sweep(rtts=map(float, range(10, 60, 10)), windows=(4, 10), tfos=(False, True))
    times, savings = make_sections(table_of(tmp_path, asked, few=1))
    assert (times.anchor, savings.anchor) == ("time-lines", "saved-lines")
    assert "Fast Open" in times.drawings[0].svg
    assert "Time saved (%)" in savings.drawings[0].svg


def test_too_many_lines_become_more_figures(tmp_path: Path) -> None:
    some = sweep(rtts=map(float, range(10, 70, 10)), windows=(4, 10), reuse=(1, 2))
    asked = [replace(c, protocol=p, dns=dns) for c in some for p in PROTOCOLS for dns in DNS]
    rows = rows_of(table_of(tmp_path, asked, few=1))
    assert scales.line_axis(rows) == "rtt_ms"
    # 16 lines: a figure for each window and each number of requests, of four lines.
    assert len(TIME_LINES.plan(rows)) == 4


@pytest.mark.parametrize(("slowest_ms", "ticks"), [(21000.0, ("100,000", "100")), (90.0, ("0",))])
def test_times_far_apart_share_a_logarithmic_axis(
    tmp_path: Path, slowest_ms: float, ticks: tuple[str, ...]
) -> None:
    asked = sweep(rtts=map(float, range(10, 60, 10)))
    loads = [record(one, 0, ms) for one, ms in zip(asked, [*[500.0] * 4, slowest_ms], strict=True)]
    drawn = section_of(tabled(tmp_path, loads), "time-lines")
    assert [tick for tick in ticks if f">{tick}<" not in drawn.drawings[0].svg] == []


def test_what_a_map_shows_is_not_drawn_as_lines(tmp_path: Path) -> None:
    asked = sweep(rtts=map(float, range(10, 70, 10)), windows=(4, 10, 20))
    assert list(plans(table_of(tmp_path, asked, few=1))) == ["time-maps"]


def test_repeated_loads_have_intervals_where_they_differ(tmp_path: Path) -> None:
    table = table_of(tmp_path, conditions_of(["amazon", "wsj"], [20.0, 100.0]), seeds=6, few=1)
    section = section_of(table, "intervals")
    assert len(section.drawings) == 2
    assert "RTT 100 ms" in section.drawings[0].svg


def test_equal_loads_have_no_intervals(tmp_path: Path) -> None:
    asked = conditions_of(["amazon"], [20.0])
    records = [cut(record(c, seed, 1000.0), 1) for c in asked for seed in range(12)]
    assert list(plans(tabled(tmp_path, records, 12))) == ["chart"]


def test_four_loads_have_a_distribution_with_a_band(tmp_path: Path) -> None:
    asked = conditions_of(["amazon"], [20.0, 100.0])
    assert "load-times" not in plans(table_of(tmp_path / "3", asked, seeds=3, few=1))
    found = plans(table_of(tmp_path / "4", asked, seeds=4, few=1))["load-times"]
    assert [panel.caption for panel in found] == ["4 loads a line."] * 2
    assert plot.to_svg(found[0].draw()).count("fill-opacity") == 2


def test_every_load_is_a_mark_of_its_own(tmp_path: Path) -> None:
    """Two humps are two groups of marks, wherever median and interval lie."""
    asked = conditions_of(["amazon"], [20.0])
    humped = [2000.0, 2001.0, 2002.0, 2003.0, 2004.0, 3020.0]
    records = [record(c, seed, plt) for c in asked for seed, plt in enumerate(humped)]
    (figure,) = section_of(tabled(tmp_path, records, 6), "intervals").drawings
    marks = [float(x) for x in re.findall(r'<line x1="([0-9.]+)"[^>]*stroke-opacity', figure.svg)]
    assert len(marks) == len(records)
    wide = sorted(marks[:6])
    assert wide[-1] - wide[-2] > 50 * (wide[1] - wide[0])


def test_latencies_of_each_condition_by_arm(tmp_path: Path) -> None:
    table = table_of(tmp_path, conditions_of(["amazon", "wsj"], [20.0]))
    section = section_of(table, "latencies")
    assert [d.caption for d in section.drawings] == ["62 requests a line.", "140 requests a line."]
    assert "Fast Open" in section.drawings[0].svg


def test_without_arms_lines_are_of_the_longest_axis_that_fits(tmp_path: Path) -> None:
    asked = sweep(rtts=(20.0, 100.0, 200.0), windows=range(1, 9))
    panels = REQUESTS.plan(rows_of(table_of(tmp_path, asked)))
    assert len(panels) == 8  # one for each window, with a line for each RTT


def test_an_unproven_load_is_in_no_figure(tmp_path: Path) -> None:
    asked = conditions_of(["amazon"], [20.0])
    records = [replace(record(c), outcome="failed", reason="no") for c in asked]
    assert make_sections(tabled(tmp_path, records)) == ()


def test_of_many_figures_some_are_drawn_and_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawings, "MAX_DRAWINGS", 2)
    table = table_of(tmp_path, conditions_of(["amazon", "wsj"], [20.0, 100.0]))
    section = section_of(table, "latencies")
    assert len(section.drawings) == 2
    assert section.left_out.startswith("2 of 4 figures are shown")


def test_many_rows_of_intervals_are_thinned(tmp_path: Path) -> None:
    asked = sweep(rtts=map(float, range(1, 41)))
    (panel,) = INTERVALS.plan(rows_of(table_of(tmp_path, asked, seeds=2, few=1)))
    assert panel.caption.startswith("24 of 40 rows")


def test_equal_records_give_equal_drawings_whatever_their_order(tmp_path: Path) -> None:
    asked = sweep(("amazon", "wsj"), (20.0, 100.0, 200.0), (4, 10, 20), tfos=(False, True))
    table = table_of(tmp_path, asked, few=1)
    lines_of_file = (tmp_path / "records.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "records.jsonl").write_text("".join(reversed(lines_of_file)))
    again = make_table(cells_of(read_results(tmp_path)), None)
    assert make_sections(again) == make_sections(table)


def test_identifiers_of_drawings_are_unique(tmp_path: Path) -> None:
    asked = sweep(("amazon", "wsj"), (20.0, 100.0, 200.0), (4, 10, 20), tfos=(False, True))
    drawn = [d.svg for s in make_sections(table_of(tmp_path, asked, few=1)) for d in s.drawings]
    found = [name for svg in drawn for name in set(re.findall(r'\bid="([^"]+)"', svg))]
    assert len(found) == len(set(found))


def test_a_row_keeps_its_axes(tmp_path: Path) -> None:
    rows = rows_of(table_of(tmp_path, conditions_of(["amazon"], [20.0])))
    assert [type(row) for row in rows] == [SweepRow]
    assert rows[0].axes["rtt_ms"] == 20.0
    assert len(rows[0].cells) == 2


def test_pairs_have_bars_of_what_is_saved_by_page(tmp_path: Path) -> None:
    table = table_of(tmp_path, conditions_of(["amazon", "wsj"], [20.0, 100.0]), seeds=2, few=1)
    section = section_of(table, "chart")
    assert section.title == "Improvement of page load time by TCP Fast Open"
    assert [drawing.title for drawing in section.drawings] == ["amazon", "wsj"]
    words = re.findall(r"<text[^>]*>([^<]*)</text>", section.drawings[0].svg)
    assert {"RTT 20 ms", "RTT 100 ms", "Improvement (%)"} <= set(words)


def test_a_bar_that_is_missing_says_why(tmp_path: Path) -> None:
    asked = conditions_of(["amazon"], [20.0, 100.0])
    records = [record(one) for one in asked]
    records[-1] = replace(records[-1], outcome="failed", reason="no")
    assert "on: failed" in section_of(tabled(tmp_path, records), "chart").drawings[0].svg


def test_too_many_bars_are_left_to_the_table(tmp_path: Path) -> None:
    pages = [f"page{number}" for number in range(41)]
    assert "chart" not in plans(table_of(tmp_path, sweep(pages), few=1))


@given(st.integers(0, 300), st.integers(0, 40))
def test_as_many_as_asked_in_their_order_with_both_ends(length: int, most: int) -> None:
    items = list(range(length))
    found = spread_over(items, most)
    assert len(found) == min(length, most)
    assert found == sorted(set(found))
    if len(found) > 1:
        assert (found[0], found[-1]) == (0, length - 1)


def test_distances_are_even() -> None:
    assert spread_over("abcdefghi", 3) == ["a", "e", "i"]


def test_profiles_are_the_axis_and_what_they_state_is_none(tmp_path: Path) -> None:
    """Not a map of round trips by rates, of which hardly a place has a load."""
    links = [
        LinkSpec(rtt_ms=20.0 * n, down_kbit=1000 * n, up_kbit=500 * n, profile=f"of-{n}")
        for n in range(1, 11)
    ]
    asked = [
        replace(condition, link=link)
        for condition in sweep(["amazon", "wsj", "wikipedia"], windows=[3, 10], tfos=[False, True])
        for link in links
    ]
    table = table_of(tmp_path, asked)
    assert swept(rows_of(table)) == ("profile", "initcwnd_segments")
    assert table.axes == ("page", "rtt_ms", "profile", "initcwnd_segments")
    assert len(plans(table)["chart"]) == 3
    asked[0] = replace(asked[0], link=replace(links[0], loss_pct=1.0))
    assert swept(rows_of(table_of(tmp_path / "other", asked)))[:2] == ("profile", "loss_pct")
