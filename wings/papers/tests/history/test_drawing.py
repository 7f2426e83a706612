"""Drawings of trends: they show what the numbers say."""

from __future__ import annotations

import re

import pytest

from analysis.plot import to_svg
from wings.papers.history.drawing import draw_trend, scale_of
from wings.papers.history.runs import KeptRun
from wings.papers.history.trend import Break, Line, Point

RUN = KeptRun(1, "2026-11-01T02:17:00+00:00", "small", "Small", "12" * 20, "ab", "virtual", "7.3",
          None, None)  # fmt: skip


def points(*medians: float | None, verdict: str | None = None) -> tuple[Point, ...]:
    return tuple(Point(RUN, 1, value, value, value, {"ok": 1}, verdict) for value in medians)


def drawn(found: tuple[Point | None, ...], changes: tuple[Break, ...] = ()) -> str:
    figure = draw_trend(Line({}, found), changes, "wsj")
    assert figure is not None
    return to_svg(figure)


def places(svg: str) -> list[tuple[float, float]]:
    circles = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
    return [(float(x), float(y)) for x, y in circles]


def test_the_largest_is_at_the_top_and_the_last_at_the_right() -> None:
    line = points(1000.0, 3000.0, 2000.0)
    (first_x, first_y), (middle_x, middle_y), (last_x, last_y) = places(drawn(line))
    assert 0 < first_x < middle_x < last_x
    assert middle_x == pytest.approx((first_x + last_x) / 2)
    assert 0 < middle_y < last_y < first_y
    assert last_y == pytest.approx((first_y + middle_y) / 2)
    assert scale_of(Line({}, line)) == (1000.0, 3000.0)


def test_a_single_run_is_in_the_middle() -> None:
    ((x, y),) = places(drawn(points(1000.0)))
    lines = re.findall(r'<line x1="0" y1="([\d.]+)" x2="([\d.]+)"', drawn(points(1000.0)))
    assert [(y * 2, x * 2)] == [(float(height), float(width)) for height, width in lines]


def test_what_hardly_moves_is_drawn_flat() -> None:
    line = points(1000.0, 1000.01, 1000.0)
    heights = [y for _, y in places(drawn(line))]
    assert max(heights) - min(heights) < 0.1
    scale = scale_of(Line({}, line))
    assert scale is not None
    assert scale[1] - scale[0] == pytest.approx(20.0, rel=0.01)


def test_a_line_does_not_bridge_a_gap() -> None:
    svg = drawn((*points(1.0, 2.0), *points(None), *points(3.0, 2.0), None, *points(2.0, 1.0)))
    assert [path.count("L") for path in re.findall(r'<path d="([^"]+)" fill="none"', svg)] == [
        1
    ] * 3
    assert len(places(svg)) == 6
    assert svg.count("<polygon") == 1
    assert draw_trend(Line({}, points(None, None)), (), "wsj") is None


def test_a_spread_is_a_band() -> None:
    wide = tuple(Point(RUN, 5, 10.0, 8.0, 13.0, {"ok": 5}, None) for _ in range(2))
    assert drawn(wide).count("fill-opacity") == 1
    assert scale_of(Line({}, wide)) == (8.0, 13.0)
    assert "fill-opacity" not in drawn(points(1.0, 2.0))


def test_a_change_of_environment_is_marked_between_two_runs() -> None:
    svg = drawn(points(1.0, 1.0, 1.0), (Break(1, RUN, ("kernel",)),))
    ((mark, same),) = re.findall(r'<line x1="([\d.]+)" y1="0" x2="([\d.]+)"[^>]*dasharray', svg)
    (first, _), (second, _), _ = places(svg)
    assert mark == same
    assert float(mark) == pytest.approx((first + second) / 2, abs=0.01)


def test_a_point_says_what_its_run_said() -> None:
    spread = Point(RUN, 5, 1000.0, 990.0, 1020.0, {"ok": 5}, "different")
    none = Point(RUN, 0, None, None, None, {"unproven": 2, "lab_mismatch": 1}, None)
    assert re.findall(r"<title>([^<]+)", drawn((spread, none))) == [
        "2026-11-01 02:17: 1.000 s (0.990 to 1.020, n 5), different, git 121212121212",
        "2026-11-01 02:17: 2 unproven, 1 lab mismatch, git 121212121212",
    ]


def test_it_is_named_for_who_cannot_see() -> None:
    assert 'aria-label="wsj: 2 runs between 1.000 and 3.000 s"' in drawn(points(1000.0, 3000.0))
